"""UseAfterDef: every read is dominated by a definition, in the pre-SSA sense."""

from __future__ import annotations

from pypto.ir.enums import FunctionType
from pypto.ir.expr import Expr, Var
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, CommDomainScopeStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import PtrType
from pypto.ir.visitor import IRVisitor, attr_exprs, type_exprs
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import direct_uses
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

USE_BEFORE_DEF = 401


@PropertyVerifierRegistry.register(IRProperty.UseAfterDef)
def verify_use_after_def(program: Program) -> list[Diagnostic]:
    """Reads of variables that no statement before them defines."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if function.func_type is not FunctionType.Inline:
            _Definitions(function, found).run()
    return found


class _Leaves(IRVisitor):
    """Variables inside an expression of a type."""

    def __init__(self) -> None:
        self.found: list[Var] = []

    def visit_var(self, var: Var) -> None:
        self.found.append(var)

    def visit_iter_arg(self, var: Var) -> None:
        self.found.append(var)

    def visit_mem_ref(self, memref: MemRef) -> None:
        pass

    def visit_window_buffer(self, buffer: WindowBuffer) -> None:
        pass


def _leaves(exprs) -> list[Var]:
    reader = _Leaves()
    for expr in exprs:
        reader.visit_expr(expr)
    return reader.found


class _Definitions:
    def __init__(self, function: Function, found: list[Diagnostic]) -> None:
        self._function = function
        self._found = found
        self._defined: set[Var] = set()
        self._reported: set[Var] = set()

    def run(self) -> None:
        function = self._function
        for param in function.params:
            # Symbols in the type of a parameter are defined by the signature.
            self._defined.update(_leaves(type_exprs(param.type)))
            self._defined.add(param)
        for kind in function.return_types:
            self._defined.update(_leaves(type_exprs(kind)))
        self._read(_leaves(attr_exprs(function.attrs)), function.span)
        self._body(function.body)

    def _read(self, variables: list[Var], span: Span) -> None:
        for var in variables:
            if var in self._defined or var in self._reported or isinstance(var, (MemRef, WindowBuffer)):
                continue
            if isinstance(var.type, PtrType):
                continue  # the identity of an allocation is defined where it is first named
            self._reported.add(var)
            message = f"Variable '{var.name_hint}' used before definition in function '{self._function.name}'"
            self._found.append(error("UseAfterDefCheck", USE_BEFORE_DEF, message, span))

    def _types(self, variables, span: Span) -> None:
        exprs: list[Expr] = [e for var in variables for e in type_exprs(var.type)]
        if exprs:
            self._read(_leaves(exprs), span)

    def _body(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            self._stmt(stmt)

    def _stmt(self, stmt: Stmt) -> None:
        kind = type(stmt)
        defined = self._defined
        if kind is IfStmt:
            self._read(direct_uses(stmt), stmt.span)
            before = set(defined)
            self._body(stmt.then_body)
            after_then = self._defined
            self._defined = set(before)
            self._body(stmt.else_body)
            # Without results the definitions of the branches stay visible: code before SSA may rely on it.
            self._defined = before if stmt.return_vars else after_then | self._defined
            self._types(stmt.return_vars, stmt.span)
            self._defined.update(stmt.return_vars)
        elif kind is ForStmt or kind is WhileStmt:
            own = set(stmt.iter_args)
            self._read([v for v in direct_uses(stmt) if v not in own], stmt.span)
            before = set(defined)
            self._types(stmt.iter_args, stmt.span)
            defined.update(own)
            if kind is ForStmt:
                defined.add(stmt.loop_var)
            self._body(stmt.body)
            if stmt.return_vars:
                self._defined = before
            else:
                self._defined.difference_update(own)
                if kind is ForStmt:
                    self._defined.discard(stmt.loop_var)
            self._types(stmt.return_vars, stmt.span)
            self._defined.update(stmt.return_vars)
        elif isinstance(stmt, ScopeStmt):
            task_id = stmt.attrs.get("task_id_var")
            self._read([v for v in direct_uses(stmt) if v is not task_id], stmt.span)
            if isinstance(stmt, CommDomainScopeStmt):
                self._defined.update(stmt.slots)
            self._body(stmt.body)
            if task_id is not None:
                self._defined.add(task_id)
        else:
            self._read(direct_uses(stmt), stmt.span)
            if kind is AssignStmt:
                self._types((stmt.var,), stmt.span)
                self._defined.add(stmt.var)
