"""The user's place in a call chain."""

from __future__ import annotations

import os
import sys
import warnings

import pypto
from pypto.ir.span import UNKNOWN_SPAN, Span

_PACKAGE = os.path.dirname(os.path.abspath(pypto.__file__)) + os.sep


def caller_span() -> Span:
    """File and line of the innermost frame outside this package; unknown when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE):
            return Span(filename, frame.f_lineno, -1)
        frame = frame.f_back
    return UNKNOWN_SPAN


def warn_caller(message: str) -> None:
    """A UserWarning at the innermost frame outside this package, so that every call site is reported once."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level + 1)
