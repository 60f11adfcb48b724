"""Errors of the assembler: what was wrong, where in the text, and what would be right."""

from __future__ import annotations


class AssemblerError(Exception):
    """A mistake in the `.pto` text (or in the options given with it).

    `line` and `column` are 1-based positions in the text; both are 0 when the error belongs to no place.
    `source_loc` is the operation's own `loc(...)` payload (`"kernel.py":7:3`) when it carries one.
    """

    def __init__(
        self,
        message: str,
        *,
        filename: str = "<pto>",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        hint: str = "",
        source_loc: str | None = None,
        stage: str = "parse",
    ) -> None:
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.source_line = source_line
        self.hint = hint
        self.source_loc = source_loc
        self.stage = stage
        super().__init__(self.render())

    def render(self) -> str:
        """`file:12:5: error: text`, the source line with a caret, then origin and hint."""
        place = f"{self.filename}:{self.line}:{self.column}" if self.line else self.filename
        parts = [f"{place}: error: {self.message}"]
        if self.source_line:
            text, offset = _window(self.source_line, self.column)
            parts += [f"  {text}", "  " + " " * offset + "^"]
        if self.source_loc:
            parts.append(f"  note: this operation comes from loc({self.source_loc})")
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)

    def mlir_diagnostic(self) -> str:
        """The one-line form the public tool prints: `loc("file":L:C): error: text`."""
        loc = self.source_loc
        if loc is None:
            loc = f'"{self.filename}":{self.line}:{self.column}' if self.line else "unknown"
        return f"loc({loc}): error: {self.message}"


class UnsupportedFeatureError(NotImplementedError):
    """A part of the format this assembler knows about but does not translate; the message names it and the place."""

    def __str__(self) -> str:
        return str(self.args[0])


def _window(line: str, column: int, width: int = 160) -> tuple[str, int]:
    """Cut a very long source line around `column` so that the caret stays visible."""
    caret = max(column - 1, 0)
    if len(line) <= width:
        return line, caret
    start = max(0, caret - width // 3)
    text = line[start : start + width]
    if start:
        text = "..." + text
        caret += 3
    return text + ("..." if start + width < len(line) else ""), caret - start
