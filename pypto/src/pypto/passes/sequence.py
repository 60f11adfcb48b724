"""A sequence of passes with automatic verification and diagnostics around each."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pypto.ir.program import Program
from pypto.passes.context import (
    DiagnosticPhase,
    VerificationLevel,
    active_diagnostic_phase,
    active_verification_level,
)
from pypto.passes.diagnostics import run_phase
from pypto.passes.pass_ import Pass
from pypto.passes.properties import STRUCTURAL, VERIFIED, IRPropertySet
from pypto.passes.verification import verify_properties


@contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """No cycle collections inside: IR is a tree, and walking the growing heap again and again costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class PassPipeline:
    """Runs passes in order; a property is verified once, where it is first produced."""

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def add_pass(self, pass_: Pass) -> None:
        self._passes.append(pass_)

    def get_pass_names(self) -> list[str]:
        return [p.get_name() for p in self._passes]

    def get_passes(self) -> list[Pass]:
        return list(self._passes)

    def run(self, program: Program) -> Program:
        """Apply every pass.

        Raises:
            pypto.Error: when a verified property does not hold.
        """
        with _without_cycle_collection():
            return self._run(program)

    def _run(self, program: Program) -> Program:
        verify = active_verification_level() is not VerificationLevel.NONE
        diagnose = active_diagnostic_phase() is not DiagnosticPhase.NONE
        marks = IRPropertySet()
        if verify:
            at_input = STRUCTURAL.intersection(VERIFIED)
            verify_properties(at_input, program, "pipeline_input")  # type: ignore[arg-type]
            marks = at_input.copy()
        if diagnose:
            run_phase(DiagnosticPhase.PRE_PIPELINE, program)
        for pass_ in self._passes:
            program = pass_(program)
            if verify:
                due = pass_.get_produced_properties().intersection(VERIFIED).difference(marks)
                # An invalidated property that the same pass produces must be looked at again.
                due = due.union_with(
                    pass_.get_invalidated_properties()
                    .intersection(pass_.get_produced_properties())
                    .intersection(VERIFIED)
                )
                if not due.empty():
                    verify_properties(due, program, pass_.get_name())  # type: ignore[arg-type]
                    marks = marks.union_with(due)
                marks = marks.difference(pass_.get_invalidated_properties())
            if diagnose:
                run_phase(DiagnosticPhase.POST_PASS, program)
        if diagnose:
            run_phase(DiagnosticPhase.POST_PIPELINE, program)
        return program
