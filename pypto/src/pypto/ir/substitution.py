"""Replacing variables and copying statements with fresh variables."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir.expr import Expr, Var
from pypto.ir.memref import MemRef
from pypto.ir.node import replace
from pypto.ir.visitor import IRMutator, type_exprs

VarMap = Sequence[tuple[Var, Expr]]


class _Substituter(IRMutator):
    """Replaces variables at uses and definitions, inside types too; replacements are resolved transitively."""

    def __init__(self, pairs: VarMap):
        super().__init__()
        self.var_map = dict(pairs)
        self._resolving: set[Var] = set()
        self._resolved: dict[Var, Expr] = {}

    def visit_var_like(self, var: Var) -> Expr:
        known = self._resolved.get(var)
        if known is not None:
            return known
        if var in self._resolving:
            return self.var_map.get(var, var)
        self._resolving.add(var)
        try:
            target = self.var_map.get(var)
            if target is None:
                result = self._with_substituted_type(var)
            elif isinstance(target, Var):
                result = target if target in self._resolving else self._with_substituted_type(target)
            else:
                result = target
        finally:
            self._resolving.discard(var)
        self._resolved[var] = result
        return result

    def _with_substituted_type(self, var: Var) -> Var:
        if not type_exprs(var.type):
            return var
        return self._rebuild(var, type=self.visit_type(var.type))

    def visit_def(self, var: Var) -> Var:
        result = self.visit_expr(var)
        return result if isinstance(result, Var) else var

    def visit_mem_ref(self, memref: MemRef) -> Expr:
        if memref in self.var_map:
            return self.var_map[memref]
        known = self._resolved.get(memref)
        if known is None:
            slot = memref.slot_index_
            known = self._resolved[memref] = self._rebuild(
                memref,
                base_=self.visit_expr(memref.base_),
                byte_offset_=self.visit_expr(memref.byte_offset_),
                slot_index_=None if slot is None else self.visit_expr(slot),
            )
        return known

    def visit_iter_args(self, iter_args: tuple) -> tuple:
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            new = self.visit_def(arg)
            if isinstance(new, E.IterArg):
                rebuilt = self._rebuild(new, initValue=init)
                if rebuilt is not new:
                    self._resolved[arg] = rebuilt
                new = rebuilt
            else:
                new = E.IterArg(new.name_hint, new.type, init, new.span)
                self._resolved[arg] = new
            result.append(new)
        return tuple(result)


def substitute_expr(expr: Expr, var_map: VarMap) -> Expr:
    """``expr`` with variables replaced, also inside types; the same object when nothing matches."""
    return _Substituter(var_map).visit_expr(expr) if var_map else expr


def substitute_stmt(body: S.Stmt, var_map: VarMap) -> S.Stmt:
    """``body`` with variables replaced at uses and definitions; the same object when nothing matches."""
    return _Substituter(var_map).visit_stmt(body) if var_map else body


class _Cloner(IRMutator):
    """Fresh variables at every definition; seeds replace uses."""

    def __init__(self, seeds: VarMap):
        super().__init__()
        self.var_map = dict(seeds)
        self.fresh: list[tuple[Var, Var]] = []

    def visit_def(self, var: Var) -> Var:
        known = self.var_map.get(var)
        if isinstance(known, Var):
            return known
        return self._define(var, replace(var, type=self.visit_type(var.type)))

    def _define(self, var: Var, new: Var) -> Var:
        self.var_map[var] = new
        self.fresh.append((var, new))
        return new

    def visit_iter_args(self, iter_args: tuple) -> tuple:
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        return tuple(
            self._define(arg, replace(arg, type=self.visit_type(arg.type), initValue=init))
            for arg, init in zip(iter_args, inits)
        )

    def visit_break_stmt(self, stmt: S.BreakStmt) -> S.Stmt:
        return replace(stmt)

    def visit_continue_stmt(self, stmt: S.ContinueStmt) -> S.Stmt:
        return replace(stmt)

    def visit_return_stmt(self, stmt: S.ReturnStmt) -> S.Stmt:
        new = super().visit_return_stmt(stmt)
        return replace(stmt) if new is stmt else new

    def visit_yield_stmt(self, stmt: S.YieldStmt) -> S.Stmt:
        new = super().visit_yield_stmt(stmt)
        return replace(stmt) if new is stmt else new

    def visit_eval_stmt(self, stmt: S.EvalStmt) -> S.Stmt:
        new = super().visit_eval_stmt(stmt)
        return replace(stmt) if new is stmt else new


def deep_clone(body: S.Stmt, var_map: VarMap = ()) -> tuple[S.Stmt, list[tuple[Var, Var]]]:
    """A copy of ``body`` that shares no definition with it.

    Args:
        body: a statement.
        var_map: replacements of uses, inside types too.

    Returns:
        The copy, and the pairs (original, copy) of every definition; the seeds are not among them.
    """
    cloner = _Cloner(var_map)
    return cloner.visit_stmt(body), cloner.fresh
