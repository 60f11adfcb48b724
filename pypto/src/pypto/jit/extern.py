"""``@pl.jit.extern``: kernels written in C++, as functions of a program."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import Call, GlobalVar, Var
from pypto.ir.node import make
from pypto.ir.program import Function
from pypto.ir.stmt import EvalStmt, ReturnStmt, seq
from pypto.ir.types import TensorType, TupleType, Type, UnknownType
from pypto.language.parser.context import FunctionOptions, Signature
from pypto.language.parser.diagnostics import ParserSyntaxError

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction
    from pypto.jit.specializer import Specialization

#: Function attribute with the JSON list of include directories of an external kernel.
INCLUDE_DIRS_ATTR = "external_include_dirs"
_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_CORES = {"aic": FunctionType.AIC, "aiv": FunctionType.AIV}


@dataclass(frozen=True)
class ExternSources:
    """C++ files of one external kernel, by core."""

    core_type: str
    sources: dict[str, Path]
    dual_aiv_dispatch: bool = False
    include_dirs: tuple[Path, ...] = field(default=())

    def files(self) -> list[Path]:
        """Every file whose content decides the binary: sources, what they include in quotes, include directories."""
        found = dict.fromkeys(self.sources.values())
        for path in list(found):
            self._add_quoted(path, found)
        found.update(dict.fromkeys(f for d in self.include_dirs for f in sorted(d.rglob("*.h*")) if f.is_file()))
        return list(found)

    def _add_quoted(self, path: Path, found: dict[Path, None]) -> None:
        for name in _QUOTED_INCLUDE.findall(path.read_text(errors="replace")):
            candidates = (folder / name for folder in (path.parent, *self.include_dirs))
            included = next((c.resolve() for c in candidates if c.is_file()), None)
            if included is not None and included not in found:
                found[included] = None
                self._add_quoted(included, found)

    def options(self) -> str:
        """What the decorator was given, as text."""
        return repr((self.core_type, self.sources, self.dual_aiv_dispatch, self.include_dirs))


def check_sources(
    func: Callable,
    core_type: str,
    source: Any,
    aic_source: Any,
    aiv_source: Any,
    dual_aiv_dispatch: bool,
    include_dirs: Sequence[Any],
) -> ExternSources:
    """The files of ``@pl.jit.extern``; relative paths start at the defining file.

    Raises:
        ValueError: unknown core type, missing files or directories, options that do not fit the core type.
        TypeError: ``include_dirs`` is no sequence.
    """
    name = func.__name__
    if core_type not in ("aic", "aiv", "mixed"):
        raise ValueError(f"@pl.jit.extern '{name}': core_type must be 'aic', 'aiv' or 'mixed', got {core_type!r}")
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError(f"@pl.jit.extern '{name}': dual_aiv_dispatch requires core_type='mixed'")
    given = {"aic": aic_source, "aiv": aiv_source} if core_type == "mixed" else {core_type: source}
    unused = (source,) if core_type == "mixed" else (aic_source, aiv_source)
    if any(path is not None for path in unused):
        words = "aic_source= and aiv_source=, not source=" if core_type == "mixed" else "source= only"
        raise ValueError(f"@pl.jit.extern '{name}': core_type={core_type!r} takes {words}")
    if any(path is None for path in given.values()):
        needed = "both aic_source= and aiv_source=" if core_type == "mixed" else "source="
        raise ValueError(f"@pl.jit.extern '{name}': core_type={core_type!r} requires {needed}")
    base = Path(func.__code__.co_filename).resolve().parent
    sources = {core: _existing(base, path, name, "source file", Path.is_file) for core, path in given.items()}
    if isinstance(include_dirs, (str, bytes, os.PathLike)) or not isinstance(include_dirs, Sequence):
        raise TypeError(f"@pl.jit.extern '{name}': include_dirs must be a sequence of paths")
    dirs = tuple(_existing(base, d, name, "include directory", Path.is_dir) for d in include_dirs)
    return ExternSources(core_type, sources, dual_aiv_dispatch, dirs)


def _existing(base: Path, path: Any, name: str, what: str, exists: Callable[[Path], bool]) -> Path:
    resolved = Path(os.fspath(path))
    resolved = (resolved if resolved.is_absolute() else base / resolved).resolve()
    if not exists(resolved):
        raise ValueError(f"@pl.jit.extern '{name}': {what} not found: {path}")
    return resolved


def build_extern(
    function: JITFunction, name: str, params: list[tuple[str, Type, ParamDirection]], target: Specialization
) -> Signature:
    """Add the function (or the Group and its two members) to the program and give its signature."""
    sources = function.extern
    assert sources is not None
    _require_empty_body(function)
    if sources.core_type != "mixed":
        signature = _member(function, name, sources.core_type, params, target)
    else:
        aic = _member(function, f"{name}_aic", "aic", params, target)
        aiv = _member(function, f"{name}_aiv", "aiv", params, target)
        signature = _group(function, name, params, (aic, aiv), target)
    return signature


def _require_empty_body(function: JITFunction) -> None:
    """The body of an external kernel is its C++ file; here stands ``...``, after a docstring if there is one."""
    for stmt in function.node.body:
        if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)) and not isinstance(stmt, ast.Pass):
            raise ParserSyntaxError(
                f"The body of the external function '{function.__name__}' must be exactly `...`",
                _span(function, stmt),
                source_lines=function.source.lines,
            )


def _member(function: JITFunction, name: str, core: str, params: list, target: Specialization) -> Signature:
    sources = function.extern
    assert sources is not None
    attrs: dict[str, Any] = {}
    if sources.dual_aiv_dispatch and core == "aiv":
        attrs["dual_aiv_dispatch"] = True
    attrs["external_source"] = str(sources.sources[core])
    if sources.include_dirs:
        attrs[INCLUDE_DIRS_ATTR] = json.dumps([str(d) for d in sources.include_dirs])
    return _add(function, name, _CORES[core], params, attrs, lambda variables: seq([]), target)


def _group(
    function: JITFunction, name: str, params: list, members: tuple[Signature, Signature], target: Specialization
) -> Signature:
    def body(variables: list[Var]) -> Any:
        calls = [
            EvalStmt(make(Call, GlobalVar(m.name), tuple(variables), {}, {}, _result(m), _span(function)))
            for m in members
        ]
        outs = [v for v, (_, _, d) in zip(variables, params) if d is ParamDirection.Out]
        return seq([*calls, ReturnStmt(outs)])

    return _add(function, name, FunctionType.Group, params, {}, body, target)


def _result(member: Signature) -> Type:
    """The type of a call of a member."""
    results = member.return_types
    return results[0] if len(results) == 1 else TupleType(tuple(results)) if results else UnknownType.get()


def _add(
    function: JITFunction,
    name: str,
    func_type: FunctionType,
    params: list[tuple[str, Type, ParamDirection]],
    attrs: dict[str, Any],
    body: Callable[[list[Var]], Any],
    target: Specialization,
) -> Signature:
    variables = [Var(n, kind, _span(function)) for n, kind, _ in params]
    directions = [d for _, _, d in params]
    results = [kind for _, kind, d in params if d is ParamDirection.Out and isinstance(kind, TensorType)]
    target.functions[name] = Function(
        name, list(zip(variables, directions)), results, body(variables), _span(function), type=func_type, attrs=attrs
    )
    return Signature(name, tuple(variables), directions, results, FunctionOptions(type=func_type))


def _span(function: JITFunction, node: ast.AST | None = None) -> Any:
    from pypto.language.parser.span_tracker import SpanTracker

    return SpanTracker(function.source.file, function.source.lines).get_span(node or function.node)
