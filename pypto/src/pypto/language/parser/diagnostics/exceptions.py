"""Exceptions of the language: what is wrong, where, and what would be right."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pypto.errors import InternalError
from pypto.ir.span import Span

#: Faults of the compiler itself; code that turns exceptions into parser errors lets these through untouched.
BUG_CLASS_EXCEPTIONS: tuple[type[BaseException], ...] = (InternalError, AssertionError)


class ErrorCode(str, Enum):
    """Stable numbers of the error families."""

    UNSUPPORTED_STATEMENT = "E001"
    INVALID_ASSIGNMENT = "E002"
    INVALID_LOOP_TARGET = "E003"
    INVALID_RANGE_USAGE = "E004"
    MISSING_RANGE_CALL = "E005"
    INVALID_TUPLE_UNPACKING = "E006"
    ITER_ARG_MISMATCH = "E007"
    MISSING_ANNOTATION = "E100"
    INVALID_ANNOTATION = "E101"
    UNSUPPORTED_TYPE = "E102"
    INCOMPLETE_TYPE = "E103"
    INVALID_TENSOR_TYPE = "E104"
    INVALID_DTYPE = "E105"
    UNDEFINED_VARIABLE = "E200"
    SSA_VIOLATION = "E201"
    SCOPE_ISOLATION = "E202"
    UNKNOWN_OPERATION = "E300"
    UNSUPPORTED_OPERATION = "E301"
    INVALID_OPERATION_ARGS = "E302"
    UNSUPPORTED_BINARY = "E303"
    UNSUPPORTED_UNARY = "E304"
    UNSUPPORTED_COMPARISON = "E305"


def span_to_dict(span: Any) -> dict[str, Any] | None:
    """A location as the plain dictionary that errors carry; None when it is unknown."""
    if span is None or isinstance(span, dict):
        return span
    if not isinstance(span, Span) or span.begin_line < 1:
        return None
    return {
        "filename": span.filename,
        "file": span.filename,
        "line": span.begin_line,
        "column": span.begin_column,
        "begin_line": span.begin_line,
        "begin_column": span.begin_column,
    }


class ParserError(Exception):
    """Base of all language errors.

    Attributes:
        message: what is wrong, without location.
        span: dict with ``filename file line column begin_line begin_column`` (1-indexed), or None.
        hint: what would be right, or None.
        note: background, or None.
        source_lines: the text that was parsed, for rendering when no file exists.
    """

    default_code = ErrorCode.UNSUPPORTED_STATEMENT

    def __init__(
        self,
        message: str,
        span: Any = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: list[str] | None = None,
        code: ErrorCode | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.span = span_to_dict(span)
        self.hint = hint
        self.note = note
        self.source_lines = source_lines
        self.code = code or self.default_code


class ParserSyntaxError(ParserError):
    """A construct is used in a form the language does not have."""


class ParserTypeError(ParserError):
    """An annotation, an argument or a value has the wrong type."""

    default_code = ErrorCode.INVALID_ANNOTATION


class UndefinedVariableError(ParserError):
    """A name is neither defined in the body nor visible from the definition."""

    default_code = ErrorCode.UNDEFINED_VARIABLE


class SSAViolationError(ParserError):
    """A name is bound twice although ``strict_ssa`` is on; ``previous_span`` is the first binding."""

    default_code = ErrorCode.SSA_VIOLATION

    def __init__(self, message: str, span: Any = None, previous_span: Any = None, **more: Any):
        super().__init__(message, span, **more)
        self.previous_span = span_to_dict(previous_span)


class UnsupportedFeatureError(ParserError):
    """Valid Python that the language does not accept."""

    default_code = ErrorCode.UNSUPPORTED_OPERATION


class InvalidOperationError(ParserError):
    """An operator is unknown, or its arguments do not fit."""

    default_code = ErrorCode.UNKNOWN_OPERATION


class ScopeIsolationError(ParserError):
    """A name is used outside the scope that defines it."""

    default_code = ErrorCode.SCOPE_ISOLATION
