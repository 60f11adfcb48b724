"""Warnings about variables and control-flow results that nothing reads."""

from __future__ import annotations

from pypto.ir.program import Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from pypto.passes.context import DiagnosticPhase
from pypto.passes.diagnostics import Diagnostic, DiagnosticCheck, DiagnosticCheckRegistry, DiagnosticSeverity
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_stmts


@DiagnosticCheckRegistry.register(
    DiagnosticCheck.UnusedVariable, DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE
)
def check_unused_variables(program: Program) -> list[Diagnostic]:
    """Assigned variables that are never read; parameters and loop variables are exempt."""
    found: list[Diagnostic] = []
    for function in program.functions.values():
        if function.body is None:
            continue
        reads = count_reads(function)
        reported = set(function.params)
        for stmt in iter_stmts(function.body):
            if type(stmt) is not AssignStmt or reads[stmt.var] or stmt.var in reported:
                continue
            reported.add(stmt.var)
            message = f"Unused variable '{stmt.var.name_hint}' in function '{function.name}'"
            found.append(Diagnostic(DiagnosticSeverity.Warning, "UnusedVariableCheck", 0, message, stmt.span))
    return found


@DiagnosticCheckRegistry.register(
    DiagnosticCheck.UnusedControlFlowResult, DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE
)
def check_unused_results(program: Program) -> list[Diagnostic]:
    """Results of branches and loops that are never read."""
    found: list[Diagnostic] = []
    for function in program.functions.values():
        if function.body is None:
            continue
        reads = count_reads(function)
        for stmt in iter_stmts(function.body):
            if isinstance(stmt, (IfStmt, ForStmt, WhileStmt)):
                for var in stmt.return_vars:
                    if not reads[var]:
                        message = f"Unused control flow result '{var.name_hint}' in function '{function.name}'"
                        found.append(
                            Diagnostic(
                                DiagnosticSeverity.Warning, "UnusedControlFlowResultCheck", 0, message, stmt.span
                            )
                        )
    return found
