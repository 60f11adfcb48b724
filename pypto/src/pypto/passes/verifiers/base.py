"""What verifiers share: building error records and walking functions."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from pypto.ir.enums import is_incore_type
from pypto.ir.program import Function, Program
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity


def error(rule: str, code: int | Enum, message: str, span: Span = UNKNOWN_SPAN) -> Diagnostic:
    """An error record."""
    number = code.value if isinstance(code, Enum) else code
    return Diagnostic(DiagnosticSeverity.Error, rule, number, message, span)


def defined_functions(program: Program) -> Iterator[Function]:
    """Functions with a body."""
    return (f for f in program.functions.values() if f.body is not None)


def incore_functions(program: Program) -> Iterator[Function]:
    """InCore, AIC and AIV functions with a body."""
    return (f for f in defined_functions(program) if is_incore_type(f.func_type))
