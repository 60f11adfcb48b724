"""Programs given as text: ``pl.parse``, ``pl.loads`` and the older program-only forms."""

from __future__ import annotations
import __future__

import ast
import builtins
import io
import itertools
from collections.abc import Mapping
from enum import EnumMeta
from pathlib import Path
from typing import Any

from pypto.ir.program import Function, Program
from pypto.language.parser.diagnostics import (
    BUG_CLASS_EXCEPTIONS,
    ParserError,
    ParserSyntaxError,
    did_you_mean,
    located_errors,
)
from pypto.language.parser.source_lookup import parse_file, text_source
from pypto.language.typing.dynamic import DynVar

_FLAGS = __future__.annotations.compiler_flag
_serial = itertools.count(1).__next__


def parse(code: str, filename: str = "<string>", source_map: Mapping | None = None) -> Function | Program:
    """The single function or program that a text defines.

    ``pl`` and ``pld`` are bound already. Names that annotations use without defining them become symbolic
    dimensions, so printed fragments can be read back.

    Args:
        code: Python text with one ``@pl.function`` or ``@pl.program``.
        filename: name for locations.
        source_map: line of ``code`` -> (file, line, 0-indexed column) of the text it was made from.

    Raises:
        SyntaxError: the text is not Python.
        ValueError: it defines no function or program, or several.
        ParserError: the definition is wrong.
    """
    return _parse(code, filename, source_map)


def loads(filepath: str | Path) -> Function | Program:
    """:func:`parse` of a file; ``OSError`` when it cannot be read."""
    path = Path(filepath)
    return _parse(path.read_text(encoding="utf-8"), str(path), None)


def parse_program(code: str, filename: str = "<string>") -> Program:
    """:func:`parse` that accepts a program only."""
    return _program(_parse(code, filename, None))


def loads_program(filepath: str | Path) -> Program:
    """:func:`loads` that accepts a program only."""
    return _program(loads(filepath))


def _program(found: Function | Program) -> Program:
    if not isinstance(found, Program):
        raise ValueError(f"Expected @pl.program but found @pl.function '{found.name}'. Use pl.parse() for functions.")
    return found


def _parse(code: str, filename: str, source_map: Mapping | None) -> Function | Program:
    lines = io.StringIO(code, newline=None).readlines()
    try:
        tree = ast.parse(code, filename)
        compiled = compile(tree, filename, "exec", flags=_FLAGS, dont_inherit=True)
    except SyntaxError as error:
        raise SyntaxError(f"Failed to compile code from {filename}: {error}") from error
    except RecursionError:
        raise SyntaxError(f"Failed to compile code from {filename}: an expression is nested too deeply") from None
    namespace = _namespace(tree)
    parsed = parse_file(lines, tree)
    with located_errors(), text_source(filename, parsed, source_map):
        _execute(compiled, namespace, tree, filename, parsed.lines)
    return _single(tree, namespace, filename)


def _namespace(tree: ast.Module) -> dict[str, Any]:
    import pypto.language as pl
    import pypto.language.distributed as pld

    namespace: dict[str, Any] = {"pl": pl, "pld": pld, "__name__": f"<pypto text {_serial()}>"}
    for name in _free_annotation_names(tree):
        namespace.setdefault(name, DynVar(name))
    return namespace


def _free_annotation_names(tree: ast.Module) -> list[str]:
    """Names that annotations use and nothing in the text defines, in order of appearance."""
    bound = set(vars(builtins))
    used: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                for name in ast.walk(annotation):
                    if isinstance(name, ast.Name) and name.id.isidentifier() and not name.id.startswith("__"):
                        used.setdefault(name.id)
    from pypto.language import _PUBLIC_TYPE_NAMES

    return [n for n in used if n not in bound and n not in _PUBLIC_TYPE_NAMES]


def _execute(compiled: Any, namespace: dict[str, Any], tree: ast.Module, filename: str, lines: list[str]) -> None:
    try:
        exec(compiled, namespace)
    except ParserError as error:
        if error.source_lines is None:
            error.source_lines = lines
        raise
    except (*BUG_CLASS_EXCEPTIONS, ValueError):
        raise
    except Exception as error:
        line = _line_in(error, filename)
        if line is None:
            raise RuntimeError(f"Failed to execute code from {filename}: {error}") from error
        raise _located(error, line, tree, filename, lines) from error


def _line_in(error: BaseException, filename: str) -> int | None:
    """Line of the text that was running when the exception was raised."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _located(error: Exception, line: int, tree: ast.Module, filename: str, lines: list[str]) -> ParserSyntaxError:
    text = lines[line - 1] if line <= len(lines) else ""
    column, hint = len(text) - len(text.lstrip()) + 1, None
    if isinstance(error, AttributeError) and error.name:
        place = _attribute_place(tree, error.name, line)
        if place is not None:
            line, column = place
        if isinstance(error.obj, EnumMeta):
            members = list(error.obj.__members__)
            hint = did_you_mean(error.name, members)
            hint = f"{hint + ' ' if hint else ''}Valid values: {', '.join(members)}"
    span = {
        "filename": filename, "file": filename, "line": line, "column": column, "begin_line": line,
        "begin_column": column,
    }  # fmt: skip
    return ParserSyntaxError(f"{type(error).__name__}: {error}", span, hint=hint, source_lines=lines)


def _attribute_place(tree: ast.Module, name: str, line: int) -> tuple[int, int] | None:
    """Line and 1-indexed character column of the attribute ``name`` nearest to ``line``."""
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == name and node.end_col_offset is not None:
            start = node.end_col_offset - len(name.encode("utf-8"))
            places.append((abs((node.end_lineno or node.lineno) - line), node.end_lineno or node.lineno, start))
    if not places:
        return None
    _, row, column = min(places)
    return row, column + 1


def _single(tree: ast.Module, namespace: dict[str, Any], filename: str) -> Function | Program:
    names = [n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    found = {n: namespace[n] for n in names if isinstance(namespace.get(n), (Function, Program))}
    if not found:
        raise ValueError(
            f"No @pl.function or @pl.program found in {filename}. Make sure your code contains a function decorated "
            "with @pl.function or a class decorated with @pl.program."
        )
    if len(found) > 1:
        programs = {n: v for n, v in found.items() if isinstance(v, Program)}
        if len(programs) != 1:
            raise ValueError(
                f"Multiple functions/programs found in {filename}: {list(found)}. pl.parse() can only parse code "
                "containing a single function or program. Consider using separate calls or parsing from separate files."
            )
        found = programs
    return next(iter(found.values()))
