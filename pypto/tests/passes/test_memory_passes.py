"""InitMemRef, MaterializeSemanticAliases, MemoryReuse, AllocateMemoryAddr, FoldNoOpReshape and the DSA_RP planner."""

from __future__ import annotations

import pytest
from pass_programs import A5, calls, find_calls, kernel, parse, roots, run, text, tiles
from pypto.passes.memory.reuse_penalties import recognize_dsa_reuse_penalties

import pypto
from pypto import ir, passes

IO = "a: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
TILE = "pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec]"
REUSE = ("init_mem_ref", "materialize_semantic_aliases", "memory_reuse")


def load(name: str, source: str = "a") -> str:
    return f"{name}: {TILE} = pl.tile.load({source}, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec)"


def test_names_count_parameters_first_then_definitions():
    program = kernel(
        f"""
        {load("t")}
        u: {TILE} = pl.tile.exp(t)
        r = pl.tile.store(u, [0, 0], o)
        s = r
        return o
        """,
        IO,
        returns="pl.Tensor[[64, 64], pl.FP32]",
    )
    after = run(program, "init_mem_ref")
    assert tiles(after) == {"t": ("mem_vec_2", 0, 16384), "u": ("mem_vec_3", 0, 16384)}
    assert calls(after)[:2] == ["tile.alloc", "tile.alloc"]
    stored = {s.var.name_hint: s.var.type.memref.base_.name_hint for s in after.get_function("k").body if _tensor(s)}
    assert stored == {"r": "mem_ddr_1", "s": "mem_ddr_4"}


def _tensor(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.AssignStmt) and isinstance(stmt.var.type, ir.TensorType)


def test_accumulator_rows_are_rounded_up_and_others_are_exact():
    program = kernel(
        """
        acc: pl.Tile[[4, 64], pl.FP32, pl.Mem.Acc] = pl.tile.create([4, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
        vec: pl.Tile[[5, 3], pl.FP32, pl.Mem.Vec] = pl.tile.create([5, 3], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        """,
        IO,
    )
    placed = tiles(run(program, "init_mem_ref"))
    assert placed["acc"][2] == 4096
    assert placed["vec"][2] == 60


def test_slice_gets_the_byte_offset_and_the_envelope_size():
    program = kernel(
        f"""
        {load("t")}
        s: pl.Tile[[64, 16], pl.FP32, pl.Mem.Vec] = pl.tile.slice(t, [64, 16], [0, 32])
        q: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec] = pl.tile.slice(t, [8, 64], [16, 0])
        """,
        IO,
    )
    placed = tiles(run(program, "init_mem_ref"))
    assert placed["s"] == (placed["t"][0], 128, 16192)
    assert placed["q"] == (placed["t"][0], 4096, 2048)


def test_popped_tiles_and_their_views_have_no_memref():
    program = kernel(
        """
        p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=0)
        r: pl.Tile[[8, 32], pl.FP32, pl.Mem.Vec] = pl.tile.reshape(p, [8, 32])
        """,
        IO,
    )
    assert tiles(run(program, "init_mem_ref")) == {"p": None, "r": None}


def test_a_chain_lives_in_two_allocations():
    program = kernel(
        f"""
        {load("a0")}
        {load("b0")}
        c: {TILE} = pl.tile.add(a0, b0)
        d: {TILE} = pl.tile.mul(c, c)
        e: {TILE} = pl.tile.add(d, d)
        r = pl.tile.store(e, [0, 0], o)
        """,
        IO,
    )
    after = run(program, *REUSE)
    home = roots(after)
    assert home["a0"] == home["c"] == home["d"] == home["e"] != home["b0"]
    assert calls(after).count("tile.alloc") == 2


@pytest.mark.parametrize(
    ("result", "shared"),
    [
        ("pl.tile.exp(t)", True),
        ("pl.tile.adds(t, 1.0)", True),
        ("pl.tile.recip(t)", False),
    ],
)
def test_only_in_place_safe_operators_write_over_their_dying_operand(result, shared):
    program = kernel(f"{load('t')}\nu: {TILE} = {result}\nr = pl.tile.store(u, [0, 0], o)", IO)
    home = roots(run(program, *REUSE))
    assert (home["t"] == home["u"]) is shared


def test_widening_cast_keeps_its_own_buffer():
    program = kernel(
        """
        t: pl.Tile[[64, 64], pl.BF16, pl.Mem.Vec] = pl.tile.load(
            a, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec
        )
        w: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.cast(t, target_type=pl.FP32, mode="round")
        n: pl.Tile[[64, 64], pl.BF16, pl.Mem.Vec] = pl.tile.cast(w, target_type=pl.BF16, mode="round")
        r = pl.tile.store(n, [0, 0], o)
        """,
        "a: pl.Tensor[[64, 64], pl.BF16], o: pl.Out[pl.Tensor[[64, 64], pl.BF16]]",
    )
    home = roots(run(program, *REUSE))
    assert home["t"] != home["w"] == home["n"]


