"""SSAForm: one definition per variable, uses inside its scope, yields where results need them."""

from __future__ import annotations

from enum import Enum

from pypto.ir.expr import Var
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
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
)
from pypto.ir.types import ShapedType
from pypto.ir.visitor import type_exprs
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import direct_uses, iter_stmts, used_vars
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_RULE = "SSAVerify"


class SSAErrorType(Enum):
    MULTIPLE_ASSIGNMENT = 1
    NAME_SHADOWING = 2
    MISSING_YIELD = 3
    ITER_ARGS_RETURN_VARS_MISMATCH = 4
    YIELD_COUNT_MISMATCH = 5
    SCOPE_VIOLATION = 6


MISPLACED_YIELD = 7


@PropertyVerifierRegistry.register(IRProperty.SSAForm)
def verify_ssa(program: Program) -> list[Diagnostic]:
    """SSA form of every function."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        _SSA(function, found).run()
    return found


class _SSA:
    def __init__(self, function: Function, found: list[Diagnostic]) -> None:
        self._function = function
        self._found = found
        self._defined: set[Var] = set()  # anywhere in the function
        self._visible: set[Var] = set()
        # A scalar that the function never defines is a symbol (a dynamic extent), not a scope violation.
        self._own: set[Var] = {v for s in iter_stmts(function.body) for v in _all_definitions(s)}

    def run(self) -> None:
        for param in self._function.params:
            # A write-through may bind a parameter's name once more: the value is the same storage.
            self._visible.add(param)
            for expr in type_exprs(param.type):
                self._visible.update(used_vars(expr))
        self._body(self._function.body, results=None, what="function")

    def _report(self, code, message: str, span: Span) -> None:
        self._found.append(error(_RULE, code, f"{message} in function '{self._function.name}'", span))

    def _define(self, var: Var, span: Span) -> None:
        if var in self._defined:
            self._report(
                SSAErrorType.MULTIPLE_ASSIGNMENT, f"Variable '{var.name_hint}' is assigned more than once", span
            )
        self._defined.add(var)
        self._visible.add(var)

    def _uses(self, variables, span: Span) -> None:
        for var in variables:
            if var not in self._visible and (var in self._own or isinstance(var.type, ShapedType)):
                self._report(
                    SSAErrorType.SCOPE_VIOLATION, f"Variable '{var.name_hint}' used outside its defining scope", span
                )

    def _body(self, body: Stmt | None, *, results: int | None, what: str, span: Span | None = None) -> None:
        """Check a body; ``results`` is the number of values its yield must have (None: a yield is not expected)."""
        stmts = flatten_to_stmts(body)
        for position, stmt in enumerate(stmts):
            if type(stmt) is YieldStmt and position != len(stmts) - 1:
                self._report(
                    MISPLACED_YIELD, f"YieldStmt before the terminating position of the {what} body", stmt.span
                )
            self._stmt(stmt)
        if results:
            last = stmts[-1] if stmts else None
            while isinstance(last, (ScopeStmt, SeqStmts)):
                inner = flatten_to_stmts(last.body if isinstance(last, ScopeStmt) else last)
                last = inner[-1] if inner else None
            if type(last) is not YieldStmt:
                message = f"{what} has results, so its body must have YieldStmt at the end"
                self._report(SSAErrorType.MISSING_YIELD, message, span)
            elif len(last.value) != results:
                self._report(
                    SSAErrorType.YIELD_COUNT_MISMATCH,
                    f"{what} has {results} results but yields {len(last.value)} values",
                    last.span,
                )

    def _stmt(self, stmt: Stmt) -> None:
        kind = type(stmt)
        if kind is IfStmt:
            self._if(stmt)
        elif kind is ForStmt or kind is WhileStmt:
            self._loop(stmt)
        elif isinstance(stmt, ScopeStmt):
            task_id = stmt.attrs.get("task_id_var")
            self._uses([v for v in direct_uses(stmt) if v is not task_id], stmt.span)
            if task_id is not None and task_id not in self._defined:
                self._define(task_id, stmt.span)
            self._body(stmt.body, results=None, what=kind.__name__)
        else:
            self._uses(direct_uses(stmt), stmt.span)
            if kind is AssignStmt:
                self._define(stmt.var, stmt.span)

    def _nested(self, body: Stmt | None, what: str, results: int, span: Span, inside: tuple = ()) -> None:
        outer = self._visible
        self._visible = set(outer)
        for var in inside:
            self._define(var, span)
        self._body(body, results=results, what=what, span=span)
        self._visible = outer

    def _if(self, stmt: IfStmt) -> None:
        self._uses(direct_uses(stmt), stmt.span)
        count = len(stmt.return_vars)
        if count and stmt.else_body is None:
            self._report(SSAErrorType.MISSING_YIELD, "IfStmt has results, so it must have else branch", stmt.span)
        self._nested(stmt.then_body, "IfStmt", count, stmt.span)
        if stmt.else_body is not None:
            self._nested(stmt.else_body, "IfStmt", count, stmt.span)
        for var in stmt.return_vars:
            self._define(var, stmt.span)

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        what = type(stmt).__name__
        uses = direct_uses(stmt)
        own = set(stmt.iter_args)
        self._uses([v for v in uses if v not in own], stmt.span)
        if len(stmt.iter_args) != len(stmt.return_vars):
            self._report(
                SSAErrorType.ITER_ARGS_RETURN_VARS_MISMATCH,
                f"{what}: iter_args count {len(stmt.iter_args)} differs from return_vars count {len(stmt.return_vars)}",
                stmt.span,
            )
        inside = stmt.iter_args if isinstance(stmt, WhileStmt) else (stmt.loop_var, *stmt.iter_args)
        self._nested(stmt.body, what, len(stmt.iter_args), stmt.span, inside)
        for var in stmt.return_vars:
            self._define(var, stmt.span)


def _all_definitions(stmt: Stmt) -> list[Var]:
    kind = type(stmt)
    if kind is AssignStmt:
        return [stmt.var]
    if kind is ForStmt:
        return [stmt.loop_var, *stmt.iter_args, *stmt.return_vars]
    if kind is WhileStmt:
        return [*stmt.iter_args, *stmt.return_vars]
    if kind is IfStmt:
        return list(stmt.return_vars)
    if isinstance(stmt, ScopeStmt) and stmt.attrs.get("task_id_var") is not None:
        return [stmt.attrs["task_id_var"]]
    return []
