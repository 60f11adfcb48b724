"""Tokens of `.pto` text.

The whole text is cut by one regular expression into plain strings; a token's kind follows from its first character.
A complete type (`!pto.tile_buf<...>`), attribute (`#pto.layout<nd>`) and simple location are one token each: these
texts repeat a lot, and a whole-token lookup is what makes parsing fast. Positions are recomputed only for errors.
"""

from __future__ import annotations

import re

from ..errors import AssemblerError

_SKIP = r"(?:\s|//[^\n]*)*"
_ANGLES = r"<(?:[^<>\"]|<(?:[^<>\"]|<[^<>\"]*>)*>)*>"
_TOKEN = "|".join(
    (
        rf"![A-Za-z_][\w.]*(?:{_ANGLES})?",
        r'loc\("(?:[^"\\\n]|\\.)*"(?::\d+:\d+)?\)',
        r"%(?:\d+|[A-Za-z_$.\-][\w$.\-]*)(?:\#\d+)?",
        rf"(?:vector|memref|tensor|array|dense)\s*{_ANGLES}",
        r"[A-Za-z_][\w$]*(?:\.[A-Za-z_0-9][\w$]*)*",
        r"->|::",
        r"-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][+\-]?\d+)?",
        rf"\#[A-Za-z_][\w.]*(?:{_ANGLES})?",
        rf"\#[\w.]*(?:{_ANGLES})?",
        r'"(?:[^"\\\n]|\\.)*"',
        r"@(?:[\w$.\-]+|\"[^\"\n]*\")",
        r"\^[\w$.\-]+",
        r"[^\s]",
    )
)
_SCAN = re.compile(f"{_SKIP}({_TOKEN})")


class Source:
    """One text with its name: cuts tokens, and finds the position of a token again."""

    def __init__(self, text: str, filename: str):
        self.text = text
        self.filename = filename

    def tokens(self) -> list[str]:
        """All tokens, followed by an empty end marker."""
        # The sentinel keeps a comment at the end of the file from being searched for tokens.
        found = _SCAN.findall(self.text + "\n\0")
        found[-1] = ""
        return found

    def offset(self, index: int) -> int:
        """Character offset of token number `index`."""
        for number, match in enumerate(_SCAN.finditer(self.text)):
            if number == index:
                return match.start(1)
        return len(self.text.rstrip())

    def position(self, index: int, shift: int = 0) -> tuple[int, int, str]:
        """1-based line and column of a token (plus `shift` characters), and the text of that line."""
        offset = self.offset(index) + shift
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        line = self.text[start : end if end >= 0 else len(self.text)]
        return self.text.count("\n", 0, offset) + 1, offset - start + 1, line

    def error(
        self,
        index: int,
        message: str,
        *,
        shift: int = 0,
        hint: str = "",
        source_loc: str | None = None,
        stage: str = "parse",
    ) -> AssemblerError:
        """An AssemblerError placed at token `index`."""
        line, column, text = self.position(index, shift) if index >= 0 else (0, 0, "")
        return AssemblerError(
            message,
            filename=self.filename,
            line=line,
            column=column,
            source_line=text,
            hint=hint,
            source_loc=source_loc,
            stage=stage,
        )
