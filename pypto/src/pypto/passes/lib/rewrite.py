"""Rewriting helpers: substitution, cloning with fresh definitions, retyping, statement-list edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.expr import Expr, IterArg, Var, _next_id
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
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import Type
from pypto.ir.visitor import IRMutator


class Substitution(IRMutator):
    """Replaces variables; types are rewritten too when ``in_types``."""

    def __init__(self, var_map: dict[Var, Expr] | None = None, *, in_types: bool = True) -> None:
        super().__init__()
        self.var_map = {} if var_map is None else var_map
        self._in_types = in_types

    def visit_type(self, kind: Type) -> Type:
        return super().visit_type(kind) if self._in_types else kind


def substitute(stmt: Stmt, var_map: dict[Var, Expr]) -> Stmt:
    """``stmt`` with variables replaced; the map grows by definitions whose type changed."""
    return Substitution(var_map).visit_stmt(stmt) if var_map else stmt


class _Cloner(Substitution):
    """Gives every definition a new identity."""

    def visit_def(self, var: Var) -> Var:
        if var in self.var_map:
            return self.var_map[var]
        new = self.var_map[var] = replace(var, type=self.visit_type(var.type))
        return new

    def visit_iter_args(self, iter_args) -> tuple:
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            new = make(IterArg, arg.name_hint, self.visit_type(arg.type), arg.span, _next_id(), init)
            self.var_map[arg] = new
            result.append(new)
        return tuple(result)


def clone(stmt: Stmt, var_map: dict[Var, Expr]) -> Stmt:
    """A copy of ``stmt`` in which every definition is new; ``var_map`` is applied and extended."""
    return _Cloner(var_map).visit_stmt(stmt)


class Retype(Substitution):
    """Gives definitions the types of ``types`` (Var -> Type) and updates every use; other types stay as they are."""

    def __init__(self, types: dict[Var, Type]) -> None:
        super().__init__(in_types=False)
        self._types = types

    def visit_def(self, var: Var) -> Var:
        if var in self.var_map:
            return self.var_map[var]
        kind = self._types.get(var)
        if kind is None or kind is var.type:
            return var
        new = self.var_map[var] = replace(var, type=kind)
        return new

    def visit_iter_args(self, iter_args) -> tuple:
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            kind = self._types.get(arg, arg.type)
            if kind is arg.type and init is arg.initValue:
                result.append(arg)
                continue
            new = self.var_map[arg] = make(IterArg, arg.name_hint, kind, arg.span, _next_id(), init)
            result.append(new)
        return tuple(result)


def rebuild_lists(stmt: Stmt, edit: Callable[[list[Stmt]], list[Stmt]]) -> Stmt:
    """Apply ``edit`` to every statement list, innermost first; it returns its argument to change nothing."""
    changed = False
    result = []
    for child in flatten_to_stmts(stmt):
        new = _rebuild_bodies(child, edit)
        changed = changed or new is not child
        result.append(new)
    edited = edit(result)
    if not changed and edited is result:
        return stmt
    return seq(edited, stmt.span)


def _rebuild_bodies(stmt: Stmt, edit: Callable[[list[Stmt]], list[Stmt]]) -> Stmt:
    kind = type(stmt)
    if kind is IfStmt:
        then_body = rebuild_lists(stmt.then_body, edit)
        else_body = None if stmt.else_body is None else rebuild_lists(stmt.else_body, edit)
        if then_body is stmt.then_body and else_body is stmt.else_body:
            return stmt
        return replace(stmt, then_body=then_body, else_body=else_body)
    if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
        body = rebuild_lists(stmt.body, edit)
        return stmt if body is stmt.body else replace(stmt, body=body)
    return stmt


def normalize_body(stmt: Stmt) -> Stmt:
    """``stmt`` with nested sequences flattened and single-statement sequences unwrapped, at every level."""
    kind = type(stmt)
    if kind is SeqStmts:
        children = [normalize_body(child) for child in stmt.stmts]
        flat = len(children) != 1 and not any(type(child) is SeqStmts for child in children)
        if flat and all(a is b for a, b in zip(children, stmt.stmts)):
            return stmt
        return seq(children, stmt.span)
    if kind is IfStmt:
        then_body = normalize_body(stmt.then_body)
        else_body = None if stmt.else_body is None else normalize_body(stmt.else_body)
        if then_body is stmt.then_body and else_body is stmt.else_body:
            return stmt
        return replace(stmt, then_body=then_body, else_body=else_body)
    if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
        body = normalize_body(stmt.body)
        return stmt if body is stmt.body else replace(stmt, body=body)
    return stmt


def with_body(function: Function, body: Any) -> Function:
    """The function with another body (a statement or an iterable of statements)."""
    if not isinstance(body, Stmt):
        body = seq(body, function.body.span)
    return function if body is function.body else replace(function, body=body)


def assign(var: Var, value: Expr, like: Stmt) -> AssignStmt:
    """``var = value`` with the span of another statement."""
    return AssignStmt(var, value, like.span)


def fresh(var: Var, suffix: str = "", type: Type | None = None) -> Var:
    """A new variable named after another one."""
    return Var(var.name_hint + suffix, var.type if type is None else type, var.span)
