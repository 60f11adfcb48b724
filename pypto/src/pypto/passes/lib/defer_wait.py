"""The contract of task regions that end by registering deferred waits (``pld.system.defer_wait``)."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.expr import Call, GlobalVar
from pypto.ir.program import Function
from pypto.ir.stmt import (
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.walk import iter_calls, iter_stmts, stmt_call

_OP = "pld.system.defer_wait"
MAX_CONDITIONS = 64


def is_deferred_waiter(body: Stmt) -> bool:
    """Whether a region registers deferred waits."""
    return any(call.op.name == _OP for _, call in iter_calls(body))


def check_deferred_waits(function: Function) -> None:
    """Raise ``ValueError`` for a region of ``function`` that breaks the contract."""
    if not is_deferred_waiter(function.body):
        return
    _check_nesting(function.body, inside_task=False)
    for stmt in iter_stmts(function.body):
        if isinstance(stmt, InCoreScopeStmt) and is_deferred_waiter(stmt.body):
            if stmt.attrs.get("allow_early_resolve"):
                raise user_error(
                    "a region with pld.system.defer_wait cannot use allow_early_resolve=True: it completes only when "
                    "its conditions hold",
                    span=stmt.span,
                )
            _check_region(stmt)


def _check_nesting(body: Stmt | None, *, inside_task: bool) -> None:
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, (InCoreScopeStmt, ClusterScopeStmt, SpmdScopeStmt, HierarchyScopeStmt)):
            outermost_incore = isinstance(stmt, InCoreScopeStmt) and not inside_task
            if not outermost_incore and is_deferred_waiter(stmt.body):
                raise user_error(
                    "pld.system.defer_wait must be in a task-level pl.at(CORE_GROUP) region; nesting it in another "
                    "task construct is unsupported",
                    span=stmt.span,
                )
            _check_nesting(stmt.body, inside_task=True)
        elif isinstance(stmt, IfStmt):
            _check_nesting(stmt.then_body, inside_task=inside_task)
            _check_nesting(stmt.else_body, inside_task=inside_task)
        elif isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
            _check_nesting(stmt.body, inside_task=inside_task)


def _check_region(scope: InCoreScopeStmt) -> None:
    count = _conditions(scope.body)
    if count > MAX_CONDITIONS:
        raise user_error(
            f"pld.system.defer_wait registers at most {MAX_CONDITIONS} conditions per task, this region has {count}",
            span=scope.span,
        )
    _check_order(scope.body, registered=False)


def _conditions(body: Stmt | None) -> int:
    total = 0
    for stmt in flatten_to_stmts(body):
        call = stmt_call(stmt)
        if call is not None and call.op.name == _OP:
            total += 1
        elif isinstance(stmt, IfStmt):
            total += max(_conditions(stmt.then_body), _conditions(stmt.else_body))
        elif isinstance(stmt, (ForStmt, WhileStmt)) and is_deferred_waiter(stmt.body):
            trips = trip_count(stmt.start, stmt.stop, stmt.step) if isinstance(stmt, ForStmt) else None
            if not trips:
                raise user_error(
                    "a loop around pld.system.defer_wait needs a statically known positive trip count", span=stmt.span
                )
            total += trips * _conditions(stmt.body)
        elif isinstance(stmt, ScopeStmt):
            total += _conditions(stmt.body)
    return total


def _check_order(body: Stmt | None, *, registered: bool) -> bool:
    """Check statements in order; returns whether a condition is registered at the end."""
    for stmt in flatten_to_stmts(body):
        call = stmt_call(stmt)
        if call is not None:
            registered = _check_call(call, registered)
        elif isinstance(stmt, IfStmt):
            then_registered = _check_order(stmt.then_body, registered=registered)
            registered = _check_order(stmt.else_body, registered=registered) or then_registered
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            inside = _check_order(stmt.body, registered=registered)
            if inside and not registered and any(c.op.name == "tensor.read" for _, c in iter_calls(stmt.body)):
                raise user_error(
                    "a loop may execute tensor reads in one iteration after registering pld.system.defer_wait in an "
                    "earlier one; read before the loop",
                    span=stmt.span,
                )
            registered = inside
        elif isinstance(stmt, ScopeStmt):
            registered = _check_order(stmt.body, registered=registered)
    return registered


def _check_call(call: Call, registered: bool) -> bool:
    name = call.op.name
    if name == _OP:
        return True
    if name == "tensor.read":
        if registered:
            raise user_error(
                "a region cannot execute tensor reads after the registration of pld.system.defer_wait", span=call.span
            )
        return registered
    if name in ("tensor.write", "tensor.create", "tensor.assemble", "tensor.full"):
        raise user_error(
            f"a region with pld.system.defer_wait cannot create or update payload tensors ({name})", span=call.span
        )
    if isinstance(call.op, GlobalVar) or (name.startswith(("tensor.", "tile.", "pld.")) and name != "tensor.dim"):
        raise user_error(
            f"a region with pld.system.defer_wait supports only a pre-registration tensor.read, not {name}",
            span=call.span,
        )
    return registered
