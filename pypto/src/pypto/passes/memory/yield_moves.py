"""Moves before yields: bring every yielded tile into the buffer that the loop carry or if result lives in."""

from __future__ import annotations

from collections.abc import Callable

from pypto.errors import InternalError, user_error
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TileType
from pypto.ops.registry import op_ref
from pypto.passes.lib.rewrite import with_body
from pypto.passes.memory.storage import memref_of

#: Allocates a scratch buffer like an existing tile: (type, name) -> MemRef.
Scratch = Callable[[TileType, str], MemRef]


def same_location(a: MemRef | None, b: MemRef | None) -> bool:
    """Both start at the same byte of the same allocation."""
    if a is b:
        return True
    if a is None or b is None or a.base_ is not b.base_:
        return False
    x, y = a.byte_offset_, b.byte_offset_
    return x is y or (const_value(x) is not None and const_value(x) == const_value(y))


def reconcile_yields(function: Function, scratch: Scratch) -> Function:
    """Insert ``<name>_mv = tile.move(<name>, ...)`` where a yielded tile is not where its receiver is.

    The values of one yield move at the same time: a buffer is read before it is overwritten, and a cycle goes through
    one scratch buffer.
    """
    if function.body is None:
        return function
    return with_body(function, _Moves(scratch).rewrite(function.body))


class _Moves:
    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def rewrite(self, stmt: Stmt, receivers: tuple[Var, ...] = ()) -> Stmt:
        """``stmt`` with moves inserted; a yield that ends it feeds ``receivers``."""
        kind = type(stmt)
        if kind is SeqStmts:
            children = flatten_to_stmts(stmt)
            last = len(children) - 1
            new = [self.rewrite(c, receivers if i == last else ()) for i, c in enumerate(children)]
            return stmt if all(a is b for a, b in zip(new, children)) else seq(new, stmt.span)
        if kind is YieldStmt:
            return self._yield(stmt, receivers)
        if kind is ForStmt or kind is WhileStmt:
            body = self.rewrite(stmt.body, stmt.iter_args)
            return stmt if body is stmt.body else replace(stmt, body=body)
        if kind is IfStmt:
            then_body = self.rewrite(stmt.then_body, stmt.return_vars)
            else_body = None if stmt.else_body is None else self.rewrite(stmt.else_body, stmt.return_vars)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if isinstance(stmt, ScopeStmt):
            body = self.rewrite(stmt.body, receivers)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def _yield(self, stmt: YieldStmt, receivers: tuple[Var, ...]) -> Stmt:
        pending: list[tuple[int, Var, MemRef]] = []
        kept: list[MemRef] = []
        for slot, (value, receiver) in enumerate(zip(stmt.value, receivers)):
            target = memref_of(receiver)
            if target is None or not isinstance(value, Var):
                continue
            if same_location(memref_of(value), target):
                kept.append(target)
            else:
                pending.append((slot, value, target))
        if not pending:
            return stmt
        _check_disjoint([target for _, _, target in pending] + kept, stmt)
        values: list[Expr] = list(stmt.value)
        moves: list[Stmt] = []
        while pending:
            ready = next((p for p in pending if not _read_by_others(p, pending)), None)
            if ready is None:
                # Only cycles are left: park one value, which frees its buffer.
                slot, value, target = pending[0]
                parked = self._move(value, self._scratch(value.type, value.name_hint), stmt, moves)
                pending[0] = (slot, parked, target)
                continue
            pending.remove(ready)
            slot, value, target = ready
            values[slot] = self._move(value, target, stmt, moves)
        return seq([*moves, make(YieldStmt, tuple(values), stmt.span, stmt.leading_comments)])

    @staticmethod
    def _move(value: Var, target: MemRef, stmt: Stmt, moves: list[Stmt]) -> Var:
        kind = value.type
        if kind.memory_space is MemorySpace.Acc:
            raise InternalError("cannot reconcile divergent L0C accumulator buffers", span=stmt.span)
        plain = replace(kind, memref=None)
        call = make(Call, op_ref("tile.move"), (value,), {"target_memory": kind.memory_space}, {}, plain, stmt.span)
        moved = Var(f"{value.name_hint}_mv", replace(kind, memref=target), stmt.span)
        moves.append(AssignStmt(moved, call, stmt.span))
        return moved


def _read_by_others(move: tuple[int, Var, MemRef], pending: list) -> bool:
    target = move[2]
    for other in pending:
        if other is not move:
            source = memref_of(other[1])
            if source is not None and MemRef.may_alias(source, target):
                return True
    return False


def _check_disjoint(targets: list[MemRef], stmt: Stmt) -> None:
    for index, a in enumerate(targets):
        for b in targets[index + 1 :]:
            if MemRef.may_alias(a, b):
                raise user_error(
                    "two loop-carried tiles share one buffer, so they cannot be updated together; bind them to "
                    "different allocations",
                    span=stmt.span,
                )
