"""Reads the tables of wrong programs and runs one of them.

A case is a heading, a program and the answer to it, which stands where the caret points::

    === an unknown operator
    y = pl.fancy(x)
        ^ InvalidOperationError: Unknown operation 'pl.fancy'
        = did you mean ...

The marked line is the one above; ``=`` lines are the hint. An answer without a place starts with ``! `` in the last
line. A program is the body of a function of ``x: pl.Tensor[[64, 64], pl.FP32]`` and ``n: pl.Scalar[pl.INDEX]``, or a
whole module when it starts with ``@@``; a module may call ``compile(function_or_program)`` for a2a3sim.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from pypto.language.parser.diagnostics.reports import attached_reports, reports_of

from pypto import ir

FOLDER = Path(__file__).parent / "wrong_programs"
_ANSWER = re.compile(r"^(?P<pad> *)\^ (?P<error>\w+): (?P<message>.*)$")
_HEAD = "import pypto.language as pl\n\n"
_FUNCTION = "@pl.function\ndef f(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):\n"
_INDENT = 4


@dataclass(frozen=True)
class Answer:
    """What is said about a program; line and column (from 1) count in the text of the case, 0 without a place."""

    error: str
    message: str
    line: int = 0
    column: int = 0
    hint: str = ""


@dataclass(frozen=True)
class Case:
    """One wrong program and the expected answer."""

    name: str
    lines: tuple[str, ...]
    whole: bool
    answer: Answer | None

    def source(self) -> str:
        """The module that is run."""
        if self.whole:
            return _HEAD + "\n".join(self.lines) + "\n"
        return _HEAD + _FUNCTION + "".join(f"{' ' * _INDENT}{line}\n" for line in self.lines)

    def place(self, line: int, column: int) -> tuple[int, int]:
        """A place in :meth:`source` as a place in the text of the case."""
        head = _HEAD.count("\n") + (0 if self.whole else _FUNCTION.count("\n"))
        return line - head, column - (0 if self.whole else _INDENT)


def cases(table: str) -> list[Case]:
    """The cases of one table."""
    text = (FOLDER / f"{table}.txt").read_text(encoding="utf-8")
    return [_case(part) for part in re.split(r"^=== ", text, flags=re.MULTILINE) if part.strip()]


def _case(text: str) -> Case:
    name, *rest = text.rstrip("\n").split("\n")
    while rest and not rest[-1].strip():
        rest.pop()
    whole = rest[0] == "@@"
    lines: list[str] = []
    answer: Answer | None = None
    hint: list[str] = []
    for line in rest[1:] if whole else rest:
        match = _ANSWER.match(line)
        if match:
            answer = Answer(match["error"], match["message"], len(lines), len(match["pad"]) + 1)
        elif line.startswith("! "):
            error, _, message = line[2:].partition(": ")
            answer = Answer(error, message)
        elif answer is not None and line.lstrip().startswith("= "):
            hint.append(line.lstrip()[2:])
        else:
            lines.append(line)
    if answer is not None:
        answer = Answer(answer.error, answer.message, answer.line, answer.column, " ".join(hint))
    return Case(name, tuple(lines), whole, answer)


def run(case: Case, folder: Path) -> Answer | None:
    """What the compiler answers; None when it accepts the program."""
    path = folder / "program.py"
    path.write_text(case.source(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("wrong_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.compile = functools.partial(_compile, folder=folder)  # type: ignore[attr-defined]
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        return _answer(case, error, path)
    return None


def _compile(node: ir.Function | ir.Program, folder: Path) -> None:
    program = node if isinstance(node, ir.Program) else ir.Program([node], "P", node.span)
    ir.compile(program, output_dir=str(folder / "out"), dump_passes=False, platform="a2a3sim")


def _answer(case: Case, error: Exception, path: Path) -> Answer:
    report = (attached_reports(error) or reports_of(error))[0]
    message = report.message.split("\n")[0].strip().replace(str(path), "<file>")
    span = report.span or {}
    line, column = span.get("begin_line") or span.get("line") or 0, span.get("begin_column") or span.get("column") or 0
    hint = " ".join((report.hint or "").split())
    if not line:
        return Answer(type(error).__name__, message, hint=hint)
    return Answer(type(error).__name__, message, *case.place(line, column), hint)


def shown(case: Case, answer: Answer | None) -> str:
    """A case with an answer, in the format of the tables."""
    out = [f"=== {case.name}", *(["@@"] if case.whole else [])]
    for number, line in enumerate(case.lines, 1):
        out.append(line)
        if answer is not None and answer.line == number:
            pad = " " * (answer.column - 1)
            out.append(f"{pad}^ {answer.error}: {answer.message}")
            if answer.hint:
                out.append(f"{pad}= {answer.hint}")
    if answer is not None and not answer.line:
        out.append(f"! {answer.error}: {answer.message}")
        if answer.hint:
            out.append(f"= {answer.hint}")
    return "\n".join(out) + "\n"
