"""Marks by which AutoDeriveTaskDependencies tells MaterializeRuntimeScopes what it covered."""

from __future__ import annotations

from pypto.ir.expr import Call, Expr, Submit
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import Stmt
from pypto.ir.visitor import IRMutator

#: Function attribute: every dependency of the whole body is explicit.
FUNCTION_MARK = "__compiler_auto_manual_layer_candidate"
#: Call (and loop) attribute: covered by explicit dependencies.
REGION_MARK = "__compiler_auto_manual_scope_candidate"


def fully_covered(function: Function) -> bool:
    """Every task of the function has explicit dependencies."""
    return bool(function.attrs.get(FUNCTION_MARK))


class _Unmark(IRMutator):
    def visit_type(self, kind):
        return kind

    def _unmarked(self, call: Call | Submit) -> Expr:
        if REGION_MARK not in call.attrs:
            return call
        return replace(call, attrs={k: v for k, v in call.attrs.items() if k != REGION_MARK})

    def visit_call(self, call: Call) -> Expr:
        return self._unmarked(call)

    def visit_submit(self, submit: Submit) -> Expr:
        return self._unmarked(submit)


def without_marks(stmt: Stmt) -> Stmt:
    """``stmt`` with the call marks removed."""
    return _Unmark().visit_stmt(stmt)
