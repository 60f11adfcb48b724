"""``@pl.function``, ``@pl.program`` and ``@pl.inline``."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from pypto.collection_pause import without_garbage_collection
from pypto.ir.enums import ArgDirection, FunctionType, Level, Role, SplitMode
from pypto.ir.expr import Expr
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.language.parser.ast_parser import ASTParser, check_options
from pypto.language.parser.context import FunctionOptions, ProgramContext, SourceInfo
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError, ParserTypeError, located_errors
from pypto.language.parser.inline_templates import InlineFunction
from pypto.language.parser.source_lookup import ParsedFile, class_line, find_definition, get_class_source_lines
from pypto.language.typing.dynamic import DynVar
from pypto.language.typing.values import _Value


@dataclass
class PendingFunction:
    """A decorated method, parsed when its class is complete."""

    func: Callable
    options: FunctionOptions
    closure_vars: dict[str, Any]

    @property
    def __name__(self) -> str:
        return self.func.__name__


@dataclass
class _Definition:
    """A function with its source, ready to be parsed."""

    node: ast.FunctionDef
    source: SourceInfo
    parsed: ParsedFile
    parser: ASTParser
    options: FunctionOptions


def function(
    func: Callable | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Any = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | None = None,
) -> Any:
    """Parse a Python function into an :class:`~pypto.ir.Function`.

    Args:
        func: the function when the decorator is used without parentheses.
        type: kind of function.
        level, role: place in the machine hierarchy; must agree with what ``type`` implies.
        attrs: constant attributes. Deprecated, use ``pl.func_attr`` in the body.
        auto_scope: False when the body places runtime scopes itself.
        strict_ssa: reject rebinding of names.
        external_source: C++ file of an external AIC or AIV kernel whose body is ``...``.

    Raises:
        ParserError: with the location of the mistake.
    """
    frame = sys._getframe(1)
    options = FunctionOptions(type, level, role, {}, auto_scope, strict_ssa, external_source)

    def decorate(target: Callable) -> Any:
        check_decorated(target, "@pl.function", frame)
        options.attrs = _checked_attrs(attrs, target)
        options.external_source = _external_path(external_source, target)
        closure_vars = closure_of(target, frame)
        if _is_class_body(frame):
            if isinstance(frame.f_locals.get(target.__name__), PendingFunction):
                with located_errors():
                    raise ParserSyntaxError(
                        f"Function '{target.__name__}' is defined twice in its class",
                        _decorator_span(frame),
                        hint="Rename one of them: the second would silently replace the first",
                    )
            return PendingFunction(target, options, closure_vars)
        with located_errors():
            definition = _define(target, options, closure_vars, None)
            try:
                return _parse(definition)
            except ParserError as error:
                raise _with_source(error, definition.source) from error.__cause__

    return decorate if func is None else decorate(func)


def program(cls: type | None = None, *, strict_ssa: bool = False) -> Any:
    """Parse the decorated methods of a class into a :class:`~pypto.ir.Program` named after the class."""
    frame = sys._getframe(1)

    def decorate(target: type) -> Program:
        with located_errors(), without_garbage_collection():
            return parsed(target)

    def parsed(target: type) -> Program:
        if not isinstance(target, type):
            raise ParserSyntaxError(
                f"@pl.program decorates a class, got {_what(target)}",
                _decorator_span(frame),
                hint="Use @pl.function for a single function",
            )
        pending = [v for v in vars(target).values() if isinstance(v, PendingFunction)]
        if not pending:
            raise ParserSyntaxError(
                f"Class '{target.__name__}' contains no @pl.function decorated methods",
                _decorator_span(frame),
                hint="Decorate at least one method with @pl.function",
            )
        context = ProgramContext(target.__name__)
        definitions: list[_Definition] = []
        source = None
        try:
            for entry in pending:
                entry.options.strict_ssa = entry.options.strict_ssa or strict_ssa
                definition = _define(entry.func, entry.options, entry.closure_vars, context)
                source = definition.source
                definitions.append(definition)
                context.signatures[definition.node.name] = definition.parser.parse_signature(
                    definition.node, definition.options
                )
            functions = []
            for definition in definitions:
                source = definition.source
                functions.append(_parse(definition, context))
        except ParserError as error:
            raise _with_source(error, source) from error.__cause__
        span = _class_span(target, definitions[0])
        return Program([*functions, *_with_callees(context.externals)], target.__name__, span)

    return decorate if cls is None else decorate(cls)


def inline(func: Callable) -> InlineFunction:
    """Capture a function as a template that is expanded at every call inside a parsed body."""
    closure_vars = closure_of(func, sys._getframe(1))
    node, source, _ = _source_of(func)
    return InlineFunction(func.__name__, node, [a.arg for a in node.args.args], source, closure_vars)


def parse_definition(
    node: ast.FunctionDef, source: SourceInfo, options: FunctionOptions, closure_vars: dict[str, Any]
) -> Function:
    """Parse one stand-alone function from its syntax tree."""
    parser = ASTParser(source, closure_vars, None, options.strict_ssa)
    return parser.parse_function(node, parser.parse_signature(node, options))


# -- steps -------------------------------------------------------------------------------------------------------


def _define(
    func: Callable, options: FunctionOptions, closure_vars: dict[str, Any], context: ProgramContext | None
) -> _Definition:
    node, source, parsed = _source_of(func)
    parser = ASTParser(source, closure_vars, context, options.strict_ssa)
    _check_members(options, node, parser)
    check_options(options, node.name, lambda message: ParserTypeError(message, parser.span(node)))
    parser.comments = parsed.comments_of(node)
    return _Definition(node, source, parsed, parser, options)


def _check_members(options: FunctionOptions, node: ast.FunctionDef, parser: ASTParser) -> None:
    """``type=``, ``level=`` and ``role=`` must be members of their enums."""
    for name, kind, optional in (("type", FunctionType, False), ("level", Level, True), ("role", Role, True)):
        value = getattr(options, name)
        if isinstance(value, kind) or (optional and value is None):
            continue
        keywords = [k for d in node.decorator_list if isinstance(d, ast.Call) for k in d.keywords if k.arg == name]
        raise ParserSyntaxError(
            f"{name}= of '{node.name}' must be a member of pl.{kind.__name__}, got {value!r}",
            parser.span(keywords[0].value if keywords else node),
            hint=f"Valid values: {', '.join(kind.__members__)}",
        )


def _parse(definition: _Definition, context: ProgramContext | None = None) -> Function:
    parser, node = definition.parser, definition.node
    if context is None:
        signature = parser.parse_signature(node, definition.options)
    else:
        signature = context.signatures[node.name]
    return parser.parse_function(node, signature)


def _source_of(func: Callable) -> tuple[ast.FunctionDef, SourceInfo, ParsedFile]:
    found = find_definition(func)
    if found is None:
        raise ParserSyntaxError(
            f"Cannot retrieve source code for function '{func.__name__}'",
            hint="Define it in a file, or pass its text to pl.parse()",
        )
    return found


def _with_source(error: ParserError, source: SourceInfo | None) -> ParserError:
    if error.source_lines is None and source is not None:
        error.source_lines = source.lines
    return error


def check_decorated(target: Any, decorator: str, frame: FrameType) -> None:
    """``ParserSyntaxError`` when a decorator of functions is put on something else."""
    if not inspect.isfunction(target):
        problem, hint = f"got {_what(target)}", "Put it on a `def`"
    elif inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        problem, hint = f"got the async function '{target.__name__}'", "Leave out `async`"
    else:
        return
    with located_errors():
        raise ParserSyntaxError(
            f"{decorator} decorates a plain Python function, {problem}", _decorator_span(frame), hint=hint
        )


def _what(target: Any) -> str:
    if isinstance(target, type):
        return f"class {target.__name__}"
    if isinstance(target, (PendingFunction, Function)):
        name = getattr(target, "__name__", None) or getattr(target, "name", "")
        return f"'{name}', which is decorated already"
    return f"{_class_name(target)} {getattr(target, '__name__', '')}".rstrip()


def _decorator_span(frame: FrameType) -> Span:
    """Where the decorator that runs in ``frame`` stands."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line)
    return Span(file, line, len(text) - len(text.lstrip()) + 1 if text.strip() else -1)


