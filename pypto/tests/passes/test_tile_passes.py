"""Tile passes: tensor operators to tiles, composites, 2D form, casts, matmul tiling, spaces and layouts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_programs import A2A3, A5, calls, find_calls, kernel, run, text
from pypto.passes.l0_tile_chooser import L0TileConfig, Stationarity, choose_l0_tile

from pypto import ir, passes

T = "pl.Tensor[[16, 64], pl.FP32]"
IO = f"x: {T}, o: pl.Out[{T}]"
MEM = ir.MemorySpace


def incore(body: str, params: str = IO, returns: str = T) -> ir.Program:
    return run(kernel(body, params, returns=returns, kind="InCore"), "convert_to_ssa")


def on_tile(op: str, params: str = IO, shape: str = "[16, 64]", returns: str = T) -> ir.Program:
    return incore(
        f"t = pl.tile.load(x, [0, 0], {shape})\nu = {op}\nr = pl.tile.store(u, [0, 0], o)\nreturn r", params, returns
    )


def matmul(m: int, k: int, n: int) -> ir.Program:
    body = f"""
a = pl.tile.load(x, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)
b = pl.tile.load(y, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)
c = pl.tile.matmul(a, b)
r = pl.tile.store(c, [0, 0], o)
return r
"""
    params = f"x: pl.Tensor[[{m}, {k}], pl.FP16], y: pl.Tensor[[{k}, {n}], pl.FP16]"
    out = f"pl.Tensor[[{m}, {n}], pl.FP32]"
    return incore(body, f"{params}, o: pl.Out[{out}]", out)


def holds(program: ir.Program, *names: str, backend=A2A3) -> bool:
    from pypto.backend import use_backend

    with use_backend(backend):
        wanted = passes.IRPropertySet([passes.IRProperty[n] for n in names])
        return passes.PropertyVerifierRegistry.verify(wanted, program) == []


def test_tensors_are_loaded_once_and_results_stored():
    body = "y = pl.add(x, x)\nz = pl.mul(y, x)\no = pl.assemble(o, z, [0, 0])\nreturn o"
    before = incore(body)
    after = run(before, "convert_tensor_to_tile_ops")
    assert calls(after) == ["tile.load", "tile.add", "tile.mul", "tile.store"]
    assert holds(after, "IncoreTileOps") and not holds(before, "IncoreTileOps")


def test_scalar_operands_select_the_scalar_form():
    after = run(incore("y = pl.add(x, 2.0)\no = pl.assemble(o, y, [0, 0])\nreturn o"), "convert_tensor_to_tile_ops")
    assert "tile.adds" in calls(after)


def test_products_go_through_the_matrix_buffer():
    body = "c = pl.matmul(x, y)\no = pl.assemble(o, c, [0, 0])\nreturn o"
    params = "x: pl.Tensor[[64, 32], pl.FP16], y: pl.Tensor[[32, 64], pl.FP16], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
    after = run(incore(body, params, "pl.Tensor[[64, 64], pl.FP32]"), "convert_tensor_to_tile_ops")
    loads = find_calls(after, "tile.load")
    assert len(loads) == 2 and "tile.matmul" in calls(after)
    assert all(load.type.memory_space is MEM.Mat for load in loads)


def test_sine_is_spelled_with_arithmetic():
    after = run(on_tile("pl.tile.sin(t)"), "lower_composite_ops")
    used = set(calls(after))
    assert "tile.sin" not in used
    assert used <= {f"tile.{n}" for n in ("load", "store", "muls", "adds", "add", "sub", "mul", "cast")}


def test_tiles_of_more_axes_become_rows_and_columns():
    shape = "pl.Tensor[[2, 8, 16], pl.FP32]"
    body = (
        "t = pl.tile.load(x, [0, 0, 0], [2, 8, 16])\nu = pl.tile.exp(t)\nr = pl.tile.store(u, [0, 0, 0], o)\nreturn r"
    )
    before = incore(body, f"x: {shape}, o: pl.Out[{shape}]", shape)
    after = run(before, "flatten_tile_nd_to_2d")
    assert holds(after, "TileOps2D") and not holds(before, "TileOps2D")
    (exp,) = find_calls(after, "tile.exp")
    assert [d.value for d in exp.type.shape] == [16, 16]


def cast(source: str, target: str, mode: str = "round") -> ir.Program:
    out = f"pl.Tensor[[16, 64], pl.{target}]"
    params = f"x: pl.Tensor[[16, 64], pl.{source}], o: pl.Out[{out}]"
    return on_tile(f'pl.tile.cast(t, pl.{target}, mode="{mode}")', params, returns=out)


@pytest.mark.parametrize(
    ("source", "target", "backend", "hops"),
    [
        ("FP32", "BF16", A2A3, ["bfloat16"]),
        ("FP32", "INT8", A2A3, ["fp16", "int8"]),
        ("BF16", "INT8", A2A3, ["fp32", "fp16", "int8"]),
        ("BF16", "INT8", A5, ["fp16", "int8"]),
        ("INT64", "FP16", A2A3, ["fp32", "fp16"]),
    ],
)
def test_casts_take_the_shortest_native_way(source, target, backend, hops):
    after = run(cast(source, target, "rint"), "legalize_tile_cast", backend=backend)
    found = find_calls(after, "tile.cast")
    assert [str(c.type.dtype) for c in found] == hops
    assert text(after).count('mode="rint"') == len(hops)


@pytest.mark.parametrize("backend", [A2A3, A5])
def test_casts_that_would_lose_range_on_the_way_are_refused(backend):
    with pytest.raises(ValueError, match="no native cast path from int8 to fp32"):
        run(cast("INT8", "FP32"), "legalize_tile_cast", backend=backend)


def test_a_small_product_stays_whole_and_its_operands_move_to_l0():
    before = matmul(64, 64, 64)
    assert run(before, "auto_tile_matmul_l0") is before
    after = run(before, "infer_tile_memory_space")
    assert [m.type.memory_space for m in find_calls(after, "tile.move")] == [MEM.Left, MEM.Right]
    (product,) = find_calls(after, "tile.matmul")
    assert product.type.memory_space is MEM.Acc
    assert holds(after, "TileMemoryInferred")


def test_a_deep_product_is_accumulated_over_k():
    after = run(matmul(128, 1024, 128), "auto_tile_matmul_l0")
    used = calls(after)
    assert used.count("tile.matmul") == used.count("tile.matmul_acc") == 1
    assert used.count("tile.extract") == 2
    (loop,) = [s for s in after.get_function("k").body if isinstance(s, ir.ForStmt)]
    assert loop.kind is ir.ForKind.Pipeline and len(loop.iter_args) == 1
    assert holds(after, "SSAForm", "PipelineLoopValid")


def test_a_wide_product_stores_block_by_block():
    after = run(matmul(512, 128, 512), "auto_tile_matmul_l0")
    (store,) = find_calls(after, "tile.store")
    assert all(not isinstance(offset, ir.ConstInt) for offset in store.args[1].elements)
    (product,) = find_calls(after, "tile.matmul")
    m, n = (d.value for d in product.type.shape)
    assert m * n * 4 <= 128 * 1024
    assert holds(after, "SSAForm", "UseAfterDef")


def test_columns_are_computed_as_rows():
    column = "pl.Tensor[[16, 1], pl.FP32]"
    before = on_tile("pl.tile.exp(t)", f"x: {column}, o: pl.Out[{column}]", "[16, 1]", column)
    after = run(before, "infer_tile_memory_space", "resolve_backend_op_layouts")
    (exp,) = find_calls(after, "tile.exp")
    assert [d.value for d in exp.type.shape] == [1, 16]
    assert calls(after) == ["tile.load", "tile.reshape", "tile.exp", "tile.reshape", "tile.store"]
    assert run(after, "resolve_backend_op_layouts") is after


def test_fractal_global_layouts_are_refused_by_name():
    params = f"x: pl.Tensor[[16, 64], pl.FP32, pl.NZ], o: pl.Out[{T}]"
    before = kernel("y = pl.add(x, x)\no = pl.assemble(o, y, [0, 0])\nreturn o", params, returns=T, kind="InCore")
    with pytest.raises(NotImplementedError, match="NZ"):
        run(before, "convert_to_ssa", "convert_tensor_to_tile_ops")


SIZES = st.integers(1, 40).map(lambda i: 16 * i)


@settings(max_examples=40)
@given(SIZES, SIZES, SIZES, st.booleans(), st.booleans())
def test_the_chosen_tile_fits_the_buffers(m, n, k, stationary, double):
    config = L0TileConfig(
        M=m, N=n, K=k, allow_a_stationary=stationary, allow_b_stationary=stationary, allow_double_buffer_c=double,
        allow_k_boundary=True,
    )  # fmt: skip
    r = choose_l0_tile(config)
    depth_a = 1 if r.stationarity is Stationarity.AStationary else 2
    depth_b = 1 if r.stationarity is Stationarity.BStationary else 2
    whole = (r.m, r.n, r.k) == (m, n, k)
    assert r.m * r.k * 2 * (1 if whole else depth_a) <= config.l0a_bytes
    assert r.k * r.n * 2 * (1 if whole else depth_b) <= config.l0b_bytes
    assert r.m * r.n * 4 * (2 if r.double_buffer_c else 1) <= config.l0c_bytes
    assert r.m % 16 == r.n % 16 == r.k % 16 == 0
    assert r.estimated_traffic_bytes >= 2 * (m * k + k * n) + 4 * m * n


@pytest.mark.parametrize(
    ("change", "message"),
    [({"M": 0}, "positive"), ({"K": 8}, "allow_padding"), ({"max_n": 8}, "max_n"), ({"l0c_bytes": 64}, "L0|tile")],
)
def test_impossible_configurations_are_one_error(change, message):
    with pytest.raises(ValueError, match=message):
        choose_l0_tile(L0TileConfig(**{"M": 64, "N": 64, "K": 64, **change}))


def test_a_padded_problem_says_so():
    assert "K=8" in choose_l0_tile(L0TileConfig(M=64, N=64, K=8, allow_padding=True)).perf_hint


def test_a_vector_kernel_is_no_subject_of_the_automatic_split():
    before = on_tile("pl.tile.exp(t)")
    assert run(before, "lower_auto_vector_split") is before


def test_slices_of_vector_tiles_stay_windows():
    params = f"x: pl.Tensor[[32, 64], pl.FP32], o: pl.Out[{T}]"
    before = on_tile("pl.tile.slice(t, [16, 64], [8, 0])", params, "[32, 64]")
    assert run(before, "canonicalize_tile_slice") is before


def test_slices_of_matrix_tiles_are_extracted():
    body = """
