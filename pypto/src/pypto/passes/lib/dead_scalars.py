"""Removal of scalar assignments and branch results that nothing reads."""

from __future__ import annotations

from collections import Counter

from pypto.ir.dtype import DataType
from pypto.ir.expr import BinaryExpr, Call, Expr, MakeTuple, Submit, TupleGetItemExpr, UnaryExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import ScalarType
from pypto.passes.lib.uses import count_reads, expr_reads
from pypto.passes.lib.walk import iter_stmts, yielded


def remove_dead_scalars(function: Function) -> Stmt:
    """The body without unread scalars; a value that contains a call, or a task id of a launch, always stays."""
    if not any(_candidate(stmt) for stmt in iter_stmts(function.body)):
        return function.body
    return _Removal(count_reads(function)).body(function.body)


def _candidate(stmt: Stmt) -> bool:
    if type(stmt) is AssignStmt:
        return type(stmt.var.type) is ScalarType and _removable(stmt.value)
    return type(stmt) is IfStmt and bool(stmt.return_vars)


def _removable(value: Expr) -> bool:
    if isinstance(value, TupleGetItemExpr):
        return value.type != ScalarType(DataType.TASK_ID) and _call_free(value)
    return _call_free(value)


def _call_free(value: Expr) -> bool:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (Call, Submit)):
            return False
        if isinstance(node, BinaryExpr):
            stack += (node.left, node.right)
        elif isinstance(node, UnaryExpr):
            stack.append(node.operand)
        elif isinstance(node, MakeTuple):
            stack += node.elements
        elif isinstance(node, TupleGetItemExpr):
            stack.append(node.tuple)
    return True


class _Removal:
    """Walks backwards, so that a removed reader makes what it read dead too."""

    def __init__(self, reads: Counter[Var]) -> None:
        self._reads = reads

    def body(self, body: Stmt) -> Stmt:
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        for stmt in reversed(old):
            kept = self._stmt(stmt)
            if kept is not None:
                new.append(kept)
        new.reverse()
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    def _stmt(self, stmt: Stmt) -> Stmt | None:
        kind = type(stmt)
        if kind is AssignStmt:
            if not self._reads[stmt.var] and _candidate(stmt):
                self._reads.subtract(expr_reads(stmt.value, stmt.var.type))
                return None
            return stmt
        if kind is IfStmt:
            stmt = self._dead_results(stmt)
            then_body = self.body(stmt.then_body)
            else_body = None if stmt.else_body is None else self.body(stmt.else_body)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
            new = self.body(stmt.body)
            return stmt if new is stmt.body else replace(stmt, body=new)
        return stmt

    def _dead_results(self, stmt: IfStmt) -> IfStmt:
        if not stmt.return_vars or stmt.else_body is None:
            return stmt
        values = [yielded(stmt.then_body), yielded(stmt.else_body)]
        if any(len(v) != len(stmt.return_vars) for v in values):
            return stmt
        dead = [
            i
            for i, var in enumerate(stmt.return_vars)
            if not self._reads[var] and type(var.type) is ScalarType and all(_call_free(v[i]) for v in values)
        ]
        if not dead:
            return stmt
        for branch in values:
            for i in dead:
                self._reads.subtract(expr_reads(branch[i]))
        return replace(
            stmt,
            then_body=_without_values(stmt.then_body, dead),
            else_body=_without_values(stmt.else_body, dead),
            return_vars=tuple(v for i, v in enumerate(stmt.return_vars) if i not in dead),
        )


def _without_values(body: Stmt, positions: list[int]) -> Stmt:
    stmts = flatten_to_stmts(body)
    last = stmts[-1]
    if type(last) is not YieldStmt:
        return body
    left = tuple(v for i, v in enumerate(last.value) if i not in positions)
    return seq([*stmts[:-1], replace(last, value=left)] if left else stmts[:-1], body.span)
