"""Queries on statements: children, yields, definitions, parents. Re-exports what transformations commonly need."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.ir import stmt as S
from pypto.ir.callers import caller_warning_stacklevel
from pypto.ir.callers import span_or_capture as _get_span_or_capture
from pypto.ir.calls import (
    deduce_call_return_type,
    inout,
    input,
    make_call,
    no_dep,
    output,
    output_existing,
    scalar_dir,
    set_call_attrs,
)
from pypto.ir.default_memory import memref_init
from pypto.ir.expr import Var
from pypto.ir.program import Function
from pypto.ir.stmt import flatten_to_stmts
from pypto.ir.substitution import deep_clone, substitute_expr, substitute_stmt

__all__ = [
    "ParentStmtAnalysis", "_get_span_or_capture", "caller_warning_stacklevel", "children", "collect_def_vars",
    "deduce_call_return_type", "deep_clone", "find_yield_stmt", "flatten_to_stmts", "get_last_yield_stmt", "inout",
    "input", "make_call", "memref_init", "no_dep", "output", "output_existing", "scalar_dir", "set_call_attrs",
    "substitute_expr", "substitute_stmt", "walk_stmts",
]  # fmt: skip


def children(stmt: S.Stmt) -> list[S.Stmt]:
    """The statements directly inside a statement, in order."""
    if isinstance(stmt, S.SeqStmts):
        return list(stmt.stmts)
    if isinstance(stmt, S.IfStmt):
        return [stmt.then_body] if stmt.else_body is None else [stmt.then_body, stmt.else_body]
    if isinstance(stmt, (S.ForStmt, S.WhileStmt, S.ScopeStmt)):
        return [stmt.body]
    return []


def walk_stmts(stmt: S.Stmt | None) -> Iterable[S.Stmt]:
    """Every statement of a tree, parents first."""
    stack = [] if stmt is None else [stmt]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def collect_def_vars(stmt: S.Stmt) -> list[Var]:
    """Left-hand sides of all assignments of a tree, in order."""
    return [s.var for s in walk_stmts(stmt) if isinstance(s, S.AssignStmt)]


def find_yield_stmt(body: S.Stmt | None) -> S.YieldStmt | None:
    """The first yield of a body, looking into sequences and scopes but not into control flow."""
    for stmt in S.flatten_to_stmts(body):
        found = find_yield_stmt(stmt.body) if isinstance(stmt, S.ScopeStmt) else stmt
        if isinstance(found, S.YieldStmt):
            return found
    return None


def get_last_yield_stmt(body: S.Stmt | None) -> S.YieldStmt | None:
    """The yield that ends a body, looking through sequences and scopes; None when the body ends otherwise."""
    while True:
        stmts = S.flatten_to_stmts(body)
        if not stmts:
            return None
        last = stmts[-1]
        if not isinstance(last, S.ScopeStmt):
            return last if isinstance(last, S.YieldStmt) else None
        body = last.body


class ParentStmtAnalysis:
    """Which statement directly contains which, for one function."""

    def __init__(self) -> None:
        self._parents: dict[S.Stmt, S.Stmt] = {}

    def build_map(self, func: Function | None) -> None:
        """Analyse ``func``, forgetting what was known before."""
        self._parents = {}
        if func is None or func.body is None:
            return
        for stmt in walk_stmts(func.body):
            for child in children(stmt):
                self._parents[child] = stmt

    def get_parent(self, stmt: S.Stmt | None) -> S.Stmt | None:
        """The statement around ``stmt``; None for the body itself and for unknown statements."""
        return self._parents.get(stmt)

    def has_parent(self, stmt: S.Stmt | None) -> bool:
        return stmt in self._parents

    def clear(self) -> None:
        self._parents = {}
