"""AutoTileMatmulL0: products larger than the accumulator, chains that stay on the chip, and biased products."""

from __future__ import annotations

import pytest
from pass_programs import A2A3, A5, calls, find_calls, kernel, run
from pypto.backend import use_backend

from pypto import ir, passes

MEM = ir.MemorySpace
PLANNER = passes.MemoryPlanner


def load(name: str, tensor: str, shape: tuple[int, int]) -> str:
    return f"{name} = pl.tile.load({tensor}, [0, 0], {list(shape)}, target_memory=pl.Mem.Mat)\n"


def chain(m: int, k: int, n: int, width: int = 64, mode: str = "rint") -> ir.Program:
    """``(x @ y) @ z`` with a BF16 intermediate."""
    body = (
        "c = pl.matmul(x, y, out_dtype=pl.FP32)\n"
        f'b = pl.cast(c, pl.BF16, mode="{mode}")\n'
        "d = pl.matmul(b, z, out_dtype=pl.FP32)\n"
        "o = pl.assemble(o, d, [0, 0])\nreturn o"
    )
    out = f"pl.Tensor[[{m}, {width}], pl.FP32]"
    params = (
        f"x: pl.Tensor[[{m}, {k}], pl.BF16], y: pl.Tensor[[{k}, {n}], pl.BF16], "
        f"z: pl.Tensor[[{n}, {width}], pl.BF16], o: pl.Out[{out}]"
    )
    program = kernel(body, params, returns=out, kind="InCore")
    return run(program, "convert_to_ssa", "convert_tensor_to_tile_ops", "flatten_tile_nd_to_2d")


def biased(m: int, k: int, n: int, between: str = "") -> ir.Program:
    """``x @ y + bias`` of INT8 operands, stored."""
    body = load("a", "x", (m, k)) + load("b", "y", (k, n)) + load("row", "z", (1, n))
    body += f"c = pl.tile.matmul_bias(a, b, row)\n{between}r = pl.tile.store(c, [0, 0], o)\nreturn r"
    out = f"pl.Tensor[[{m}, {n}], pl.INT32]"
    params = (
        f"x: pl.Tensor[[{m}, {k}], pl.INT8], y: pl.Tensor[[{k}, {n}], pl.INT8], "
        f"z: pl.Tensor[[1, {n}], pl.INT32], o: pl.Out[{out}]"
    )
    return run(kernel(body, params, returns=out, kind="InCore"), "convert_to_ssa")


def plain(m: int, k: int, n: int, dtype: str = "BF16") -> ir.Program:
    """``x @ y``, stored."""
    body = load("a", "x", (m, k)) + load("b", "y", (k, n))
    body += "c = pl.tile.matmul(a, b)\nr = pl.tile.store(c, [0, 0], o)\nreturn r"
    out = f"pl.Tensor[[{m}, {n}], pl.FP32]"
    params = f"x: pl.Tensor[[{m}, {k}], pl.{dtype}], y: pl.Tensor[[{k}, {n}], pl.{dtype}], o: pl.Out[{out}]"
    return run(kernel(body, params, returns=out, kind="InCore"), "convert_to_ssa")


def valid(program: ir.Program) -> bool:
    with use_backend(A2A3):
        wanted = passes.IRPropertySet([passes.IRProperty.SSAForm, passes.IRProperty.UseAfterDef])
        return passes.PropertyVerifierRegistry.verify(wanted, program) == []


def execute(program: ir.Program, *arguments) -> None:
    from pypto.debug import torch_codegen

    namespace: dict = {}
    exec(torch_codegen(program), namespace)
    namespace["k"](*arguments)


def test_tiles_of_a_stored_product_are_stored_one_by_one():
    after = run(plain(256, 256, 256), "auto_tile_matmul_l0")
    stores = find_calls(after, "tile.store")
    assert len(stores) == 2
    assert all(call.args[0].type.memory_space is MEM.Acc for call in stores)
    assert valid(after)


@pytest.mark.parametrize("k", [32, 192])
def test_tiles_of_a_chained_product_stay_in_mat(k):
    after = run(chain(256, k, 256), "auto_tile_matmul_l0")
    pieces = find_calls(after, "tile.assemble")
    assert pieces and all(p.type.memory_space is MEM.Mat and p.type.dtype == ir.DataType.BF16 for p in pieces)
    assert "tile.cast" not in calls(after)
    assert len(find_calls(after, "tile.store")) == 1
    assert valid(after)


def test_a_chained_product_that_fits_is_inserted_whole():
    after = run(chain(128, 64, 128), "auto_tile_matmul_l0")
    assert [name for name in calls(after) if name in ("tile.cast", "tile.assemble")] == ["tile.assemble"]


