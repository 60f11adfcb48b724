"""SkewCrossCorePipeline: let the core that starts an exchange run ahead of the answers it waits for."""

from __future__ import annotations

from pypto.ir.expr import Call, ConstInt, Expr, Submit, Var, const_value
from pypto.ir.node import make
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, YieldStmt, flatten_to_stmts, seq
from pypto.ir.types import ScalarType
from pypto.passes.lib.op_facts import INIT_PIPES, POPS, PUSHES
from pypto.passes.lib.pipeline_membership import SKEW_GROUP_BASE
from pypto.passes.lib.rewrite import clone, fresh, rebuild_lists, with_body
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.walk import all_uses, defined_vars, iter_calls, iter_stmts, op_name, used_vars
from pypto.passes.pass_ import function_pass
from pypto.passes.pipelining.replication import has_pipeline, sequential, shifted, stages_of, tagged_body
from pypto.passes.properties import IRProperty as P

_TILE_IR = (
    P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip


def _count(body: Stmt, names: frozenset[str]) -> int:
    return sum(1 for _, call in iter_calls(body) if call.op.name in names)


class _Roles:
    """A loop body taken apart: what leads to the push, and the rest."""

    def __init__(self, produce: list[Stmt], consume: list[Stmt]) -> None:
        self.produce, self.consume = produce, consume


def _producer_roles(loop: ForStmt) -> _Roles | None:
    """The two halves of a loop that pushes, then pops; None when the loop cannot be skewed."""
    stmts = flatten_to_stmts(loop.body)
    if stmts and isinstance(stmts[-1], YieldStmt):
        stmts = stmts[:-1]
    if _count(loop.body, PUSHES) != 1 or _count(loop.body, POPS) != 1:
        return None
    crossings = [i for i, s in enumerate(stmts) if op_name(s) in PUSHES or op_name(s) in POPS]
    if len(crossings) != 2 or op_name(stmts[crossings[0]]) not in PUSHES:
        return None
    push = crossings[0]
    definer = {v: i for i, s in enumerate(stmts) for v in defined_vars(s)}
    needed = {push}
    work = [push]
    while work:
        for var in all_uses(stmts[work.pop()]):
            index = definer.get(var)
            if index is not None and index not in needed:
                needed.add(index)
                work.append(index)
    carried = set(loop.iter_args)
    produce = [s for i, s in enumerate(stmts) if i in needed]
    if any(not carried.isdisjoint(all_uses(s)) for s in produce):
        return None
    rest = [s for i, s in enumerate(stmts) if i not in needed]
    read: set[Var] = set()
    for stmt in (*rest, *flatten_to_stmts(loop.body)[-1:]):
        read |= all_uses(stmt)
    shared: set[Var] = set()
    for stmt in produce:
        for var in defined_vars(stmt):
            if var in read:
                if not isinstance(var.type, ScalarType) or not _is_pure_scalar(stmt):
                    return None
                shared.add(var)
    # Scalars that both halves read are computed again in the second one.
    again = _slice(produce, shared)
    if any(not _is_pure_scalar(s) for s in again):
        return None
    return _Roles(produce, [*again, *rest])


def _is_pure_scalar(stmt: Stmt) -> bool:
    return type(stmt) is AssignStmt and not isinstance(stmt.value, (Call, Submit))


def _slice(stmts: list[Stmt], wanted: set[Var]) -> list[Stmt]:
    kept: list[Stmt] = []
    wanted = set(wanted)
    for stmt in reversed(stmts):
        if not wanted.isdisjoint(defined_vars(stmt)):
            kept.append(stmt)
            wanted |= set(used_vars(stmt.value)) if type(stmt) is AssignStmt else all_uses(stmt)
    kept.reverse()
    return kept


def _depth(stages: int, trips: int, slots: int | None) -> int:
    """How many iterations the producer runs ahead: a divisor of the trip count that the rings can hold.

    Before the first answer is taken, two times the depth of pushes are on their way; the rings of both directions
    together hold two times the slot count.
    """
    wanted = max(2, stages - 1)
    if slots is not None:
        wanted = min(wanted, slots)
    for depth in range(wanted, 1, -1):
        if trips % depth == 0 and trips >= 2 * depth:
            return depth
    return 1


class _Skew:
    def __init__(self, slots: int | None) -> None:
        self._slots = slots
        self._group = SKEW_GROUP_BASE

    def edit(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            if stages_of(stmt) > 1 and _count(stmt.body, PUSHES) and _count(stmt.body, POPS):
                changed = True
                result.extend(self._loop(stmt))
            else:
                result.append(stmt)
        return result if changed else stmts

    def _loop(self, loop: ForStmt) -> list[Stmt]:
        trips = trip_count(loop.start, loop.stop, loop.step)
        roles = _producer_roles(loop) if trips is not None and trips >= 2 else None
        if roles is None:
            return [sequential(loop)]
        start, step = const_value(loop.start), const_value(loop.step)
        dtype = loop.start.dtype
        depth = _depth(stages_of(loop), trips, self._slots)
        group = self._group
        self._group += 1

        def constant(iteration: int) -> Expr:
            return ConstInt(start + iteration * step, dtype)

        stmts: list[Stmt] = []
        for i in range(depth):
            stmts += self._half(roles.produce, loop, constant(i), (), group, i)[0]
        body: list[Stmt] = []
        for i in range(depth):
            body += self._half(roles.produce, loop, shifted(loop.loop_var, i * step), (), group, i)[0]
        values: tuple[Expr, ...] = loop.iter_args
        for i in range(depth):
            index = shifted(loop.loop_var, -(depth - i) * step)
            half, values = self._half(roles.consume, loop, index, values, group, i)
            body += half
        results = tuple(fresh(v, "_swp") for v in loop.return_vars)
        if results:
            body.append(make(YieldStmt, values, loop.span, []))
        stmts.append(
            sequential(
                loop,
                start=constant(depth),
                stop=constant(trips),
                step=ConstInt(depth * step, dtype),
                body=seq(body, loop.body.span),
                return_vars=results,
            )
        )
        values = results
        for i in range(depth):
            half, values = self._half(roles.consume, loop, constant(trips - depth + i), values, group, i)
            stmts += half
        stmts += [AssignStmt(var, value, loop.span) for var, value in zip(loop.return_vars, values)]
        return stmts

    @staticmethod
    def _half(
        stmts: list[Stmt], loop: ForStmt, index: Expr, carries: tuple[Expr, ...], group: int, stage: int
    ) -> tuple[list[Stmt], tuple[Expr, ...]]:
        """(copy of a half for one iteration, what the loop would yield after it)."""
        mapping: dict[Var, Expr] = {loop.loop_var: index, **dict(zip(loop.iter_args, carries))}
        last = flatten_to_stmts(loop.body)[-1]
        body = list(stmts)
        if carries and isinstance(last, YieldStmt):
            body.append(last)
        copy = flatten_to_stmts(clone(seq(body), mapping))
        values: tuple[Expr, ...] = ()
        if carries and isinstance(copy[-1], YieldStmt):
            values = copy.pop().value
        return tagged_body(copy, group, stage, lambda call: call.op.name not in POPS), values


def _slot_count(function: Function) -> int | None:
    for _, call in iter_calls(function.body):
        if call.op.name in INIT_PIPES and call.kwargs.get("slot_num"):
            return int(call.kwargs["slot_num"])
    return None


@function_pass("SkewCrossCorePipeline", required=_TILE_IR, produced=_TILE_IR)
def skew_cross_core_pipeline(function: Function) -> Function:
    """Software-pipeline loops that push a tile to the other core and pop its answer in the same iteration."""
    if function.body is None or not has_pipeline(function.body):
        return function
    crossing = any(op_name(s) in PUSHES for s in iter_stmts(function.body))
    if not crossing:
        return function
    skew = _Skew(_slot_count(function))
    return with_body(function, rebuild_lists(function.body, skew.edit))
