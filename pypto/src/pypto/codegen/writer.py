"""Text writer shared by the generators: lines with indentation, and unique names."""

from __future__ import annotations

from contextlib import contextmanager


class Writer:
    """Collects lines; ``indent`` counts spaces."""

    def __init__(self, indent: int = 0):
        self.lines: list[str] = []
        self.indent = indent

    def line(self, text: str = "") -> None:
        self.lines.append(" " * self.indent + text if text else "")

    @contextmanager
    def indented(self, spaces: int):
        self.indent += spaces
        try:
            yield
        finally:
            self.indent -= spaces

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


class NameTable:
    """Names taken in one function."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def claim(self, wanted: str) -> bool:
        """Take ``wanted`` if it is free."""
        if wanted in self.taken:
            return False
        self.taken.add(wanted)
        return True

    def suffixed(self, wanted: str) -> str:
        """``wanted``, or ``wanted_1``, ``wanted_2``, ..."""
        name, number = wanted, 0
        while not self.claim(name):
            number += 1
            name = f"{wanted}_{number}"
        return name
