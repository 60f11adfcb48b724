"""Copies of a loop body for other iterations, with their tiles tagged by pipeline stage."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind
from pypto.ir.expr import Add, Call, ConstInt, Expr, Sub, Var, const_value
from pypto.ir.node import replace
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, YieldStmt, flatten_to_stmts, seq
from pypto.ir.types import TileType, TupleType
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.pipeline_membership import with_membership
from pypto.passes.lib.rewrite import clone
from pypto.passes.lib.walk import iter_stmts

STAGES = "pipeline_stages"
DOUBLE_BUFFER_C = "pipeline_double_buffer_c"


def stages_of(stmt: Stmt) -> int:
    """Requested stages of a pipelined loop, 0 for anything else."""
    if type(stmt) is not ForStmt or stmt.kind is not ForKind.Pipeline:
        return 0
    return int(stmt.attrs.get(STAGES, 1))


def has_pipeline(body: Stmt | None) -> bool:
    """Some loop below is pipelined."""
    return any(type(s) is ForStmt and s.kind is ForKind.Pipeline for s in iter_stmts(body))


def sequential(loop: ForStmt, **changes) -> ForStmt:
    """The loop without pipelining."""
    attrs = {k: v for k, v in loop.attrs.items() if k != STAGES}
    return replace(loop, kind=ForKind.Sequential, attrs=attrs, **changes)


def shifted(var: Expr, amount: int) -> Expr:
    """``var + amount`` (``var - |amount|``); a constant is folded."""
    if amount == 0:
        return var
    value = const_value(var)
    if value is not None:
        return ConstInt(value + amount, var.dtype)
    dtype = var.type.dtype
    number = ConstInt(abs(amount), DataType.INDEX)
    return Add(var, number, dtype) if amount > 0 else Sub(var, number, dtype)


class _Tagger(IRMutator):
    def __init__(self, group: int, stage: int, tagged: Callable[[Call], bool]) -> None:
        super().__init__()
        self._group, self._stage, self._tagged = group, stage, tagged

    def visit_type(self, kind):
        return kind

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        call = stmt.value
        if isinstance(call, Call) and _makes_tiles(stmt.var) and self._tagged(call):
            return replace(stmt, value=with_membership(call, self._group, self._stage))
        return stmt


def _makes_tiles(var: Var) -> bool:
    kind = var.type
    if isinstance(kind, TupleType):
        return any(isinstance(t, TileType) for t in kind.types)
    return isinstance(kind, TileType)


def tag(stmt: Stmt, group: int, stage: int, tagged: Callable[[Call], bool]) -> Stmt:
    """``stmt`` with every tile-producing call that ``tagged`` accepts marked ``group:stage``."""
    return _Tagger(group, stage, tagged).visit_stmt(stmt)


def replicate(
    loop: ForStmt, index: Expr, carries: tuple[Expr, ...], *, first: bool = False
) -> tuple[list[Stmt], tuple[Expr, ...]]:
    """(statements, yielded values) of the body for one iteration.

    Args:
        index: value of the loop variable.
        carries: values of the loop carries.
        first: keep the definitions of the body instead of making new ones.
    """
    mapping: dict[Var, Expr] = dict(zip(loop.iter_args, carries))
    mapping[loop.loop_var] = index
    if first and index is loop.loop_var and all(a is b for a, b in zip(carries, loop.iter_args)):
        stmts = flatten_to_stmts(loop.body)
    else:
        stmts = flatten_to_stmts(clone(loop.body, mapping))
    if stmts and isinstance(stmts[-1], YieldStmt):
        return stmts[:-1], stmts[-1].value
    return stmts, ()


def tagged_body(stmts: list[Stmt], group: int, stage: int, tagged: Callable[[Call], bool]) -> list[Stmt]:
    """The statements with their tiles tagged."""
    return flatten_to_stmts(tag(seq(stmts), group, stage, tagged)) if stmts else stmts
