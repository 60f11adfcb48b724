"""The user's place in a call chain: for the spans of nodes and for warnings."""

from __future__ import annotations

import os
import sys
import warnings

import pypto
from pypto.ir.span import UNKNOWN_SPAN, Span, capture_span

_PACKAGE = os.path.dirname(os.path.abspath(pypto.__file__)) + os.sep


def span_or_capture(span: Span | None = None, frame_offset: int = 0) -> Span:
    """``span``, or without one the place of the caller, ``frame_offset`` frames further out."""
    return span or capture_span(1 + frame_offset)


def caller_span() -> Span:
    """File and line of the innermost frame outside this package; unknown when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE):
            return Span(filename, frame.f_lineno, -1)
        frame = frame.f_back
    return UNKNOWN_SPAN


def caller_warning_stacklevel() -> int:
    """The ``stacklevel`` with which the calling function names the innermost frame outside this package.

    1 when the calling function itself stands outside.
    """
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def warn_caller(message: str) -> None:
    """A UserWarning at the innermost frame outside this package, so that every call site is reported once."""
    warnings.warn(message, UserWarning, stacklevel=caller_warning_stacklevel())