def test_joined_tile_takes_the_whole_buffer_and_a_view_keeps_its_size():
    program = kernel(
        f"""
        {load("big")}
        r0 = pl.tile.store(big, [0, 0], o)
        small: pl.Tile[[48, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(
            a, [0, 0], [48, 64], [48, 64], target_memory=pl.Mem.Vec
        )
        view: pl.Tile[[24, 128], pl.FP32, pl.Mem.Vec] = pl.tile.reshape(small, [24, 128])
        twice: pl.Tile[[24, 128], pl.FP32, pl.Mem.Vec] = pl.tile.add(view, view)
        r1 = pl.tile.store(twice, [0, 0], q)
        """,
        IO + ", q: pl.Out[pl.Tensor[[24, 128], pl.FP32]]",
    )
    placed = tiles(run(program, *REUSE))
    assert placed["small"] == placed["big"]
    assert placed["view"] == (placed["big"][0], 0, 12288)


LOOP = """
{init}
for i, (c,) in pl.range(4, init_values=(x,)):
    {body}
    res: {tile} = pl.yield_({value})
r = pl.tile.store(res, [0, 0], o)
"""


def loop(body: str, value: str) -> ir.Program:
    return kernel(LOOP.format(init=load("x"), body=body, value=value, tile=TILE), IO)


def test_carry_producer_is_retargeted_into_the_carry():
    after = run(loop(f"t: {TILE} = pl.tile.adds(c, 1.0)", "t"), *REUSE)
    assert len(set(roots(after).values())) == 1
    assert "tile.move" not in calls(after)


@pytest.mark.parametrize(
    "body", [f"t: {TILE} = pl.tile.recip(c)", f"d: {TILE} = pl.tile.adds(c, 1.0)\n    t: {TILE} = d"]
)
def test_carry_that_cannot_be_retargeted_is_moved_before_the_yield(body):
    after = run(loop(body, "t"), *REUSE)
    home = roots(after)
    assert home["t_mv"] == home["x"] == home["res"] != home["t"]


def test_carry_that_is_read_later_is_not_overwritten():
    body = f"t: {TILE} = pl.tile.adds(c, 1.0)\n    u: {TILE} = pl.tile.mul(t, c)\n    r1 = pl.tile.store(u, [0, 0], o)"
    home = roots(run(loop(body, "t"), *REUSE))
    assert home["t"] != home["c"]
    assert home["t_mv"] == home["c"]


def test_initial_value_that_is_read_after_the_loop_gets_a_private_copy():
    program = kernel(
        LOOP.format(init=load("x"), body=f"t: {TILE} = pl.tile.adds(c, 1.0)", value="t", tile=TILE)
        + "r2 = pl.tile.store(x, [0, 0], o)\n",
        IO,
    )
    home = roots(run(program, *REUSE))
    assert home["x"] != home["x_mv"] == home["c"]


def test_while_carry_is_updated():
    program = kernel(
        f"""
        {load("x")}
        for n, c in pl.while_(init_values=(0, x)):
            pl.cond(n < 3)
            t: {TILE} = pl.tile.adds(c, 1.0)
            m: pl.Scalar[pl.INDEX] = n + 1
            n2, res = pl.yield_(m, t)
        r = pl.tile.store(res, [0, 0], o)
        """,
        IO,
    )
    home = roots(run(program, *REUSE))
    assert home["x"] == home["c"] == home["t"] == home["res"]


def test_shift_register_moves_read_before_they_overwrite_and_a_swap_uses_one_scratch():
    shift = f"""
    {load("x")}
    {load("y")}
    for i, (lag1, lag2) in pl.range(4, init_values=(x, y)):
        v: {TILE} = pl.tile.add(lag1, lag2)
        r1, r2 = pl.yield_({{values}})
    s1 = pl.tile.store(r1, [0, 0], o)
    s2 = pl.tile.store(r2, [0, 0], o)
    """
    after = run(kernel(shift.format(values="v, lag1"), IO), *REUSE)
    moved = [name for name in tiles(after) if name.endswith("_mv")]
    assert moved == ["lag1_mv", "v_mv"]
    swapped = run(kernel(shift.format(values="lag2, lag1"), IO), *REUSE)
    assert calls(swapped).count("tile.move") == 3


def test_branch_without_change_gets_a_move_on_the_other_arm():
    body = f"""if i > 1:
        t: {TILE} = pl.tile.adds(c, 1.0)
        p: {TILE} = pl.yield_(t)
    else:
        p: {TILE} = pl.yield_(c)"""
    home = roots(run(loop(body, "p"), *REUSE))
    assert home["t"] == home["p"] == home["c"]


def test_addresses_follow_the_names_as_text_and_are_32_byte_aligned():
    lines = [f"t{i}: pl.Tile[[1, 15], pl.FP32, pl.Mem.Vec] = pl.tile.create([1, 15], dtype=pl.FP32, "
             "target_memory=pl.Mem.Vec)" for i in range(12)]  # fmt: skip
    after = run(kernel("\n".join(lines), IO), "init_mem_ref", "allocate_memory_addr")
    by_address = sorted(tiles(after).values(), key=lambda place: place[1])
    assert [name for name, _, _ in by_address][:5] == [f"mem_vec_{n}" for n in (10, 11, 12, 13, 2)]
    assert [offset for _, offset, _ in by_address][:3] == [0, 64, 128]


