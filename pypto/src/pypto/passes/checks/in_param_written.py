"""Warning: a kernel writes a parameter that it declares as an input."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.program import Program
from pypto.passes.context import DiagnosticPhase
from pypto.passes.diagnostics import Diagnostic, DiagnosticCheck, DiagnosticCheckRegistry, DiagnosticSeverity
from pypto.passes.lib.access import ParamAccess


@DiagnosticCheckRegistry.register(
    DiagnosticCheck.InParamWritten, DiagnosticSeverity.Warning, DiagnosticPhase.POST_PIPELINE
)
def check_written_inputs(program: Program) -> list[Diagnostic]:
    """In parameters that operators or callees write, directly or through views.

    The runtime orders tasks by declared directions, so such a write races with other users of the tensor.
    """
    found: list[Diagnostic] = []
    for function in program.functions.values():
        if function.body is None or function.func_type is FunctionType.Orchestration:
            continue
        if ParamDirection.In not in function.param_directions:
            continue
        written = ParamAccess(function, program.get_function).written
        for param, direction in zip(function.params, function.param_directions):
            if direction is ParamDirection.In and param in written:
                message = (
                    f"In parameter '{param.name_hint}' of function '{function.name}' is written, so other tasks that "
                    "use the tensor are not ordered after it; declare it pl.Out or pl.InOut"
                )
                found.append(Diagnostic(DiagnosticSeverity.Warning, "InParamWritten", 0, message, param.span))
    return found
