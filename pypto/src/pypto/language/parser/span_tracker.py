"""Locations: from the coordinates of the Python AST to spans of the user's file."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pypto.ir.span import UNKNOWN_SPAN, Span

#: Generated line -> (file, line, 0-indexed column) of the user's source.
SourceMap = Mapping[int, tuple[str, int, int]]


class SpanTracker:
    """Turns AST nodes into spans.

    Args:
        source_file: file name put into the spans.
        source_lines: the lines that were parsed (dedented).
        line_offset: lines before the first parsed line in the file.
        col_offset: characters of indentation that were stripped from every line.
        source_map: generated line -> original place, for sources that a tool wrote.
    """

    def __init__(
        self,
        source_file: str,
        source_lines: list[str],
        line_offset: int = 0,
        col_offset: int = 0,
        source_map: SourceMap | None = None,
    ):
        self.source_file = source_file
        self.source_lines = source_lines
        self.line_offset = line_offset
        self.col_offset = col_offset
        self.source_map = source_map

    def get_span(self, node: ast.AST | None) -> Span:
        """The span of a node; the unknown span for None and for nodes without a position."""
        line = getattr(node, "lineno", None)
        if line is None:
            return UNKNOWN_SPAN
        end_line = getattr(node, "end_lineno", None) or line
        return self._span(line, node.col_offset, end_line, getattr(node, "end_col_offset", None))

    def get_multiline_span(self, first: ast.AST, last: ast.AST) -> Span:
        """The span from the begin of ``first`` to the end of ``last``."""
        return self._span(
            first.lineno, first.col_offset, last.end_lineno or last.lineno, getattr(last, "end_col_offset", None)
        )

    def _span(self, line: int, column: int, end_line: int, end_column: int | None) -> Span:
        emitted = line + self.line_offset
        if self.source_map and emitted in self.source_map:
            filename, original, original_column = self.source_map[emitted]
            return Span(filename, original, original_column + 1)
        return Span(
            self.source_file,
            emitted,
            self._characters(line, column) + self.col_offset + 1,
            end_line + self.line_offset,
            -1 if end_column is None else self._characters(end_line, end_column) + self.col_offset + 1,
        )

    def _characters(self, line: int, byte_column: int) -> int:
        """``ast`` counts UTF-8 bytes; spans count characters."""
        if not 1 <= line <= len(self.source_lines):
            return byte_column
        text = self.source_lines[line - 1]
        if text.isascii():
            return byte_column
        return len(text.encode("utf-8")[:byte_column].decode("utf-8", errors="ignore"))
