"""ExpandMixedKernel, InjectGMPipeBuffer, SplitVectorKernel, StampTfreeSplit."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pass_programs import A2A3, A5, calls, find_calls, kernel, parse, run, text

from pypto import ir, passes

IO = "x: pl.Tensor[[16, 128], pl.FP16], y: pl.Tensor[[128, 128], pl.FP16], o: pl.Out[pl.Tensor[[16, 128], pl.FP32]]"
PRODUCT = """
xm: pl.Tile[[16, 128], pl.FP16, pl.Mem.Mat] = pl.tile.load(
    x, [0, 0], [16, 128], [16, 128], target_memory=pl.Mem.Mat
)
ym: pl.Tile[[128, 128], pl.FP16, pl.Mem.Mat] = pl.tile.load(
    y, [0, 0], [128, 128], [128, 128], target_memory=pl.Mem.Mat
)
xl: pl.Tile[[16, 128], pl.FP16, pl.Mem.Left] = pl.tile.move(xm, target_memory=pl.Mem.Left)
yr: pl.Tile[[128, 128], pl.FP16, pl.Mem.Right] = pl.tile.move(ym, target_memory=pl.Mem.Right)
za: pl.Tile[[16, 128], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(xl, yr)
"""
EPILOGUE = """
zv: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.move(za, target_memory=pl.Mem.Vec)
w: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.muls(zv, 2.0)
r: pl.Tensor[[16, 128], pl.FP32] = pl.tile.store(w, [0, 0], o)
return r
"""
OUT = "pl.Tensor[[16, 128], pl.FP32]"


def mixed(epilogue: str = EPILOGUE, attrs: str = "") -> ir.Program:
    return kernel(PRODUCT + epilogue, IO, kind="InCore", returns=OUT, attrs=attrs)


def test_pure_kernels_only_change_their_type():
    vector = kernel(
        "t: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.load(o, [0, 0], [16, 128], [16, 128], "
        "target_memory=pl.Mem.Vec)\nr = pl.tile.store(t, [0, 0], o)",
        IO,
        kind="InCore",
    )
    cube = kernel(PRODUCT + "r = pl.tile.store(za, [0, 0], o)", IO, kind="InCore")
    assert run(vector, "expand_mixed_kernel").get_function("k").func_type is ir.FunctionType.AIV
    after = run(cube, "expand_mixed_kernel")
    assert [f.func_type for f in after.functions.values()] == [ir.FunctionType.AIC]


def test_mixed_kernel_becomes_two_kernels_and_a_group():
    after = run(mixed(), "expand_mixed_kernel")
    assert {k.name for k in after.functions} == {"k", "k_aic", "k_aiv"}
    assert calls(after) == ["k_aic", "k_aiv"]
    assert calls(after, "k_aic")[:2] == ["system.import_peer_buffer", "system.aic_initialize_pipe"]
    assert calls(after, "k_aic")[-1] == "tile.tpush_to_aiv"
    vector = calls(after, "k_aiv")
    assert vector[2:] == ["tile.tpop_from_aic", "tile.muls", "system.tfree_to_aic", "tile.store"]
    pipe = find_calls(after, "system.aiv_initialize_pipe", "k_aiv")[0].kwargs
    assert (pipe["dir_mask"], pipe["slot_size"], pipe["slot_num"]) == (1, 8192, 2)
    assert "id" not in pipe
    assert find_calls(after, "system.reserve_buffer", "k_aiv")[0].kwargs["size"] == 16384
    assert "__FREE_VAR" not in text(after)


def test_slot_num_attribute_sizes_the_ring():
    after = run(mixed(attrs='{"slot_num": 4}'), "expand_mixed_kernel")
    assert find_calls(after, "system.reserve_buffer", "k_aiv")[0].kwargs["size"] == 32768


def test_a_result_stored_back_into_its_own_name_is_split_too():
    after = run(mixed(EPILOGUE.replace("r: pl", "o: pl").replace("return r", "return o")), "expand_mixed_kernel")
    assert calls(after, "k_aic")[-1] == "tile.tpush_to_aiv"
    assert calls(after, "k_aiv")[-1] == "tile.store"


@pytest.mark.parametrize(("backend", "dual"), [(A2A3, True), (A5, None)])
def test_only_910b_launches_both_lanes_without_a_split(backend, dual):
    after = run(mixed(), "expand_mixed_kernel", backend=backend)
    assert after.get_function("k_aiv").attrs.get("dual_aiv_dispatch") is dual


BACK = """
zv: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.move(
    za, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box
)
h: pl.Tile[[16, 128], pl.FP16, pl.Mem.Vec] = pl.tile.cast(zv, target_type=pl.FP16, mode="round")
hl: pl.Tile[[16, 128], pl.FP16, pl.Mem.Left] = pl.tile.move(h, target_memory=pl.Mem.Left)
q: pl.Tile[[16, 128], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(hl, yr)
r: pl.Tensor[[16, 128], pl.FP32] = pl.tile.store(q, [0, 0], o)
return r
"""


@pytest.mark.parametrize(("backend", "moves"), [(A2A3, 0), (A5, 1)])
def test_vector_to_cube_push_takes_the_fractal_layout_on_950_only(backend, moves):
    after = run(mixed(BACK), "expand_mixed_kernel", backend=backend)
    assert calls(after, "k_aiv").count("tile.move") == moves
    cube = calls(after, "k_aic")
    start = cube.index("tile.tpop_from_aiv")
    assert cube[start : start + 3] == ["tile.tpop_from_aiv", "tile.move", "system.tfree_to_aiv"]
    pipe = find_calls(after, "system.aic_initialize_pipe", "k_aic")[0].kwargs
    assert (pipe["dir_mask"], pipe["slot_size"]) == (3, 8192)


def test_carry_of_the_other_core_disappears():
    body = (
        PRODUCT
        + """
    for i, (c,) in pl.range(4, init_values=(o,)):
        zv: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.move(za, target_memory=pl.Mem.Vec)
        d: pl.Tensor[[16, 128], pl.FP32] = pl.tile.store(zv, [0, 0], c)
        res: pl.Tensor[[16, 128], pl.FP32] = pl.yield_(d)
    return res
    """.replace("\n    ", "\n")
    )
    after = run(kernel(body, IO, kind="InCore", returns=OUT), "expand_mixed_kernel")
    assert "pl.range(4):" in text(after, "k_aic")
    assert "init_values" in text(after, "k_aiv")


def test_gm_tensor_between_the_cores_is_fenced_once():
    body = (
        PRODUCT
        + """
s: pl.Tensor[[16, 128], pl.FP32] = pl.tile.store(za, [0, 0], o)
for i, (c,) in pl.range(4, init_values=(p,)):
    t: pl.Tile[[16, 128], pl.FP32, pl.Mem.Vec] = pl.tile.load(
        s, [0, 0], [16, 128], [16, 128], target_memory=pl.Mem.Vec
    )
    d: pl.Tensor[[16, 128], pl.FP32] = pl.tile.store(t, [0, 0], c)
    res: pl.Tensor[[16, 128], pl.FP32] = pl.yield_(d)
return res
"""
    )
    program = kernel(body, IO + ", p: pl.Out[pl.Tensor[[16, 128], pl.FP32]]", kind="InCore", returns=OUT)
    after = run(program, "expand_mixed_kernel")
    assert calls(after, "k_aic")[-2:] == ["tile.store", "tile.tpush_to_aiv"]
    vector = calls(after, "k_aiv")
    assert vector.count("tile.tpop_from_aic") == 1
    assert vector.index("system.tfree_to_aic") < vector.index("tile.load")


def caller(program: ir.Program) -> ir.Program:
    main = parse(
        f"""
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, {IO}) -> {OUT}:
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, {IO}) -> {OUT}:
            r: {OUT} = self.k(x, y, o)
            return r
        """
    ).get_function("main")
    return ir.Program([*program.functions.values(), main], "Prog", program.span)


def test_workspace_reaches_every_kernel_of_the_call_and_is_created_in_orchestration():
    after = run(caller(mixed()), "expand_mixed_kernel", "inject_gm_pipe_buffer")
    for name in ("k", "k_aic", "k_aiv"):
        assert after.get_function(name).params[-1].name_hint == "__gm_pipe_buffer"
    create = find_calls(after, "tensor.create", "main")[0]
    assert create.kwargs["manual_dep"] is True
    assert find_calls(after, "k", "main")[0].args[-1].name_hint == "gm_pipe_buffer_0"
    on_950 = run(caller(mixed()), "expand_mixed_kernel", "inject_gm_pipe_buffer", backend=A5)
    assert "__gm_pipe_buffer" not in text(on_950)


def test_idle_lane_replays_the_exchange_without_storing():
    after = run(mixed(), "expand_mixed_kernel", "split_vector_kernel")
    stmts = list(after.get_function("k_aiv").body)
    assert calls(after, "k_aiv")[0] == "tile.get_subblock_idx"
    branch = next(s for s in stmts if isinstance(s, ir.IfStmt))
    replay = [s.value.op.name for s in branch.else_body if isinstance(getattr(s, "value", None), ir.Call)]
    assert "tile.tpop_from_aic" in replay
    assert "tile.store" not in replay
    popped = branch.else_body[0].var.type
    assert [d.value for d in popped.valid_shape] == [0, 0]


def test_free_takes_split_and_id_of_its_pop():
    body = """
    t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=1, id=3)
    pl.system.tfree_to_aic(t{extra})
    """
    after = run(kernel(body.format(extra=""), IO), "stamp_tfree_split")
    assert find_calls(after, "system.tfree_to_aic")[0].kwargs == {"split": 1, "id": 3}
    with pytest.raises(ValueError, match="does not match originating"):
        run(kernel(body.format(extra=", id=2"), IO), "stamp_tfree_split")


def test_free_of_something_else_is_rejected():
    program = kernel(
        "t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.create([16, 16], dtype=pl.FP32, "
        "target_memory=pl.Mem.Vec)\npl.system.tfree_to_aic(t)",
        IO,
    )
    with pytest.raises(ValueError, match="requires its tile argument to come from"):
        run(program, "stamp_tfree_split")


def test_existing_group_launches_the_halves_itself():
    group = parse(
        f"""
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, {IO}) -> {OUT}:
            return o

        @pl.function(type=pl.FunctionType.Group)
        def g(self, {IO}) -> {OUT}:
            r: {OUT} = self.k(x, y, o)
            return r
        """
    ).get_function("g")
    program = ir.Program([*mixed().functions.values(), group], "Prog", group.span)
    after = run(program, "expand_mixed_kernel")
    assert after.get_function("k") is None
    assert calls(after, "g") == ["k_aic", "k_aiv"]


DAMAGE = {
    "a tile that is not freed": (lambda line: "" if "tfree_to_aic" in line else line, "is never freed"),
    "a tile that is freed twice over": (
        lambda line: line.replace("tfree_to_aic(zv)", "tfree_to_aic(w)"), "no tpop before it received"
    ),
    "no pipe": (lambda line: "" if "aiv_initialize_pipe" in line else line, "before system.aiv_initialize_pipe"),
    "a small buffer": (lambda line: line.replace("size=16384", "size=8192"), "needs 2 slots of 8192 bytes"),
    "the wrong space": (
        lambda line: line.replace("pl.Mem.Vec", "pl.Mem.Mat") if "tpop" in line else line,
        "needs the tile.tpop_from_aic result in MemorySpace::Vec",
    ),
}  # fmt: skip


def broken_pipes(program: ir.Program) -> list[str]:
    wanted = passes.IRPropertySet([passes.IRProperty.MixedKernelExpanded])
    return [d.message for d in passes.PropertyVerifierRegistry.verify(wanted, program)]


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_the_verifier_finds_broken_pipes(damage, message):
    after = run(mixed(), "expand_mixed_kernel")
    assert broken_pipes(after) == []
    lines = [damage(line) for line in after.as_python().splitlines()]
    assert any(message in found for found in broken_pipes(pl.parse_program("\n".join(lines))))


def test_the_verifier_finds_kernels_that_were_not_split():
    assert broken_pipes(mixed()) == ["InCore function 'k' mixes cube and vector tile operators"]
