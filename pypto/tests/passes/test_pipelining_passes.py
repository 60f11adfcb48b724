"""LowerPipelineLoops, CanonicalizeIOOrder, SkewCrossCorePipeline, LowerPipelineToSlots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_programs import calls, find_calls, kernel, run, text, tiles
from pypto.passes.lib.pipeline_membership import ATTR, memberships
from pypto.passes.lib.scalars import trip_count
from pypto.passes.memory import dsa_rp, memory_reuse

from pypto import ir, passes

IO = "a: pl.Tensor[[256, 16], pl.FP32], o: pl.Out[pl.Tensor[[256, 16], pl.FP32]], n: pl.Scalar[pl.INDEX]"
TILE = "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec]"


def strips(bounds: str, stage: int) -> ir.Program:
    return kernel(
        f"""
        for i, (c,) in pl.pipeline({bounds}, stage={stage}, init_values=(o,)):
            row: pl.Scalar[pl.INDEX] = i * 16
            t: {TILE} = pl.tile.load(a, [row, 0], [16, 16], [16, 16], target_memory=pl.Mem.Vec)
            u: {TILE} = pl.tile.exp(t)
            d: pl.Tensor[[256, 16], pl.FP32] = pl.tile.store(u, [row, 0], c)
            res: pl.Tensor[[256, 16], pl.FP32] = pl.yield_(d)
        return res
        """,
        IO,
        returns="pl.Tensor[[256, 16], pl.FP32]",
    )


def loops(program: ir.Program) -> list[ir.ForStmt]:
    found: list[ir.ForStmt] = []

    class Collect(ir.IRVisitor):
        def visit_for_stmt(self, stmt):
            found.append(stmt)
            super().visit_for_stmt(stmt)

    Collect().visit_program(program)
    return found


def bounds(loop: ir.ForStmt) -> tuple[int, int, int]:
    return loop.start.value, loop.stop.value, loop.step.value


def test_whole_groups_loop_and_the_rest_follows_flat():
    after = run(strips("10", 4), "lower_pipeline_loops")
    (main,) = loops(after)
    assert bounds(main) == (0, 8, 4)
    assert main.attrs["pipeline_stages"] == 1
    assert calls(after).count("tile.load") == 6
    groups = [memberships(c)[0] for c in find_calls(after, "tile.load")]
    assert groups == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]


def test_more_stages_than_iterations_needs_no_loop():
    after = run(strips("3", 4), "lower_pipeline_loops")
    assert not loops(after)
    assert calls(after).count("tile.store") == 3


def test_runtime_trip_count_cascades_over_the_remainder():
    after = run(strips("n", 3), "lower_pipeline_loops")
    printed = text(after, "k")
    assert "unroll_main_end" in printed and "unroll_rem == 2" in printed
    groups = {memberships(c)[0][0] for c in find_calls(after, "tile.load")}
    assert groups == {0, 1, 2}
    # The main loop is group 0, the branch for two remaining iterations 1, the one for a single iteration 2.
    assert [memberships(c)[0] for c in find_calls(after, "tile.load")].count((1, 1)) == 1


def test_runtime_bounds_with_a_negative_step_are_rejected():
    with pytest.raises(ValueError, match="positive constant step"):
        run(strips("n, 0, -1", 2), "lower_pipeline_loops")


@given(start=st.integers(-6, 6), trips=st.integers(1, 9), step=st.integers(1, 3), stage=st.integers(2, 5))
def test_every_iteration_is_executed_once(start, trips, step, stage):
    program = strips(f"{start}, {start + trips * step}, {step}", stage)
    after = run(program, "lower_pipeline_loops")
    inside = sum(trip_count(x.start, x.stop, x.step) * _stores(x.body) for x in loops(after))
    flat = calls(after).count("tile.store") - sum(_stores(x.body) for x in loops(after))
    assert inside + flat == trips


def _stores(body: ir.Stmt) -> int:
    return sum(
        isinstance(getattr(s, "value", None), ir.Call) and s.value.op.name == "tile.store"
        for s in ir.flatten_to_stmts(body)
    )


def test_loads_come_first_and_each_stage_stores_after_its_compute():
    after = run(strips("8", 2), "lower_pipeline_loops", "canonicalize_io_order")
    order = [n for n in calls(after) if n.startswith("tile.")]
    assert order == ["tile.load", "tile.load", "tile.exp", "tile.store", "tile.exp", "tile.store"]
    (loop,) = loops(after)
    assert loop.kind is ir.ForKind.Sequential
    assert "pipeline_stages" not in loop.attrs


def test_stages_keep_their_buffers_and_memberships_are_dropped():
    names = ("lower_pipeline_loops", "canonicalize_io_order", "init_mem_ref", "memory_reuse")
    after = run(strips("8", 2), *names)
    first, second = [s.var.type.memref.base_ for s in loops(after)[0].body if _is(s, "tile.load")]
    assert first is not second
    assert all(ATTR not in c.attrs for c in find_calls(after, "tile.load"))


def _is(stmt: ir.Stmt, name: str) -> bool:
    return isinstance(getattr(stmt, "value", None), ir.Call) and stmt.value.op.name == name


PING = """
pl.system.aic_initialize_pipe(
    pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=3, slot_size=1024, slot_num={slots}
)
for i, (c,) in pl.pipeline({trips}, stage={stage}, init_values=(o,)):
    row: pl.Scalar[pl.INDEX] = i * 16
    m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tile.load(
        a, [row, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat
    )
    pl.tile.tpush_to_aiv(m, split=0)
    w: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tile.tpop_from_aiv(split=0)
    l: pl.Tile[[16, 16], pl.FP32, pl.Mem.Left] = pl.tile.move(w, target_memory=pl.Mem.Left)
    pl.system.tfree_to_aiv(w, split=0)
    q: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(l, r)
    d: pl.Tensor[[256, 16], pl.FP32] = pl.tile.store(q, [row, 0], c)
    res: pl.Tensor[[256, 16], pl.FP32] = pl.yield_(d)
return res
"""


def ping(trips: int, stage: int, slots: int = 8) -> ir.Program:
    head = (
        "r: pl.Tile[[16, 16], pl.FP32, pl.Mem.Right] = pl.tile.create([16, 16], dtype=pl.FP32, "
        "target_memory=pl.Mem.Right)"
    )
    return kernel(
        head + PING.format(trips=trips, stage=stage, slots=slots), IO, kind="AIC",
        returns="pl.Tensor[[256, 16], pl.FP32]",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("trips", "stage", "slots", "depth"),
    [(8, 2, 8, 2), (9, 4, 8, 3), (8, 4, 8, 2), (3, 2, 8, 1), (9, 4, 2, 1), (6, 3, 2, 2)],
)
def test_producer_runs_ahead_by_a_divisor_of_the_trips_that_the_ring_holds(trips, stage, slots, depth):
    after = run(ping(trips, stage, slots), "skew_cross_core_pipeline")
    (loop,) = loops(after)
    assert bounds(loop) == (depth, trips, depth)
    sequence = [n.rsplit(".", 1)[1] for n in calls(after) if "tpush" in n or "tpop" in n]
    steady = ["tpush_to_aiv"] * depth + ["tpop_from_aiv"] * depth
    assert sequence == ["tpush_to_aiv"] * depth + steady + ["tpop_from_aiv"] * depth
    assert all(ATTR not in c.attrs for c in find_calls(after, "tile.tpop_from_aiv"))
    assert "__FREE_VAR" not in text(after)


@pytest.mark.parametrize(("trips", "stage", "slots"), [(8, 2, 2), (9, 4, 3), (6, 3, 2), (12, 5, 4)])
def test_skewed_exchange_cannot_block(trips, stage, slots):
    """Both cores with rings of ``slots`` entries: the vector core answers every tile it pops."""
    after = run(ping(trips, stage, slots), "skew_cross_core_pipeline")
    stmts = ir.flatten_to_stmts(after.get_function("k").body)
    program: list[str] = []
    for stmt in stmts:
        repeat = trip_count(stmt.start, stmt.stop, stmt.step) if isinstance(stmt, ir.ForStmt) else 1
        program += _crossings(stmt) * repeat
    cube_to_vector = vector_to_cube = answered = held = 0
    for step in program:
        # The vector core runs as far as it can before the cube core's next step.
        while held or (cube_to_vector and answered < trips):
            if not held:
                cube_to_vector -= 1
                held = 1
            if vector_to_cube == slots:
                break
            vector_to_cube += 1
            answered += 1
            held = 0
        if step == "push":
            assert cube_to_vector < slots, "the cube core waits for a slot that nobody frees"
            cube_to_vector += 1
        else:
            assert vector_to_cube, "the cube core waits for an answer that cannot come"
            vector_to_cube -= 1
    assert program.count("push") == program.count("pop") == trips


def _crossings(stmt: ir.Stmt) -> list[str]:
    if isinstance(stmt, ir.ForStmt):
        return [n for s in ir.flatten_to_stmts(stmt.body) for n in _crossings(s)]
    call = getattr(stmt, "value", None) or getattr(stmt, "expr", None)
    name = call.op.name if isinstance(call, ir.Call) else ""
    return ["push"] if "tpush" in name else ["pop"] if "tpop" in name else []


def test_two_pushes_stay_a_sequential_loop():
    program = kernel(
        f"""
        for i in pl.pipeline(8, stage=2):
            t: {TILE} = pl.tile.load(a, [0, 0], [16, 16], [16, 16], target_memory=pl.Mem.Vec)
            pl.tile.tpush_to_aic(t, split=0)
            pl.tile.tpush_to_aic(t, split=0)
            p: {TILE} = pl.tile.tpop_from_aic(split=0)
        """,
        IO,
    )
    (loop,) = loops(run(program, "skew_cross_core_pipeline"))
    assert loop.kind is ir.ForKind.Sequential
    assert bounds(loop) == (0, 8, 1)


@pytest.mark.parametrize(("where", "slots"), [("8", 2), ("1, 9", None)])
def test_ptoas_rotates_loads_through_slots_where_the_loop_allows(where, slots):
    after = run(strips(where, 2), "lower_pipeline_to_slots", planner=passes.MemoryPlanner.PTOAS)
    (loop,) = loops(after)
    memref = next(s.var.type.memref for s in loop.body if _is(s, "tile.load"))
    if slots is None:
        assert memref is None
        assert loop.kind is ir.ForKind.Pipeline
    else:
        assert memref.slot_count_ == slots
        assert loop.kind is ir.ForKind.Sequential
        placed = tiles(run(after, "init_mem_ref", planner=passes.MemoryPlanner.PTOAS))
        assert placed["t"][0] == "pipe_t"


def test_other_planners_keep_the_loop():
    program = strips("8", 2)
    assert run(program, "lower_pipeline_to_slots") is program


def staged(rows: int) -> ir.Program:
    """Two stages of one loop, each with its own Right tile of ``rows * 256 * 4`` bytes."""
    lines = []
    for stage in (0, 1):
        tile = f"pl.Tile[[{rows}, 256], pl.FP32, pl.Mem.Right]"
        lines.append(
            f"t{stage}: {tile} = pl.tile.move(m, target_memory=pl.Mem.Right, "
            f'attrs={{"pipeline_membership": "0:{stage}"}})\n'
            f"z{stage}: pl.Tile[[16, 256], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(l, t{stage})\n"
            f"s{stage} = pl.tile.store(z{stage}, [0, 0], q)"
        )
    head = f"""
m: pl.Tile[[{rows}, 256], pl.FP32, pl.Mem.Mat] = pl.tile.create(
    [{rows}, 256], dtype=pl.FP32, target_memory=pl.Mem.Mat
)
l: pl.Tile[[16, {rows}], pl.FP32, pl.Mem.Left] = pl.tile.create(
    [16, {rows}], dtype=pl.FP32, target_memory=pl.Mem.Left
)
"""
    return kernel(head + "\n".join(lines), "q: pl.Out[pl.Tensor[[16, 256], pl.FP32]]", kind="AIC")


def hints(monkeypatch, module) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(module, "perf_hint", lambda code, message, span=None: found.append(f"{code} {message}"))
    return found


def test_stages_share_only_when_both_do_not_fit(monkeypatch):
    found = hints(monkeypatch, memory_reuse)
    names = ("init_mem_ref", "materialize_semantic_aliases", "memory_reuse")
    small = tiles(run(staged(16), *names))
    assert small["t0"][0] != small["t1"][0]
    assert not found
    large = tiles(run(staged(48), *names))
    assert large["t0"][0] == large["t1"][0]
    (hint,) = found
    assert "PH-MR-001" in hint and "requested depth 2" in hint and "only 1 of 2 buffers fit" in hint
    assert "shrink the per-stage tile to <= 32768 B" in hint


def test_dsa_relaxes_stages_only_when_both_do_not_fit(monkeypatch):
    found = hints(monkeypatch, dsa_rp)
    names = ("init_mem_ref", "materialize_semantic_aliases", "allocate_memory_addr")
    small = tiles(run(staged(16), *names, planner=passes.MemoryPlanner.DSA_RP))
    assert small["t0"][1] != small["t1"][1]
    large = tiles(run(staged(48), *names, planner=passes.MemoryPlanner.DSA_RP))
    assert large["t0"][1] == large["t1"][1]
    assert found and "1 of 1 relaxed pair(s) reuse physical storage" in found[0]
