"""Printing: plain text when piped, colours on a terminal unless NO_COLOR is set, tables through rich."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptows.redact import redact

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}
#: Colour of the words that tables use for states.
_STATES = {
    "red": {"failed", "fail", "missing", "drift", "dirty", "wrong"},
    "yellow": {"refused", "not done", "warn", "skipped", "unpinned", "local commits", "behind", "ahead", "stash"},
    "green": {"cloned", "moved", "recovered", "url updated", "ok", "passed", "verified", "kept", "clean", "current"},
}


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """``text`` with control characters spelled out: a file's name must not steer the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def state_colour(text: str) -> str:
    """The colour of a state word; "" for other text."""
    return next((colour for colour, words in _STATES.items() if text in words), "")


@dataclass
class Console:
    """Where messages go. ``quiet`` drops what is not asked for; ``verbose`` adds what is done."""

    quiet: bool = False
    verbose: bool = False
    json: bool = False

    @property
    def is_terminal(self) -> bool:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def _has_colours(self, stream: Any) -> bool:
        return not os.environ.get("NO_COLOR") and stream.isatty() and os.environ.get("TERM") != "dumb"

    def style(self, text: str, colour: str, stream: Any = None) -> str:
        known = _COLOURS.get(colour)
        return f"\033[{known}m{text}\033[0m" if known and self._has_colours(stream or sys.stdout) else text

    def print(self, text: str = "") -> None:
        """What the command was asked for: standard output."""
        print(printable(redact(text)))

    def raw(self, text: str) -> None:
        """A patch or the output of a program: nothing may be changed in it."""
        print(text)

    def note(self, text: str) -> None:
        """How it goes: standard error, so that output can be piped."""
        if not self.quiet:
            print(printable(redact(text)), file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        if self.verbose:
            self.note(text)

    def warn(self, text: str) -> None:
        print(self.style("warning: ", "yellow", sys.stderr) + printable(redact(text)), file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        print(self.style("error: ", "red", sys.stderr) + printable(redact(text)), file=sys.stderr, flush=True)

    def data(self, kind: str, content: dict[str, Any]) -> None:
        """A JSON answer: ``schema`` names the command and the version of its shape."""
        text = json.dumps({"schema": f"ptows.{kind}/1", **content}, indent=2, ensure_ascii=False)
        print(redact(text))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], stream: Any = None) -> None:
        """Aligned columns; on a terminal wrapped to its width."""
        stream = stream or sys.stdout
        if not rows:
            return
        if not stream.isatty():
            # Programs and files get every value whole, on one line each.
            self._plain_table(headings, rows, stream)
            return
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(redact(cell)), style=state_colour(cell)) for cell in row))
        RichConsole(file=stream).print(table)

    def _plain_table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], stream: Any) -> None:
        lines = [list(headings), *([printable(redact(cell)) for cell in row] for row in rows)]
        widths = [max(_width(line[column]) for line in lines) for column in range(len(headings))]
        for line in lines:
            cells = [cell + " " * (width - _width(cell)) for cell, width in zip(line, widths)]
            print("  ".join(cells).rstrip(), file=stream)


def _width(text: str) -> int:
    """Columns that ``text`` takes: two for wide East Asian characters."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)
