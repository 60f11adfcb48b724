"""Running verifiers: the registry of property checks, reports, and the verifier pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypto.errors import VerificationError
from pypto.ir.program import Program
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity
from pypto.passes.pass_ import Pass, PassProperties
from pypto.passes.properties import DEFAULT_VERIFY, IRProperty, IRPropertySet

Verifier = Callable[[Program], "list[Diagnostic]"]


class PropertyVerifierRegistry:
    """One verifier per property, found in ``passes.verifiers``."""

    _verifiers: dict[IRProperty, Verifier] = {}

    @classmethod
    def register(cls, prop: IRProperty) -> Callable[[Verifier], Verifier]:
        """Decorator: ``function(program) -> list[Diagnostic]`` verifies ``prop``."""

        def add(function: Verifier) -> Verifier:
            cls._verifiers[prop] = function
            return function

        return add

    @classmethod
    def verify(cls, properties: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
        """Findings of every given property, in enum order; properties without a verifier find nothing."""
        from pypto.passes import verifiers  # noqa: F401  (registers the verifiers)

        found: list[Diagnostic] = []
        for prop in IRPropertySet(properties):
            verifier = cls._verifiers.get(prop)
            if verifier is not None:
                found.extend(verifier(program))
        return found

    @classmethod
    def verify_or_throw(cls, properties: Iterable[IRProperty], program: Program) -> None:
        """Raise ``pypto.Error`` with the report when an error is found."""
        verify_or_raise(properties, program, "Verification failed")

    @staticmethod
    def generate_report(diagnostics: list[Diagnostic]) -> str:
        """Readable list of findings."""
        errors = sum(d.severity is DiagnosticSeverity.Error for d in diagnostics)
        lines = ["IR Verification Report", "=" * 22, f"{errors} error(s), {len(diagnostics) - errors} other(s)"]
        for d in diagnostics:
            where = f" at {d.span}" if d.span.is_valid() else ""
            lines.append(f"[{d.severity.name}] {d.rule_name} (code {d.error_code}): {d.message}{where}")
        if not diagnostics:
            lines.append("no findings")
        return "\n".join(lines)


def verify_or_raise(properties: Iterable[IRProperty], program: Program, headline: str) -> None:
    """Raise a VerificationError whose text is ``headline`` and the report, when an error is found."""
    found = PropertyVerifierRegistry.verify(properties, program)
    if any(d.severity is DiagnosticSeverity.Error for d in found):
        raise VerificationError(f"{headline}\n{PropertyVerifierRegistry.generate_report(found)}", found)


def verify_properties(properties: IRPropertySet, program: Program, pass_name: str) -> None:
    """Raise ``pypto.Error`` ("Verification failed ...") when one of ``properties`` does not hold."""
    verify_or_raise(properties, program, f"Verification failed after '{pass_name}' for properties {properties}")


def run_verifier(properties: IRPropertySet | None = None) -> Pass:
    """A pass that changes nothing and raises ``pypto.Error`` when a property does not hold (None: default set)."""
    wanted = IRPropertySet(DEFAULT_VERIFY if properties is None else properties)

    def check(program: Program) -> Program:
        verify_or_raise(wanted, program, "Verification failed")
        return program

    return Pass(check, "IRVerifier", PassProperties())
