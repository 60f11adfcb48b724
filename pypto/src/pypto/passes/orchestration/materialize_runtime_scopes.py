"""MaterializeRuntimeScopes: wrap orchestration bodies, their loops and their branches in runtime scopes."""

from __future__ import annotations

from pypto.ir.enums import is_orchestration_like
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import ForStmt, IfStmt, RuntimeScopeStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, seq
from pypto.passes.lib.auto_dependency_marks import FUNCTION_MARK, REGION_MARK, fully_covered, without_marks
from pypto.passes.lib.rewrite import with_body
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


def _scope(body: Stmt, *, manual: bool = False) -> Stmt:
    """``body`` in a runtime scope, unless it already is one."""
    if isinstance(body, RuntimeScopeStmt):
        return body
    return RuntimeScopeStmt(manual, body=body, span=body.span)


def _wrap(stmt: Stmt) -> Stmt:
    """Wrap the bodies inside ``stmt``; manual scopes keep theirs."""
    kind = type(stmt)
    if kind is SeqStmts:
        children = [_wrap(c) for c in stmt.stmts]
        return stmt if all(a is b for a, b in zip(children, stmt.stmts)) else seq(children, stmt.span)
    if kind is ForStmt:
        attrs = stmt.attrs
        manual = bool(attrs.get(REGION_MARK))
        if manual:
            attrs = {k: v for k, v in attrs.items() if k != REGION_MARK}
            return replace(stmt, body=_scope(stmt.body, manual=True), attrs=attrs)
        return replace(stmt, body=_scope(_wrap(stmt.body)))
    if kind is WhileStmt:
        body = _wrap(stmt.body)
        return stmt if body is stmt.body else replace(stmt, body=body)
    if kind is IfStmt:
        else_body = None if stmt.else_body is None else _scope(_wrap(stmt.else_body))
        return replace(stmt, then_body=_scope(_wrap(stmt.then_body)), else_body=else_body)
    if isinstance(stmt, RuntimeScopeStmt) and stmt.manual:
        return stmt
    if isinstance(stmt, ScopeStmt):
        body = _wrap(stmt.body)
        return stmt if body is stmt.body else replace(stmt, body=body)
    return stmt


@function_pass(
    "MaterializeRuntimeScopes",
    required=(P.SplitIncoreOrch, P.CallDirectionsResolved),
    produced=(P.RuntimeScopesMaterialized,),
)
def materialize_runtime_scopes(function: Function) -> Function:
    """Add AUTO scopes (MANUAL where every dependency was derived) and set ``auto_scope`` to False."""
    attrs = function.attrs
    if not is_orchestration_like(function.func_type) or attrs.get("auto_scope") is False or function.body is None:
        return function
    manual = fully_covered(function)
    body = function.body if manual else _wrap(function.body)
    body = without_marks(body)
    function = with_body(function, _scope(body, manual=manual))
    attrs = {k: v for k, v in function.attrs.items() if k not in ("auto_scope", FUNCTION_MARK)}
    return replace(function, attrs={**attrs, "auto_scope": False})
