"""Exception classes and checks shared by every floor of the compiler.

A user's mistake is a ``ValueError`` (or ``TypeError``, ``IndexError``, ...), a broken invariant of ours an
:class:`InternalError`, a failed verification an :class:`Error` that carries all its diagnostics. Catching one of
the three does not catch another.
"""

from __future__ import annotations

import os
import traceback

#: Frames shown in a trace section.
_TRACE_FRAMES = 8


class Error(Exception):
    """Verification failure; ``diagnostics`` holds every record that was collected."""

    def __init__(self, message: str = "", diagnostics: list | None = None):
        super().__init__(message)
        self.diagnostics = list(diagnostics or [])


class VerificationError(Error):
    """A property of the IR does not hold."""


class InternalError(RuntimeError):
    """A broken invariant of the compiler. The text always carries a trace section."""

    def __init__(self, message: str = "", *, span=None, condition: str = "condition", trace: str | None = None):
        self.message = message
        self.span = span
        self.trace = trace_section(skip=2) if trace is None else trace
        super().__init__(f"{_headline(message, span, condition)}\n\n{self.trace}")

    def with_message(self, message: str) -> InternalError:
        """A copy with another message, the same class, location and trace."""
        return type(self)(message, span=self.span, trace=self.trace)


class UnsupportedFeatureError(NotImplementedError):
    """A feature of the public contract that this build does not have yet; the text names it."""


def trace_section(skip: int = 1) -> str:
    """The innermost frames of the caller, outermost first; ``skip`` counts frames to leave out, this one included."""
    frames = traceback.extract_stack()[:-skip][-_TRACE_FRAMES:]
    lines = [f' File "{frame.filename}", line {frame.lineno}\n    {frame.line}' for frame in frames]
    return "C++ Traceback (most recent call last):\n" + ("\n".join(lines) or "No stack trace available")


def _headline(message: str, span, condition: str) -> str:
    where = f" [{span}]" if span is not None and span.is_valid() else ""
    return f"{message}{where}\nCheck failed: {condition}"


def user_error(
    message: str, *, span=None, kind: type[Exception] = ValueError, condition: str = "condition"
) -> Exception:
    """Build (not raise) a user-facing error whose first line is ``message`` plus the location.

    Args:
        message: what is wrong and what would be right.
        span: where; ignored when unknown.
        kind: exception class, ``ValueError`` by default.
        condition: text shown after ``Check failed:``.
    """
    text = _headline(message, span, condition)
    if os.environ.get("PTO_BACKTRACE") == "1":
        text += f"\n\n{trace_section(skip=2)}"
    error = kind(text)
    error.span = span  # type: ignore[attr-defined]  # the compile boundary shows the source text of this place
    return error


def check(condition: bool, message: str, *, span=None, kind: type[Exception] = ValueError) -> None:
    """Raise ``kind`` (``ValueError``) with ``message`` when a user-visible contract does not hold."""
    if not condition:
        raise user_error(message, span=span, kind=kind)


def internal_check(condition: bool, message: str) -> None:
    """Raise :class:`InternalError` when an invariant of the compiler does not hold."""
    if not condition:
        raise InternalError(message)


def internal_check_span(condition: bool, message: str, span) -> None:
    """Like :func:`internal_check`, with the source location in the text."""
    if not condition:
        raise InternalError(message, span=span)
