"""HardSyncallOccupancyValid: a hardware barrier is launched on every core that it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pypto.ir.enums import CoreType, FunctionType
from pypto.ir.expr import Call, ConstInt, Expr, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt
from pypto.passes.context import backend_handler
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.core_affinity import CORE_COUNT_QUERIES
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.walk import iter_calls, iter_stmts
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_RULE = "HardSyncallOccupancy"
_WRAPPERS = (FunctionType.Spmd, FunctionType.Group)
_VECTOR_QUERY, _CUBE_QUERY = CORE_COUNT_QUERIES


@dataclass(frozen=True)
class _Cores:
    """The cores that a launch has to fill."""

    name: str
    core: CoreType
    barrier: str
    query: str


_VECTOR = _Cores("AIV cores", CoreType.VECTOR, "aiv_only", _VECTOR_QUERY)
_CUBE = _Cores("AIC cores", CoreType.CUBE, "aic_only", _CUBE_QUERY)
_BOTH = _Cores("core-groups", CoreType.CUBE, "", _CUBE_QUERY)


@PropertyVerifierRegistry.register(IRProperty.HardSyncallOccupancyValid)
def verify_hard_barriers(program: Program) -> list[Diagnostic]:
    """Every SPMD launch of a kernel with a hard barrier fills the cores of the barrier at once.

    A core without a block never arrives, and a block that is dispatched later arrives too late: both hang the device.
    """
    handler = backend_handler()
    barriers = {f.name: found for f in defined_functions(program) if (found := _hard_barriers(f))}
    if handler is None or not barriers:
        return []
    found: list[Diagnostic] = []
    for caller in defined_functions(program):
        if caller.func_type in _WRAPPERS:
            continue
        values: dict[Expr, Expr] | None = None
        for stmt, call in iter_calls(caller.body):
            target = program.get_function(call.op.name) if is_user_call(call) else None
            if target is None:
                continue
            width, together = _launch(call, target)
            if width is None:
                continue
            kernels = list(_kernels(program, target))
            if values is None:
                values = {s.var: s.value for s in iter_stmts(caller.body) if type(s) is AssignStmt}
            for kernel in kernels:
                for core_type in barriers.get(kernel.name, ()):
                    cores = _cores(kernel, len(kernels) > 1)
                    problem = _problem(kernel, cores, core_type, _resolved(width, values), together, handler)
                    if problem is not None:
                        found.append(error(_RULE, 1, problem, stmt.span))
    return found


def _hard_barriers(function: Function) -> list[str]:
    """Core types of the hard barriers of a kernel."""
    return [
        call.kwargs.get("core_type", "mix")
        for _, call in iter_calls(function.body)
        if call.op.name == "system.syncall" and call.kwargs.get("mode", "hard") == "hard"
    ]


def _launch(call: Call | Submit, target: Function) -> tuple[Expr | int | None, bool]:
    """(number of blocks, blocks start together) of a launch; the target's own attributes stand in for missing ones."""
    width = call.core_num if isinstance(call, Submit) else None
    if width is None:
        width = call.attrs.get("core_num")
    if width is not None:
        together = getattr(call, "sync_start", None)
        return width, bool(call.attrs.get("sync_start") if together is None else together)
    return target.attrs.get("core_num"), bool(target.attrs.get("sync_start"))


def _kernels(program: Program, function: Function | None) -> Iterator[Function]:
    """The kernels that a launch runs, through SPMD and group wrappers."""
    if function is None:
        return
    if function.func_type not in _WRAPPERS:
        yield function
        return
    for _, call in iter_calls(function.body):
        if is_user_call(call):
            yield from _kernels(program, program.get_function(call.op.name))


def _cores(kernel: Function, grouped: bool) -> _Cores:
    if grouped or kernel.attrs.get("dual_aiv_dispatch"):
        return _BOTH
    return _CUBE if kernel.func_type is FunctionType.AIC else _VECTOR


def _resolved(width: Expr | int, values: dict[Expr, Expr]) -> Expr | int:
    for _ in range(len(values) + 1):
        if not isinstance(width, Var) or width not in values:
            break
        width = values[width]
    return width


def _problem(
    kernel: Function, cores: _Cores, core_type: str, width: Expr | int, together: bool, handler
) -> str | None:  # fmt: skip
    what = f"the hard system.syncall(core_type='{core_type}') of kernel '{kernel.name}'"
    if cores.barrier and core_type != cores.barrier:
        return f"{what} can never complete: the launch has {cores.name} only; use core_type='{cores.barrier}'"
    count = handler.backend.get_core_count(cores.core)
    query = width.op.name if isinstance(width, Call) else ""
    blocks = width.value if isinstance(width, ConstInt) else width
    if query in CORE_COUNT_QUERIES and query != cores.query:
        return f"{what} waits for all {cores.name}, but pl.{query}() sizes the launch; use pl.{cores.query}()"
    if isinstance(blocks, int) and blocks != count:
        return f"{what} needs a launch to fill all {count} {cores.name}, got {blocks} blocks"
    known = isinstance(blocks, int) or query == cores.query
    if known and not together:
        return f"{what} needs all blocks at once; launch with sync_start=True"
    return None
