"""Source locations."""

from __future__ import annotations

import sys

import msgspec


class Span(msgspec.Struct, frozen=True, gc=False):
    """A range of a source file; lines and columns count characters from 1, -1 means unknown."""

    filename: str
    begin_line: int
    begin_column: int
    end_line: int = -1
    end_column: int = -1

    def to_string(self) -> str:
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"

    __str__ = to_string
    __repr__ = to_string

    def is_valid(self) -> bool:
        """True when the begin is known (the column may be unknown) and the end is unknown or not before it."""
        if self.begin_line < 1 or not (self.begin_column >= 1 or self.begin_column == -1):
            return False
        if self.end_line == -1:
            return True
        if self.end_line < self.begin_line:
            return False
        same_line = self.end_line == self.begin_line
        return not (same_line and self.end_column != -1 and self.end_column < self.begin_column)

    @staticmethod
    def unknown() -> Span:
        return UNKNOWN_SPAN


UNKNOWN_SPAN = Span("", -1, -1, -1, -1)


def capture_span(depth: int = 1) -> Span:
    """The caller's file and line (column unknown); ``depth`` counts frames above the caller of this function."""
    try:
        frame = sys._getframe(depth + 1)
    except ValueError:
        return UNKNOWN_SPAN
    return Span(frame.f_code.co_filename, frame.f_lineno, -1)
