"""Instruments: observers that run before and after every pass of the active context."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.program import Program
from pypto.passes.context import VerificationMode
from pypto.passes.pass_ import Pass
from pypto.passes.properties import STRUCTURAL

Callback = Callable[[Pass, Program], None]


class PassInstrument:
    """Base of instruments; subclasses override the callbacks they need."""

    def get_name(self) -> str:
        return type(self).__name__

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        """Called before ``pass_`` with its input."""

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Called after ``pass_`` with its result."""


class VerificationInstrument(PassInstrument):
    """Checks required properties before and produced properties after each pass, with the structural ones."""

    def __init__(self, mode: VerificationMode):
        self._mode = mode

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        if self._mode in (VerificationMode.BEFORE, VerificationMode.BEFORE_AND_AFTER):
            from pypto.passes.verification import verify_or_raise

            wanted = pass_.get_required_properties().union_with(STRUCTURAL)
            verify_or_raise(wanted, program, f"Pre-verification failed before pass '{pass_.get_name()}'")

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        if self._mode in (VerificationMode.AFTER, VerificationMode.BEFORE_AND_AFTER):
            from pypto.passes.verification import verify_or_raise

            wanted = pass_.get_produced_properties().union_with(STRUCTURAL)
            verify_or_raise(wanted, program, f"Post-verification failed after pass '{pass_.get_name()}'")


class CallbackInstrument(PassInstrument):
    """Calls plain functions ``callback(pass_, program)``."""

    def __init__(
        self,
        before_pass: Callback | None = None,
        after_pass: Callback | None = None,
        name: str = "CallbackInstrument",
    ):
        self._before, self._after, self._name = before_pass, after_pass, name

    def get_name(self) -> str:
        return self._name

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        if self._before is not None:
            self._before(pass_, program)

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        if self._after is not None:
            self._after(pass_, program)


class DiagnosticInstrument(PassInstrument):
    """Runs diagnostic checks of phase POST_PASS after each pass and emits what they find."""

    def __init__(self, checks=None):
        from pypto.passes.diagnostics import DiagnosticCheckRegistry

        self._checks = DiagnosticCheckRegistry.get_all_checks() if checks is None else checks.copy()

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        from pypto.passes.context import DiagnosticPhase
        from pypto.passes.diagnostics import DiagnosticCheckRegistry, emit_diagnostics

        emit_diagnostics(DiagnosticCheckRegistry.run_checks(self._checks, DiagnosticPhase.POST_PASS, program))


class ReportInstrument(PassInstrument):
    """Carries the directory that reports go to; writes nothing by itself."""

    def __init__(self, output_dir: str):
        self._output_dir = str(output_dir)

    def get_output_dir(self) -> str:
        return self._output_dir


def make_roundtrip_instrument() -> CallbackInstrument:
    """After each pass: print the program, parse the text, compare structure and hash.

    The instrument raises ``RuntimeError`` whose text begins ``[RoundtripInstrument]`` and names the pass.
    """
    return CallbackInstrument(after_pass=_check_roundtrip, name="RoundtripInstrument")


def _check_roundtrip(pass_: Pass, program: Program) -> None:
    from pypto import ir
    from pypto.ir.printer import python_print
    from pypto.ir.structural import assert_structural_equal, structural_hash
    from pypto.language.parser import text_parser

    where = f"[RoundtripInstrument] after pass '{pass_.get_name()}'"
    if any(isinstance(p.type, ir.UnknownType) for f in program.functions.values() for p in f.params):
        return  # hand-built IR whose types no text can state
    try:
        text = python_print(program)
    except Exception as error:
        raise RuntimeError(f"{where}: the program could not be printed: {error}") from error
    try:
        parsed = text_parser.parse(text)
    except Exception as error:
        rendered = getattr(error, "rendered", None) or str(error)
        raise RuntimeError(f"{where}: the printed program could not be parsed:\n{rendered}") from error
    try:
        assert_structural_equal(program, parsed)
    except ValueError as error:
        raise RuntimeError(f"{where}: parsing the printed program gives another one: {error}\n{text}") from error
    if structural_hash(program) != structural_hash(parsed):
        raise RuntimeError(f"{where}: the program and its reparsed text are equal but hash differently\n{text}")
