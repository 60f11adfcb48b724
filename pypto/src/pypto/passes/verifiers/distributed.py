"""Properties of distributed programs: window buffers belong to one communication domain, contexts are parameters."""

from __future__ import annotations

from pypto.ir.expr import Call
from pypto.ir.memref import WindowBuffer
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, CommDomainScopeStmt
from pypto.ir.types import DistributedTensorType
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.distributed.host import ALLOC, WINDOW, is_host
from pypto.passes.lib.walk import iter_calls, iter_stmts
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_DOMAINS, _CONTEXTS = "CommDomainScopesMaterialized", "DistTensorCtxMaterialized"


@PropertyVerifierRegistry.register(IRProperty.CommDomainScopesMaterialized)
def verify_comm_domains(program: Program) -> list[Diagnostic]:
    """Every allocated window buffer of a host function is a slot of exactly one domain, and its views know it."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if is_host(function):
            _domains(function, found)
    return found


def _domains(function: Function, found: list[Diagnostic]) -> None:
    owner: dict[WindowBuffer, CommDomainScopeStmt] = {}
    for stmt in iter_stmts(function.body):
        if not isinstance(stmt, CommDomainScopeStmt):
            continue
        for slot in stmt.slots:
            if slot in owner:
                message = (
                    f"window buffer '{slot.name_hint}' appears in multiple CommDomainScopeStmts of function "
                    f"'{function.name}'"
                )
                found.append(error(_DOMAINS, 1, message, stmt.span))
            owner.setdefault(slot, stmt)
    for stmt in iter_stmts(function.body):
        value = stmt.value if isinstance(stmt, AssignStmt) else None
        if not isinstance(value, Call):
            continue
        if value.op.name == ALLOC and not owner:
            message = f"function '{function.name}' allocates window buffers outside any communication domain"
            found.append(error(_DOMAINS, 2, message, stmt.span))
        elif value.op.name == WINDOW and isinstance(stmt.var.type, DistributedTensorType):
            if stmt.var.type.window_buffer is None or stmt.var.type.window_buffer not in owner:
                message = (
                    f"view '{stmt.var.name_hint}' in function '{function.name}' names no window buffer of a domain"
                )
                found.append(error(_DOMAINS, 3, message, stmt.span))


@PropertyVerifierRegistry.register(IRProperty.DistTensorCtxMaterialized)
def verify_contexts(program: Program) -> list[Diagnostic]:
    """Only host functions ask for the context of a distributed tensor; everything else gets it as a parameter."""
    return [
        error(
            _CONTEXTS,
            1,
            f"function '{function.name}' calls pld.system.get_comm_ctx; outside host orchestration the context is a "
            "parameter",
            stmt.span,
        )
        for function in defined_functions(program)
        if not is_host(function)
        for stmt, call in iter_calls(function.body)
        if call.op.name == "pld.system.get_comm_ctx"
    ]