def test_reserved_buffers_come_first():
    program = kernel(
        f"""
        b: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name="ring", size=4096, base=-1)
        {load("t")}
        """,
        IO,
    )
    after = run(program, "init_mem_ref", "allocate_memory_addr")
    assert find_calls(after, "system.reserve_buffer")[0].kwargs["base"] == 0
    assert tiles(after)["t"][1] == 4096


def test_overlapping_reservations_are_an_internal_error():
    program = kernel(
        """
        b: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name="one", size=4096, base=0)
        c: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name="two", size=64, base=2048)
        """,
        IO,
    )
    with pytest.raises(pypto.InternalError, match="overlapping reserve_buffer ranges"):
        run(program, "init_mem_ref", "allocate_memory_addr")


BIG = """
t: pl.Tile[[64, 752], pl.FP32, pl.Mem.Vec] = pl.tile.create([64, 752], dtype=pl.FP32, target_memory=pl.Mem.Vec)
"""


@pytest.mark.parametrize("planner", [passes.MemoryPlanner.PYPTO, passes.MemoryPlanner.DSA_RP])
def test_too_large_a_tile_names_the_limit(planner):
    with pytest.raises(ValueError, match=r"exceeds platform limit \(188416 bytes\)"):
        run(kernel(BIG, IO), "init_mem_ref", "allocate_memory_addr", planner=planner)
    run(kernel(BIG, IO), "init_mem_ref", "allocate_memory_addr", backend=A5, planner=planner)


def test_declared_allocations_are_isolated_and_rejected_when_live_together():
    declared = 'pl.Tile[[64, 64], pl.FP32, pl.MemRef("ping"), pl.Mem.Vec]'
    body = f"""
    p: {declared} = pl.tile.load(a, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec)
    q: {declared} = pl.tile.load(a, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec)
    s: {TILE} = pl.tile.add(p, q)
    r = pl.tile.store(s, [0, 0], o)
    """
    with pytest.raises(ValueError, match="live at the same time"):
        run(kernel(body, IO), *REUSE)
    alone = body.replace(f"q: {declared}", f"q: {TILE}")
    home = roots(run(kernel(alone, IO), *REUSE))
    assert home["p"] == "ping"
    assert home["s"] == home["q"]


def test_no_op_reshape_becomes_an_alias():
    program = kernel(
        f"""
        {load("t")}
        same: {TILE} = pl.tile.reshape(t, [64, 64])
        other: pl.Tile[[32, 128], pl.FP32, pl.Mem.Vec] = pl.tile.reshape(t, [32, 128])
        """,
        IO,
    )
    after = run(program, "init_mem_ref", "fold_no_op_reshape")
    assert calls(after).count("tile.reshape") == 1
    assert "same: " in text(after, "k") and "= t" in text(after, "k")


def test_strides_are_spelled_out_per_layout():
    program = parse(
        """
        @pl.function(type=pl.FunctionType.AIV)
        def k(self, a: pl.Tensor[[2, 4, 8], pl.FP32, pl.TensorView(stride=[], layout=pl.TensorLayout.DN)],
              b: pl.Tensor[[4, 8], pl.FP32, pl.TensorView(valid_shape=[2, 8], stride=[], layout=pl.TensorLayout.ND)]):
            t: pl.Tile[[4, 8], pl.FP32, pl.Mem.Vec] = pl.tile.create([4, 8], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        """
    )
    params = run(program, "materialize_tensor_strides").get_function("k").params
    assert [[d.value for d in p.type.tensor_view.stride] for p in params] == [[32, 1, 4], [8, 1]]


def test_dsa_places_without_overlap_of_live_buffers_and_is_deterministic():
    program = kernel(
        f"""
        {load("p")}
        {load("q")}
        s: {TILE} = pl.tile.add(p, q)
        {load("n")}
        u: {TILE} = pl.tile.add(s, n)
        r = pl.tile.store(u, [0, 0], o)
        """,
        IO,
    )
    names = ("init_mem_ref", "materialize_semantic_aliases", "allocate_memory_addr")
    planner = passes.MemoryPlanner.DSA_RP
    first, second = (tiles(run(program, *names, planner=planner)) for _ in range(2))
    assert first == second
    assert len({first["p"][1], first["q"][1]}) == 2
    assert first["s"][1] != first["n"][1]


def test_reuse_across_pipes_costs_and_within_one_pipe_does_not():
    program = kernel(
        f"""
        {load("p")}
        q: {TILE} = pl.tile.add(p, p)
        {load("n", "b")}
        """,
        IO + ", b: pl.Tensor[[64, 64], pl.FP32]",
    )
    found = recognize_dsa_reuse_penalties(run(program, "init_mem_ref").get_function("k"))
    pairs = {(p["first_name"], p["second_name"]) for p in found}
    assert pairs == {("p", "q"), ("p", "n"), ("q", "n")}
