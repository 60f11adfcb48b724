"""Where a decorated definition stands: its file, its lines, its syntax tree."""

from __future__ import annotations

import ast
import bisect
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pypto.language.parser.comment_extractor import extract_line_comments
from pypto.language.parser.context import SourceInfo


@dataclass
class ParsedFile:
    """A source text with its functions by line; comments are extracted when a function has any."""

    lines: list[str]
    functions: dict[int, ast.FunctionDef]
    tree: ast.Module
    comments: dict[int, list[tuple[int, str]]] = field(default_factory=dict)

    @functools.cached_property
    def _function_lines(self) -> list[int]:
        return sorted(self.functions)

    @functools.cached_property
    def _comment_lines(self) -> list[int]:
        return sorted(self.comments)

    def comments_of(self, node: ast.FunctionDef) -> dict[int, list[tuple[int, str]]]:
        """A copy of the comments from the ``def`` line to the line before the next definition, in order."""
        first, last = node.body[0].lineno, node.end_lineno or node.lineno
        start = node.lineno + 1 if first > node.lineno else node.lineno
        following = bisect.bisect_right(self._function_lines, last)
        stop = self._function_lines[following] if following < len(self._function_lines) else len(self.lines) + 1
        found: dict[int, list[tuple[int, str]]] = {}
        lines = self._comment_lines
        for line in lines[bisect.bisect_left(lines, start) : bisect.bisect_left(lines, stop)]:
            entries = self.comments[line]
            if line <= last or all(column > node.col_offset for column, _ in entries):
                found[line] = list(entries)
        return found


_FILES: dict[str, tuple[list[str], ParsedFile]] = {}
_TEXTS: list[tuple[str, ParsedFile, Mapping | None]] = []


def parse_file(lines: list[str], tree: ast.Module | None = None) -> ParsedFile:
    """Index the functions of a text by the line of their first decorator or ``def``."""
    text = "".join(line if line.endswith("\n") else line + "\n" for line in lines)
    tree = tree or ast.parse(text)
    functions: dict[int, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            functions[line] = node
    plain = [line.rstrip("\n") for line in lines]
    return ParsedFile(plain, functions, tree, extract_line_comments(text))


@contextmanager
def text_source(filename: str, parsed: ParsedFile, source_map: Mapping | None) -> Iterator[None]:
    """While active, definitions compiled as ``filename`` are looked up in ``parsed``."""
    _TEXTS.append((filename, parsed, source_map))
    try:
        yield
    finally:
        _TEXTS.pop()


def find_definition(func: Callable) -> tuple[ast.FunctionDef, SourceInfo, ParsedFile] | None:
    """Syntax tree and source of a function, None when its text is not available."""
    code = func.__code__
    for filename, parsed, source_map in reversed(_TEXTS):
        if filename == code.co_filename and code.co_firstlineno in parsed.functions:
            node = parsed.functions[code.co_firstlineno]
            return node, SourceInfo(filename, parsed.lines, source_map=source_map, is_text=True), parsed
    for lines in _candidate_sources(code.co_filename, func.__globals__):
        parsed = _cached(code.co_filename, lines)
        node = parsed.functions.get(code.co_firstlineno) if parsed else None
        if parsed and node is not None and node.name == func.__name__:
            return node, SourceInfo(code.co_filename, parsed.lines), parsed
    return None


def _candidate_sources(filename: str, module_globals: dict[str, Any]) -> Iterator[list[str]]:
    """The file, what ``linecache`` knows, the text of ``python -c``."""
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, module_globals)
    if lines:
        yield lines
    argv = getattr(sys, "orig_argv", [])
    if filename in ("<string>", "<stdin>") and "-c" in argv:
        position = argv.index("-c") + 1
        if position < len(argv):
            yield argv[position].splitlines(keepends=True)


def _cached(filename: str, lines: list[str]) -> ParsedFile | None:
    known = _FILES.get(filename)
    if known is not None and (known[0] is lines or known[0] == lines):
        return known[1]
    try:
        parsed = parse_file(lines)
    except SyntaxError:
        return None
    _FILES[filename] = (lines, parsed)
    return parsed


# -- classes -----------------------------------------------------------------------------------------------------

_CLASS_LINE_INDEX_CACHE: dict[str, tuple[list[str], dict[str, int]]] = {}


class _ClassLineIndexer(ast.NodeVisitor):
    """Qualified class name -> line of its first decorator or ``class``; the first definition of a name wins."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self._stack: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._stack += [node.name, "<locals>"]
        self.generic_visit(node)
        del self._stack[-2:]

    visit_AsyncFunctionDef = visit_FunctionDef

    def generic_visit(self, node: ast.AST) -> None:
        """Statements only: no expression holds a class."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                self.visit(child)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._stack.append(node.name)
        line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        self.index.setdefault(".".join(self._stack), line)
        self.generic_visit(node)
        self._stack.pop()


def _class_line_index(filename: str, lines: list[str]) -> dict[str, int]:
    """The classes of a file, parsed once per content."""
    known = _CLASS_LINE_INDEX_CACHE.get(filename)
    if known is not None and (known[0] is lines or known[0] == lines):
        return known[1]
    indexer = _ClassLineIndexer()
    indexer.visit(ast.parse("".join(lines)))
    _CLASS_LINE_INDEX_CACHE[filename] = (lines, indexer.index)
    return indexer.index


def _records_own_first_line(cls: type) -> bool:
    """Newer Python versions store the line on the class."""
    return "__firstlineno__" in vars(cls)


def _indexed_class_source_lines(cls: type) -> tuple[list[str], int] | None:
    """``inspect.getsourcelines(cls)`` from the index of its file; None when the index cannot answer."""
    if _records_own_first_line(cls):
        return None
    try:
        filename = inspect.getsourcefile(cls) or ""
    except TypeError:
        return None
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    try:
        line = _class_line_index(filename, lines).get(cls.__qualname__) if lines else None
    except SyntaxError:
        return None
    return None if line is None else (inspect.getblock(lines[line - 1 :]), line)


def get_class_source_lines(cls: type) -> tuple[list[str], int]:
    """The lines of a class and the number of the first one; ``OSError`` when its text is not available."""
    return _indexed_class_source_lines(cls) or inspect.getsourcelines(cls)


def class_line(cls: type, parsed: ParsedFile) -> int | None:
    """The first line of a class in a text that is no file."""
    indexer = _ClassLineIndexer()
    indexer.visit(parsed.tree)
    return indexer.index.get(cls.__qualname__)