@pytest.mark.parametrize("mode", ["round", "floor"])
def test_other_roundings_stay_on_the_vector_core(mode):
    before = chain(128, 64, 128, mode=mode)
    assert run(before, "auto_tile_matmul_l0") is before


def test_a_chain_that_does_not_fit_mat_is_left_alone():
    after = run(chain(512, 64, 1024), "auto_tile_matmul_l0")
    assert "tile.assemble" not in calls(after)


def test_the_intermediate_of_a_chain_is_rounded_once():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    x, y, z = (torch.randn(s, dtype=torch.bfloat16) for s in ((256, 32), (32, 272), (272, 64)))
    result = torch.zeros(256, 64)
    execute(run(chain(256, 32, 272), "auto_tile_matmul_l0"), x, y, z, result)
    expected = (x.float() @ y.float()).bfloat16().float() @ z.float()
    assert (result - expected).norm() / expected.norm() < 1e-2


def test_the_bias_is_added_once_per_tile():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    m, k, n = 256, 1024, 512
    after = run(biased(m, k, n), "auto_tile_matmul_l0")
    x, y = (torch.randint(-1, 2, s, dtype=torch.int8) for s in ((m, k), (k, n)))
    row = torch.randint(-20, 21, (1, n), dtype=torch.int32)
    result = torch.zeros(m, n, dtype=torch.int32)
    execute(after, x, y, row, result)
    assert torch.equal(result, x.int() @ y.int() + row)


def test_bias_windows_replace_the_load_of_the_whole_row():
    after = run(biased(256, 1024, 512), "auto_tile_matmul_l0")
    rows = [c for c in find_calls(after, "tile.load") if c.type.shape[0].value == 1]
    assert rows and all(c.type.shape[1].value < 512 for c in rows)
    assert valid(after)


def test_a_bias_row_is_not_loaded_again_after_a_write():
    before = biased(256, 1024, 512, "z2 = pl.tile.store(row, [0, 0], o)\n")
    assert run(before, "auto_tile_matmul_l0") is before


@pytest.mark.parametrize("planner", [PLANNER.DSA_RP, PLANNER.PTOAS])
def test_planners_that_keep_two_accumulators_apart_get_two(planner):
    def inner(program: ir.Program) -> bool:
        return "pipeline_double_buffer_c" in program.as_python()

    program = plain(256, 64, 256)
    assert inner(run(program, "auto_tile_matmul_l0", planner=planner))
    assert not inner(run(program, "auto_tile_matmul_l0"))


