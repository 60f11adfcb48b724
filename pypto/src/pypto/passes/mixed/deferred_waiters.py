"""Audit of kernels that register deferred completions: they must be plain single-block tasks of an orchestration."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import is_incore_type, is_orchestration_like
from pypto.ir.expr import Call, GlobalVar, Submit
from pypto.ir.program import Function, Program
from pypto.passes.lib.walk import iter_calls

ATTR = "deferred_completion_waiter"
_WAIT = "pld.system.defer_wait"


def check_deferred_waiters(program: Program) -> None:
    """Reject deferred waits outside the task contract.

    Raises:
        ValueError: a kernel waits without being marked, is never launched, or is launched with an option that a
            deferred completion cannot honour.
    """
    waiters = {
        f.name: f
        for f in program.functions.values()
        if is_incore_type(f.func_type) and f.body is not None and any(c.op.name == _WAIT for _, c in iter_calls(f.body))
    }
    if not waiters:
        return
    launches: dict[str, list[Call | Submit]] = {name: [] for name in waiters}
    for function in program.functions.values():
        if not is_orchestration_like(function.func_type) or function.body is None:
            continue
        for _, call in iter_calls(function.body):
            if isinstance(call.op, GlobalVar) and call.op.name in launches:
                launches[call.op.name].append(call)
    for name, function in waiters.items():
        _check(function, launches[name])


def _check(function: Function, launches: list[Call | Submit]) -> None:
    name = function.name
    if not function.attrs.get(ATTR):
        raise user_error(
            f"kernel '{name}': pld.system.defer_wait bypasses the deferred-waiter task contract; write it in a "
            "pl.at region of the orchestration that holds nothing else",
            span=function.span,
        )
    if not launches:
        raise user_error(f"deferred waiter '{name}' has no task-level Orchestration call site", span=function.span)
    for call in launches:
        option = {k: call.attrs.get(k) or getattr(call, k, None) for k in _OPTIONS}
        if option["allow_early_resolve"]:
            raise user_error(f"deferred waiter '{name}' cannot use allow_early_resolve=True", span=call.span)
        if option["core_num"] is not None or option["sync_start"]:
            raise user_error(
                f"deferred waiter '{name}' must be a single-block task without core_num or sync_start", span=call.span
            )
        if option["predicate"] is not None:
            raise user_error(f"deferred waiter '{name}' cannot use a dispatch predicate", span=call.span)


_OPTIONS = ("allow_early_resolve", "core_num", "sync_start", "predicate")