t = pl.tile.load(x, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
y = pl.tile.load(w, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
a = pl.tile.slice(t, [64, 64], [64, 0])
c = pl.tile.matmul(a, y)
r = pl.tile.store(c, [0, 0], o)
return r
"""
    out = "pl.Tensor[[64, 64], pl.FP32]"
    params = f"x: pl.Tensor[[128, 64], pl.FP16], w: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[{out}]"
    after = run(incore(body, params, out), "canonicalize_tile_slice", "infer_tile_memory_space")
    assert "tile.slice" not in calls(after) and "tile.extract" in calls(after)
    assert holds(after, "TileMemoryInferred")


def test_a_kernel_without_return_annotation_may_return_its_parameters_only():
    tensor = "pl.Tensor[[16, 64], pl.FP32]"
    steps = ("convert_to_ssa", "convert_tensor_to_tile_ops")
    body = "o = pl.assemble(o, pl.add(x, 1.0), [0, 0])\nreturn o"
    after = run(kernel(body, f"x: {tensor}, o: pl.Out[{tensor}]", kind="InCore"), *steps)
    assert "tile.store" in calls(after)
    with pytest.raises(ValueError, match="'k' returns a value of its own but declares no type"):
        run(kernel("y = pl.add(x, 1.0)\nreturn y", f"x: {tensor}", kind="InCore"), *steps)