def test_one_accumulator_is_drained_before_it_is_filled_again():
    names = ("auto_tile_matmul_l0", "infer_tile_memory_space", "lower_pipeline_loops", "canonicalize_io_order")
    order = [c for c in calls(run(plain(320, 64, 320), *names)) if c in ("tile.matmul", "tile.store")]
    assert order == ["tile.matmul", "tile.store"] * (len(order) // 2)


def test_fp32_intermediates_stay_in_mat_where_the_accumulator_can_write_them():
    body = "c = pl.matmul(x, y, out_dtype=pl.FP32)\nd = pl.matmul(c, z, out_dtype=pl.FP32)\n"
    body += "o = pl.assemble(o, d, [0, 0])\nreturn o"
    out = "pl.Tensor[[256, 64], pl.FP32]"
    params = "x: pl.Tensor[[256, 32], pl.FP32], y: pl.Tensor[[32, 320], pl.FP32], "
    params += f"z: pl.Tensor[[320, 64], pl.FP32], o: pl.Out[{out}]"
    program = kernel(body, params, returns=out, kind="InCore")
    names = ("convert_to_ssa", "convert_tensor_to_tile_ops", "flatten_tile_nd_to_2d", "auto_tile_matmul_l0")
    assert "tile.assemble" not in calls(run(program, *names, backend=A2A3))
    assert "tile.assemble" in calls(run(program, *names, backend=A5))


def test_oversized_manual_operands_are_reported():
    body = load("a", "x", (16, 256)) + load("b", "y", (256, 256))
    body += "r = pl.tile.move(b, target_memory=pl.Mem.Right)\nl = pl.tile.move(a, target_memory=pl.Mem.Left)\n"
    body += "c = pl.tile.matmul(l, r)\ns = pl.tile.store(c, [0, 0], o)\nreturn s"
    out = "pl.Tensor[[16, 256], pl.FP32]"
    params = f"x: pl.Tensor[[16, 256], pl.FP16], y: pl.Tensor[[256, 256], pl.FP16], o: pl.Out[{out}]"
    program = run(kernel(body, params, returns=out, kind="InCore"), "convert_to_ssa")
    with pytest.raises(ValueError, match=r"right operand 'r' .*131072 bytes of Right \(L0B\)"):
        run(program, "auto_tile_matmul_l0")


def accumulated(m: int, n: int, dtype: str = "BF16", out: str = "FP32", block: int = 64) -> ir.Program:
    """``x @ y`` over four K blocks in a loop that the program spells out."""
    body = f"""
    start = pl.tile.create([{m}, {n}], dtype=pl.{out}, target_memory=pl.Mem.Acc)
    for k, (acc,) in pl.pipeline(0, {4 * block}, {block}, init_values=(start,), stage=2):
        a = pl.tile.load(x, [0, k], [{m}, {block}], target_memory=pl.Mem.Mat)
        b = pl.tile.load(y, [k, 0], [{block}, {n}], target_memory=pl.Mem.Mat)
        if k == 0:
            first = pl.tile.matmul(a, b)
            phi = pl.yield_(first)
        else:
            later = pl.tile.matmul_acc(acc, a, b)
            phi = pl.yield_(later)
        total = pl.yield_(phi)
    r = pl.tile.store(total, [0, 0], o)
    return r
    """
    kind = f"pl.Tensor[[{m}, {n}], pl.{out}]"
    params = (
        f"x: pl.Tensor[[{m}, {4 * block}], pl.{dtype}], y: pl.Tensor[[{4 * block}, {n}], pl.{dtype}], o: pl.Out[{kind}]"
    )
    return run(kernel(body, params, returns=kind, kind="InCore"), "convert_to_ssa")


@pytest.mark.parametrize(("m", "n", "tiles"), [(128, 512, 2), (512, 128, 2), (272, 288, 6)])
def test_a_written_out_accumulation_is_tiled_outside_its_loop(m, n, tiles):
    after = run(accumulated(m, n), "auto_tile_matmul_l0")
    stores = find_calls(after, "tile.store")
    assert len(stores) == tiles
    assert all(c.args[0].type.memory_space is MEM.Acc for c in stores)
    assert valid(after)


def test_an_accumulation_that_fits_keeps_its_loop():
    before = accumulated(128, 128)
    after = run(before, "auto_tile_matmul_l0")
    assert len(find_calls(after, "tile.store")) == 1


@pytest.mark.parametrize(("dtype", "out", "m", "n"), [("BF16", "FP32", 272, 288), ("INT8", "INT32", 272, 144)])
def test_a_tiled_accumulation_has_the_values_of_the_whole(dtype, out, m, n):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    x, y = torch.randint(-1, 2, (m, 256), dtype=torch.int8), torch.randint(-1, 2, (256, n), dtype=torch.int8)
    expected = x.int() @ y.int()
    result = torch.zeros(m, n, dtype=torch.float32 if out == "FP32" else torch.int32)
    if dtype == "BF16":
        x, y = x.bfloat16(), y.bfloat16()
    execute(run(accumulated(m, n, dtype, out), "auto_tile_matmul_l0"), x, y, result)
    assert torch.equal(result.int(), expected)


def partly_valid(m: int, k: int, n: int, rows: int) -> ir.Program:
    """``x[:rows] @ y`` with a left operand of ``m`` physical rows."""
    body = f"a = pl.tile.load(x, [0, 0], [{m}, {k}], [{rows}, {k}], target_memory=pl.Mem.Mat)\n" + load(
        "b", "y", (k, n)
    )
    body += "c = pl.tile.matmul(a, b)\nr = pl.tile.store(c, [0, 0], o)\nreturn r"
    out = f"pl.Tensor[[{m}, {n}], pl.FP32]"
    params = f"x: pl.Tensor[[{m}, {k}], pl.BF16], y: pl.Tensor[[{k}, {n}], pl.BF16], o: pl.Out[{out}]"
    return run(kernel(body, params, returns=out, kind="InCore"), "convert_to_ssa")


@pytest.mark.parametrize(("m", "n", "rows"), [(128, 128, 48), (256, 256, 250), (256, 256, 100)])
def test_rows_beyond_the_valid_region_stay_out_of_every_tile(m, n, rows):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    after = run(partly_valid(m, 1024, n, rows), "auto_tile_matmul_l0")
    assert valid(after) and "tile.matmul_acc" in calls(after)
    x, y = (torch.randint(-1, 2, s).bfloat16() for s in ((m, 1024), (1024, n)))
    result = torch.zeros(m, n)
    execute(after, x, y, result)
    expected = x.float() @ y.float()
    expected[rows:] = 0
    assert torch.equal(result, expected)


def test_both_branches_of_an_accumulation_use_one_accumulator():
    after = run(accumulated(128, 128, block=512), "auto_tile_matmul_l0")
    assert calls(after).count("tile.matmul_acc") == 2
    assert len([c for c in find_calls(after, "tile.create") if c.type.memory_space is MEM.Acc]) == 1
