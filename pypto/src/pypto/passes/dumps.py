"""Per-pass IR dumps: file names, levels, and the warning logs written beside them."""

from __future__ import annotations

import os
import re
from enum import Enum

from pypto.ir.program import Program
from pypto.passes.diagnostics import DiagnosticCheck, DiagnosticCheckRegistry


class PassDumpLevel(Enum):
    """How dumps print. Every member is truthy: compare by identity."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


def coerce_dump_level(value: PassDumpLevel | bool) -> PassDumpLevel:
    """``True`` is CONCISE, ``False`` is NONE; ``TypeError`` for anything else that is no level."""
    if isinstance(value, PassDumpLevel):
        return value
    if isinstance(value, bool):
        return PassDumpLevel.CONCISE if value else PassDumpLevel.NONE
    raise TypeError(f"a dump level is a PassDumpLevel or a bool, got {type(value).__name__}")


class DumpWriter:
    """Writes ``00_frontend.py`` and ``NN_after_<Pass>.py`` into one directory."""

    def __init__(self, output_dir: str, level: PassDumpLevel, prefix: str):
        self._dir, self._level, self._prefix = output_dir, level, prefix
        os.makedirs(output_dir, exist_ok=True)
        self._last: tuple[Program, str] | None = None

    def frontend(self, program: Program) -> None:
        self._write("00_frontend.py", program)

    def after(self, index: int, name: str, program: Program) -> None:
        stem = f"{index:02d}_after_{name}"
        text = self._write(f"{stem}.py", program)
        warnings = DiagnosticCheckRegistry.run_warnings(program, DiagnosticCheck.UnusedVariable)
        if warnings:
            entries = "".join(_located(f"{stem}.py", text, w.message, w.rule_name) for w in warnings)
            _write_text(os.path.join(self._dir, f"{stem}.log"), entries)

    def _write(self, filename: str, program: Program) -> str:
        # Most passes change nothing in most programs: print an unchanged program once.
        if self._last is None or self._last[0] is not program:
            from pypto.ir.printer import python_print

            explicit = {"explicit_layout": True} if self._level is PassDumpLevel.EXPLICIT else {}
            text = python_print(program, prefix=self._prefix, **explicit)
            self._last = (program, text if text.endswith("\n") else text + "\n")
        _write_text(os.path.join(self._dir, filename), self._last[1])
        return self._last[1]


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _located(filename: str, text: str, message: str, rule: str) -> str:
    """One log entry: position, message, source line and caret when the named variable is found in ``text``."""
    named = re.search(r"variable '([^']+)'", message, re.IGNORECASE)
    if named:
        name = re.escape(named.group(1))
        definition = re.compile(rf"(?<![\w.]){name}(?=\s*(:|=|,|\)\s+in\b|\s+in\b))")
        for number, line in enumerate(text.splitlines(), 1):
            hit = definition.search(line)
            if hit:
                column = hit.start() + 1
                caret = " " * hit.start() + "^" * (hit.end() - hit.start())
                return f"{filename}:{number}:{column}: warning: {message} [{rule}]\n{line}\n{caret}\n"
    return f"warning: {message} [{rule}]\n"
