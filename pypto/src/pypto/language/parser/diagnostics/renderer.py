"""Errors as text: message, location, source lines with a caret, help and note."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from pypto.language.parser.diagnostics.exceptions import ParserError, SSAViolationError

_CONTEXT_LINES = 2
_TAB_WIDTH = 4
_INLINE_LIMIT = 50
_DOTTED_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_SENTENCE_END = re.compile(r"\.(?=\s|$)")
_STYLES = {"error": "\033[1;31m", "bold": "\033[1m", "frame": "\033[1;34m", "help": "\033[1;36m"}
_RESET = "\033[0m"


class ErrorRenderer:
    """Renders :class:`ParserError`; ``use_color=None`` decides from the terminal and the environment."""

    def __init__(self, use_color: bool | None = None):
        self.use_color = _terminal_has_color() if use_color is None else use_color

    def render(self, error: ParserError) -> str:
        """The whole report, lines joined by newlines, without a final one."""
        lines = [f"{self._style('error', 'Error:')} {self._style('bold', error.message)}"]
        span = error.span
        if span:
            lines += self._located(error, span)
        elif error.hint or error.note or getattr(error, "previous_span", None):
            lines += self._remarks(error, 0)
        return "\n".join(lines)

    def _located(self, error: ParserError, span: dict[str, Any]) -> list[str]:
        line, column = _line_of(span), _column_of(span)
        source = _source_of(span, error.source_lines)
        lines = [f"  {self._style('frame', '-->')} {_location(span)}"]
        if source is None or not 1 <= line <= len(source):
            return lines + self._remarks(error, 0)
        first, last = max(1, line - _CONTEXT_LINES), min(len(source), line + _CONTEXT_LINES)
        width = len(str(last))
        bar = self._style("frame", f"{' ' * width} |")
        lines.append(bar)
        for number in range(first, last + 1):
            text = source[number - 1]
            lines.append(f"{self._style('frame', f'{number:>{width}} |')} {text}".rstrip(" "))
            if number == line and column >= 1:
                lines.append(f"{bar} {self._caret(text, column, _inline_message(error.message))}")
        lines.append(bar)
        return lines + self._remarks(error, width)

    def _caret(self, text: str, column: int, message: str) -> str:
        start = min(column - 1, len(text))
        pad = "".join(" " * _TAB_WIDTH if c == "\t" else " " for c in text[:start])
        mark = "^" * self._calculate_token_length(text, start)
        return pad + self._style("error", f"{mark} {message}" if message else mark)

    def _calculate_token_length(self, text: str, start: int) -> int:
        """Characters of the dotted identifier at ``start``, at least 1."""
        match = _DOTTED_NAME.match(text, start)
        return len(match.group()) if match else 1

    def _remarks(self, error: ParserError, width: int) -> list[str]:
        pad = " " * width
        lines: list[str] = []
        previous = getattr(error, "previous_span", None)
        if isinstance(error, SSAViolationError) and previous:
            lines += self._previous(error, previous)
        if error.hint:
            lines.append(f"{pad} {self._style('help', '= help:')} {error.hint}")
        if error.note:
            lines.append(f"{pad} {self._style('help', '= note:')} {error.note}")
        return lines

    def _previous(self, error: ParserError, span: dict[str, Any]) -> list[str]:
        line, column = _line_of(span), _column_of(span)
        lines = ["", "   = note: Previous definition was here:", f"     --> {_location(span)}"]
        source = _source_of(span, error.source_lines)
        if source is None or not 1 <= line <= len(source):
            return lines
        first, last = max(1, line - 1), min(len(source), line + 1)
        width = len(str(last))
        bar = f"     {' ' * width} |"
        lines.append(bar)
        for number in range(first, last + 1):
            lines.append(f"     {number:>{width}} | {source[number - 1]}".rstrip(" "))
            if number == line and column >= 1:
                lines.append(f"{bar} {' ' * (column - 1)}^")
        return lines

    def _style(self, name: str, text: str) -> str:
        return f"{_STYLES[name]}{text}{_RESET}" if self.use_color else text


def _line_of(span: dict[str, Any]) -> int:
    return span.get("begin_line") or span.get("line") or 0


def _column_of(span: dict[str, Any]) -> int:
    return span.get("begin_column") or span.get("column") or 0


def _location(span: dict[str, Any]) -> str:
    name = span.get("filename") or span.get("file") or "<unknown>"
    line, column = _line_of(span), _column_of(span)
    return f"{name}:{line}:{column}" if column >= 1 else f"{name}:{line}"


def _source_of(span: dict[str, Any], fallback: list[str] | None) -> list[str] | None:
    """Lines of the file on disk when there is one, else the lines the error carries."""
    name = span.get("filename") or span.get("file") or ""
    if name and not name.startswith("<"):
        try:
            with open(name, encoding="utf-8") as file:
                return [line.rstrip("\n") for line in file]
        except (OSError, UnicodeDecodeError):
            pass
    return [line.rstrip("\n") for line in fallback] if fallback else None


def _inline_message(message: str) -> str:
    first_line = message.split("\n", 1)[0]
    sentence = _SENTENCE_END.split(first_line, maxsplit=1)[0]
    return sentence if len(sentence) < _INLINE_LIMIT else ""


def _terminal_has_color() -> bool:
    if os.environ.get("NO_COLOR") is not None or not getattr(sys.stderr, "isatty", lambda: False)():
        return False
    return os.environ.get("FORCE_COLOR") is not None or os.environ.get("TERM") != "dumb"
