"""Exception classes and checks shared by every floor of the compiler.

A user's mistake is a ``ValueError`` (or ``TypeError``, ``IndexError``, ...), a broken invariant of ours an
:class:`InternalError`, a failed verification an :class:`Error` that carries all its diagnostics. Catching one of
the three does not catch another.
"""

from __future__ import annotations

import os
import traceback


class Error(Exception):
    """Verification failure; ``diagnostics`` holds every record that was collected."""

    def __init__(self, message: str = "", diagnostics: list | None = None):
        super().__init__(message)
        self.diagnostics = list(diagnostics or [])


class VerificationError(Error):
    """A property of the IR does not hold."""


class InternalError(RuntimeError):
    """A broken invariant of the compiler. The text always carries a trace section."""

    def __init__(self, message: str = "", *, span=None, condition: str = "condition"):
        self.message = message
        self.span = span
        super().__init__(_render(message, span, condition, with_trace=True))


class UnsupportedFeatureError(NotImplementedError):
    """A feature of the public contract that this build does not have yet; the text names it."""


def _render(message: str, span, condition: str, *, with_trace: bool) -> str:
    where = f" [{span}]" if span is not None and span.is_valid() else ""
    text = f"{message}{where}\nCheck failed: {condition}"
    if with_trace:
        frames = "".join(traceback.format_stack()[:-3][-8:]).rstrip()
        text += "\n\nC++ Traceback (most recent call last):\n" + (frames or "No stack trace available")
    return text


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
    with_trace = os.environ.get("PTO_BACKTRACE") == "1"
    return kind(_render(message, span, condition, with_trace=with_trace))


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
