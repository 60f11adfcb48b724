"""CanonicalizeIOOrder: inside pipelined loops load early, store late, and keep the stages together."""

from __future__ import annotations

import heapq
from enum import Enum

from pypto.ir.enums import ForKind, MemorySpace
from pypto.ir.expr import Call, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.ir.types import ScalarType, TileType
from pypto.passes.lib.pipeline_membership import memberships, set_memberships
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.statement_order import predecessors
from pypto.passes.lib.walk import stmt_call
from pypto.passes.pass_ import function_pass
from pypto.passes.pipelining.replication import DOUBLE_BUFFER_C, STAGES, has_pipeline
from pypto.passes.properties import IRProperty as P

_TILE_IR = (
    P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip
_STORES = ("tile.store", "tile.write", "tensor.write", "tile.mscatter")
_L0 = (MemorySpace.Left, MemorySpace.Right)
_UNTAGGED = (-1, -1)


def _tier(stmt: Stmt) -> int:
    """0 scalar arithmetic, 1 reads into the core, 2 everything else."""
    if type(stmt) is not AssignStmt:
        return 2
    call = stmt.value if isinstance(stmt.value, Call) else None
    name = call.op.name if call is not None else ""
    if name in ("tile.load", "tile.read"):
        return 1
    if name == "tile.extract" and isinstance(stmt.var.type, TileType) and stmt.var.type.memory_space in _L0:
        return 1
    return 0 if isinstance(stmt.var.type, ScalarType) else 2


def _stage(stmt: Stmt, stages: dict[Var, tuple[int, int]]) -> tuple[int, int]:
    """(group, stage) of the innermost tagged loop; untagged statements come first."""
    call = stmt_call(stmt)
    if not isinstance(call, Call):
        return _UNTAGGED
    pairs = memberships(call)
    if pairs:
        return pairs[0]
    if call.op.name in _STORES and call.args and isinstance(call.args[0], Var):
        return stages.get(call.args[0], _UNTAGGED)
    return _UNTAGGED


class _Rule(Enum):
    """How the stores of a loop move relative to its computations."""

    #: Behind the computations of their stage.
    BEHIND_STAGE = 0
    #: Not at all, nor do computations: one accumulator serves every stage.
    IN_PLACE = 1
    #: Behind the computations of a pair of stages, which have an accumulator each.
    BEHIND_PAIR = 2


def _rule(loop: ForStmt) -> _Rule:
    if loop.attrs.get("pipeline_overlap_stores") is False:
        return _Rule.IN_PLACE
    return _Rule.BEHIND_PAIR if loop.attrs.get(DOUBLE_BUFFER_C) else _Rule.BEHIND_STAGE


def _reorder(stmts: list[Stmt], rule: _Rule) -> list[Stmt]:
    if len(stmts) < 2:
        return stmts
    before = predecessors(stmts)
    stages: dict[Var, tuple[int, int]] = {}
    keys = []
    for index, stmt in enumerate(stmts):
        stage = _stage(stmt, stages)
        if type(stmt) is AssignStmt:
            stages[stmt.var] = stage
        call = stmt_call(stmt)
        if rule is _Rule.IN_PLACE:
            keys.append((_tier(stmt), 0, 0, index))
            continue
        major = stage[1] // 2 if rule is _Rule.BEHIND_PAIR and stage[1] >= 0 else stage[1]
        keys.append((_tier(stmt), major, int(call is not None and call.op.name in _STORES), index))
    waiting = [len(b) for b in before]
    after: list[list[int]] = [[] for _ in stmts]
    for index, earlier in enumerate(before):
        for other in earlier:
            after[other].append(index)
    ready = [keys[i] for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)[3]
        order.append(index)
        for later in after[index]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, keys[later])
    return stmts if order == list(range(len(stmts))) else [stmts[i] for i in order]


def _rotated(stmts: list[Stmt]) -> list[Stmt]:
    """Accumulators of double-buffered loops alternate between two stages."""
    result = []
    for stmt in stmts:
        call = stmt_call(stmt)
        if type(stmt) is AssignStmt and isinstance(call, Call) and isinstance(stmt.var.type, TileType):
            pairs = memberships(call)
            if pairs and stmt.var.type.memory_space is MemorySpace.Acc:
                stmt = replace(stmt, value=set_memberships(call, [(g, s % 2) for g, s in pairs]))
        result.append(stmt)
    return stmts if all(a is b for a, b in zip(result, stmts)) else result


def _rewrite(stmt: Stmt, rule: _Rule | None) -> Stmt:
    """``rule`` is that of the innermost pipelined loop around ``stmt``."""
    kind = type(stmt)
    if kind is SeqStmts:
        children = [_rewrite(c, rule) for c in flatten_to_stmts(stmt)]
        if rule is not None:
            children = _reorder(children, rule)
        same = len(children) == len(stmt.stmts) and all(a is b for a, b in zip(children, stmt.stmts))
        return stmt if same else seq(children, stmt.span)
    if kind is IfStmt:
        then_body = _rewrite(stmt.then_body, rule)
        else_body = None if stmt.else_body is None else _rewrite(stmt.else_body, rule)
        if then_body is stmt.then_body and else_body is stmt.else_body:
            return stmt
        return replace(stmt, then_body=then_body, else_body=else_body)
    if kind is ForStmt and stmt.kind is ForKind.Pipeline:
        body = _rewrite(stmt.body, _rule(stmt))
        if stmt.attrs.get(DOUBLE_BUFFER_C):
            body = rebuild_lists(body, _rotated)
        attrs = {k: v for k, v in stmt.attrs.items() if k != STAGES}
        return replace(stmt, kind=ForKind.Sequential, attrs=attrs, body=body)
    if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
        body = _rewrite(stmt.body, rule)
        return stmt if body is stmt.body else replace(stmt, body=body)
    return stmt


@function_pass("CanonicalizeIOOrder", required=_TILE_IR, produced=(*_TILE_IR, P.PipelineResolved))
def canonicalize_io_order(function: Function) -> Function:
    """Sort the statements of pipelined loop bodies by tier and stage, then make the loops sequential."""
    if function.body is None or not has_pipeline(function.body):
        return function
    return with_body(function, _rewrite(function.body, None))
