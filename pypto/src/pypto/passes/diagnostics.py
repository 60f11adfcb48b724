"""Diagnostics: records found by verifiers and checks, the check registry, and how they reach the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import Enum

from pypto.ir.program import Program
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.passes.context import DiagnosticPhase, PassContext
from pypto.passes.properties import EnumSet


class DiagnosticSeverity(Enum):
    Error = 0
    Warning = 1
    PerfHint = 2


class Diagnostic:
    """One finding: severity, rule, codes, message and place."""

    __slots__ = ("error_code", "hint_code", "message", "rule_name", "severity", "span")

    def __init__(
        self,
        severity: DiagnosticSeverity,
        rule_name: str,
        error_code: int,
        message: str,
        span: Span = UNKNOWN_SPAN,
        hint_code: str = "",
    ):
        self.severity = severity
        self.rule_name = rule_name
        self.error_code = error_code
        self.hint_code = hint_code
        self.message = message
        self.span = span

    def __repr__(self) -> str:
        return f"Diagnostic({self.severity.name}, {self.rule_name}, {self.error_code}, {self.message!r}, {self.span})"


class DiagnosticCheck(Enum):
    UnusedVariable = 0
    UnusedControlFlowResult = 1
    OutParamWriteDropped = 2
    TileInnermostDimGranularity = 3
    InParamWritten = 4


class DiagnosticCheckSet(EnumSet[DiagnosticCheck]):
    """A set of :class:`DiagnosticCheck`."""

    member_type = DiagnosticCheck
    __slots__ = ()


#: Checks a context leaves out unless it says otherwise.
DEFAULT_DISABLED = DiagnosticCheckSet((DiagnosticCheck.UnusedControlFlowResult,))

CheckFunction = Callable[[Program], "list[Diagnostic]"]


class DiagnosticCheckRegistry:
    """The checks with their severity and phase."""

    _checks: dict[DiagnosticCheck, tuple[DiagnosticSeverity, DiagnosticPhase, CheckFunction]] = {}

    @classmethod
    def register(
        cls, check: DiagnosticCheck, severity: DiagnosticSeverity, phase: DiagnosticPhase
    ) -> Callable[[CheckFunction], CheckFunction]:
        """Decorator: ``function(program) -> list[Diagnostic]`` implements ``check``."""

        def add(function: CheckFunction) -> CheckFunction:
            cls._checks[check] = (severity, phase, function)
            return function

        return add

    @classmethod
    def _with_severity(cls, severity: DiagnosticSeverity) -> DiagnosticCheckSet:
        from pypto.passes import checks  # noqa: F401  (registers the checks)

        return DiagnosticCheckSet(c for c, (s, _, _) in cls._checks.items() if s is severity)

    @classmethod
    def get_warning_checks(cls) -> DiagnosticCheckSet:
        return cls._with_severity(DiagnosticSeverity.Warning)

    @classmethod
    def get_perf_hint_checks(cls) -> DiagnosticCheckSet:
        return cls._with_severity(DiagnosticSeverity.PerfHint)

    @classmethod
    def get_all_checks(cls) -> DiagnosticCheckSet:
        return cls.get_warning_checks().union_with(cls.get_perf_hint_checks())  # type: ignore[return-value]

    @classmethod
    def run_checks(cls, checks: DiagnosticCheckSet, phase: DiagnosticPhase, program: Program) -> list[Diagnostic]:
        """Findings of the given checks that are registered for ``phase``."""
        cls.get_warning_checks()
        found: list[Diagnostic] = []
        for check in checks:
            if check in cls._checks and cls._checks[check][1] is phase:
                found.extend(cls._checks[check][2](program))
        return found

    @classmethod
    def run_warnings(cls, program: Program, check: DiagnosticCheck) -> list[Diagnostic]:
        """Findings of one check, whatever its phase."""
        cls.get_warning_checks()
        return cls._checks[check][2](program)


def report_directory() -> str | None:
    """Directory of the active context's ReportInstrument, or None."""
    context = PassContext.current()
    for instrument in context.get_instruments() if context else ():
        directory = getattr(instrument, "get_output_dir", None)
        if directory is not None:
            return directory()
    return None


def emit_diagnostics(found: Iterable[Diagnostic]) -> None:
    """Send warnings to the log and performance hints to the report file, or to the log without one."""
    from pypto import logging as log

    hints: list[Diagnostic] = []
    for diagnostic in found:
        if diagnostic.severity is DiagnosticSeverity.PerfHint:
            hints.append(diagnostic)
        else:
            log.log_warn(f"[{diagnostic.rule_name}] {diagnostic.message}{_at(diagnostic.span)}")
    if not hints:
        return
    lines = [f"[perf_hint {h.hint_code or h.rule_name}] {h.message}{_at(h.span)}" for h in hints]
    directory = report_directory()
    if directory is None:
        for line in lines:
            log.log_info(line)
        return
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "perf_hints.log")
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    sites = len({str(h.span) for h in hints})
    log.log_info(f"[perf_hint] {len(hints)} hints across {sites} sites; see {path}")


def perf_hint(code: str, message: str, span: Span = UNKNOWN_SPAN) -> None:
    """Emit one performance hint from inside a pass, unless diagnostics are silenced."""
    from pypto.passes.context import active_diagnostic_phase

    if active_diagnostic_phase() is not DiagnosticPhase.NONE:
        emit_diagnostics([Diagnostic(DiagnosticSeverity.PerfHint, code, 0, message, span, code)])


def run_phase(phase: DiagnosticPhase, program: Program) -> None:
    """Run and emit the enabled checks of ``phase``."""
    context = PassContext.current()
    disabled = context.get_disabled_diagnostics() if context else DEFAULT_DISABLED
    checks = DiagnosticCheckRegistry.get_all_checks().difference(disabled)
    emit_diagnostics(DiagnosticCheckRegistry.run_checks(checks, phase, program))  # type: ignore[arg-type]


def _at(span: Span) -> str:
    return f" [{span}]" if span.is_valid() else ""