def _class_span(cls: type, first: _Definition) -> Span:
    """Where the class begins; the place of its first method when the text of the class is not known."""
    try:
        lines, line = get_class_source_lines(cls)
        text = lines[0]
    except (OSError, TypeError):
        line = class_line(cls, first.parsed) or first.node.lineno
        text = first.source.lines[line - 1]
    return Span(first.source.file, line, len(text) - len(text.lstrip()) + 1)


def _with_callees(externals: dict[str, Function]) -> list[Function]:
    return list(externals.values())


def closure_of(func: Callable, frame: FrameType | None) -> dict[str, Any]:
    """Values visible from a definition: globals, the locals around it, captured variables."""
    values: dict[str, Any] = dict(func.__globals__)
    frames = []
    while frame is not None and _is_class_body(frame):
        frames.append(frame)
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name != "<module>":
        frames.append(frame)
    for entry in reversed(frames):
        if entry.f_globals is func.__globals__:
            values.update((k, v) for k, v in entry.f_locals.items() if not isinstance(v, PendingFunction))
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    return values


def _is_class_body(frame: FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals and frame.f_code.co_name != "<module>"


def _checked_attrs(attrs: Any, func: Callable) -> dict[str, Any]:
    if attrs is None:
        return {}
    if not isinstance(attrs, dict):
        raise ParserSyntaxError(f"attrs= of '{func.__name__}' must be a dict, got {_class_name(attrs)}")
    if not all(isinstance(key, str) for key in attrs):
        raise ParserSyntaxError(f"attrs= keys must be strings (function '{func.__name__}')")
    if attrs:
        warnings.warn(
            "@pl.function(attrs=...) is deprecated: it cannot reference parameters; use pl.func_attr({...}) as the "
            "first statement of the body",
            DeprecationWarning,
            stacklevel=3,
        )
    return {key: _attr_constant(key, value) for key, value in attrs.items()}


def _attr_constant(key: str, value: Any) -> Any:
    if isinstance(value, _Value):
        if value._expr is None:
            raise ParserSyntaxError(f"Attribute '{key}' is an annotation-only {_class_name(value)} without a value")
        value = value.unwrap()
    if isinstance(value, DynVar) or (isinstance(value, Expr) and _mentions_variable(value)):
        raise ParserSyntaxError(
            f"Attribute '{key}' references a variable; a decorator cannot reference parameters",
            hint="Use pl.func_attr({...}) as the first statement of the body",
        )
    if isinstance(value, SplitMode):
        return int(value)
    if isinstance(value, (list, tuple)) and not all(isinstance(v, ArgDirection) for v in value):
        if key != "arg_direction_overrides" or not all(isinstance(v, int) for v in value):
            raise ParserSyntaxError(
                f"Unsupported list element type for key: {key}. Lists may hold ArgDirection members, and ints under "
                "arg_direction_overrides"
            )
    return value


def _mentions_variable(value: Expr) -> bool:
    from pypto.ir.expr import Var
    from pypto.ir.visitor import IRVisitor

    found: list[Var] = []

    class _Finder(IRVisitor):
        def visit_var(self, node: Var) -> None:
            found.append(node)

    _Finder().visit_expr(value)
    return bool(found)


def _external_path(path: str | None, func: Callable) -> str | None:
    """Absolute path of an external source; a relative one starts at the defining file."""
    if path is None:
        return None
    text = os.fspath(path)
    resolved = Path(text)
    if not resolved.is_absolute():
        resolved = Path(func.__code__.co_filename).resolve().parent / resolved
    if not resolved.is_file():
        raise ValueError(f"external_source of '{func.__name__}': file not found: {text}")
    return str(resolved)


def _class_name(value: Any) -> str:
    return value.__class__.__name__
