"""Printing of the IR as source text of the tile language.

The text parses back to a structurally equal program; what has no syntax raises ``InternalError`` instead of being
dropped. Parts: ``printing/names`` (identifiers), ``types``, ``exprs``, ``stmts``, ``layout`` (formatting).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from pypto.ir import stmt as S
from pypto.ir.enums import FunctionType, ParamDirection, Role
from pypto.ir.expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Call,
    Expr,
    GlobalVar,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
)
from pypto.ir.printing.exprs import string
from pypto.ir.printing.layout import apply_format, register_format_callback
from pypto.ir.printing.names import Names, defined_vars, dimension_vars, printed_types
from pypto.ir.printing.stmts import StmtPrinter
from pypto.ir.program import Function, Program
from pypto.ir.types import Type
from pypto.ir.utils import walk_stmts

__all__ = ["python_print", "python_print_type", "register_format_callback"]

UNSUPPORTED = "<unsupported IRNode type>"
_DECORATOR_ATTRS = ("auto_scope", "external_source")
_DIRECTIONS = {ParamDirection.Out: "Out", ParamDirection.InOut: "InOut"}
_MAX_DEPTH = 100_000


def python_print(
    node: Any, prefix: str = "pl", concise: bool = False, format: bool = True, explicit_layout: bool = False
) -> str:
    """Source text of a program, function, statement, expression or type.

    Args:
        node: what to print.
        prefix: name under which the text imports ``pypto.language``.
        concise: leave out the annotations of assignments and yields.
        format: pass the text through the format callback.
        explicit_layout: spell out the layout of every tile and the window of every distributed tensor.

    Raises:
        InternalError: the node holds something that has no syntax.
    """
    printer = _Printer(prefix, concise, explicit_layout)
    with _deep_recursion():
        text = printer.root(node)
    return apply_format(text) if format else text


def python_print_type(type: Type, prefix: str = "pl", format: bool = True, explicit_layout: bool = False) -> str:
    """Source text of a type."""
    return python_print(type, prefix, False, format, explicit_layout)


@contextlib.contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for expressions nested much deeper than Python's default recursion limit."""
    limit = sys.getrecursionlimit()
    if limit < _MAX_DEPTH:
        sys.setrecursionlimit(_MAX_DEPTH)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class _Printer(StmtPrinter):
    """Adds functions and programs, and chooses by the class of the root."""

    _body_indent = ""

    def root(self, node: Any) -> str:
        if isinstance(node, Program):
            return self.program(node)
        if isinstance(node, Function):
            return self._function_root(node)
        if isinstance(node, S.Stmt):
            return self._stmt_root(node)
        if isinstance(node, Expr):
            return self.expr(node)
        if isinstance(node, Type):
            return self.type(node)
        return UNSUPPORTED

    def _stmt_root(self, stmt: S.Stmt) -> str:
        for var in defined_vars(stmt):
            self.names.define(var)
        if isinstance(stmt, S.SeqStmts):
            self.stmts(S.flatten_to_stmts(stmt), "")
        else:
            simple = not isinstance(stmt, (S.ScopeStmt, S.IfStmt, S.ForStmt, S.WhileStmt))
            self.stmt(stmt, "", comments=not simple)
        return "\n".join(self.lines)

    # -- functions --------------------------------------------------------------------------------------------------

    def _function_root(self, function: Function) -> str:
        symbols = self._symbols([function])
        lines = [f"{name} = {self.pl}.dynamic({string(name)})" for name in symbols.of.values()]
        if lines:
            lines.append("")
        self.function(function, "", symbols)
        return "\n".join(lines + self.lines)

    def _symbols(self, functions: list[Function]) -> Names:
        """Names of the free dimension variables of some functions, which stand in front of them."""
        symbols = Names((self.pl, "pld"))
        for function in functions:
            defined = defined_vars(function.body)
            local = {*function.params, *defined}
            for var in dimension_vars(printed_types(function, defined)):
                if var not in local:
                    symbols.define(var)
        return symbols

    def function(self, function: Function, indent: str, symbols: Names) -> None:
        """Lines of a function."""
        defined = defined_vars(function.body)
        self.names = Names((self.pl, "pld", "self"))
        self.names.of.update(symbols.of)
        used = dimension_vars(printed_types(function, defined))
        self.names.taken.update(symbols.of[var] for var in used if var in symbols.of)
        for var in (*function.params, *defined):
            self.names.define(var)
        self.mark_free, self.yields_return, self._body_indent = True, True, indent + "    "
        self.lines.append(f"{indent}@{self.pl}.function{self._decorator(function)}")
        self.in_signature = True
        self.lines.append(f"{indent}def {function.name}({self._signature(function)}){self._returns(function)}:")
        self.in_signature = False
        attrs = {k: v for k, v in function.attrs.items() if k not in _DECORATOR_ATTRS and not (k == "split" and not v)}
        if attrs:
            self.lines.append(f"{self._body_indent}{self.pl}.func_attr({self.attrs(attrs)})")
        if function.requires_runtime_binding or function.attrs.get("external_source") is not None:
            self.lines.append(f"{self._body_indent}...")
        else:
            self.body(function.body, self._body_indent)

    def _decorator(self, function: Function) -> str:
        args = []
        if function.func_type is not FunctionType.Opaque:
            args.append(f"type={self.pl}.FunctionType.{function.func_type.name}")
        if function.level is not None:
            args.append(f"level={self.pl}.Level.{function.level.name}")
        if function.role is not None:
            args.append(f"role={self.pl}.Role.{function.role.name}")
        if function.attrs.get("auto_scope") is False:
            args.append("auto_scope=False")
        if function.attrs.get("external_source") is not None:
            args.append(f"external_source={self.value(function.attrs['external_source'])}")
        return f"({', '.join(args)})" if args else ""

    def _signature(self, function: Function) -> str:
        parts = ["self"] if self.in_program and function.role is not Role.SubWorker else []
        for var, direction in zip(function.params, function.param_directions):
            kind = self.type(var.type)
            wrapper = _DIRECTIONS.get(direction)
            parts.append(f"{self.names.define(var)}: {f'{self.pl}.{wrapper}[{kind}]' if wrapper else kind}")
        return ", ".join(parts)

    def _returns(self, function: Function) -> str:
        types = [self.type(t) for t in function.return_types]
        if not types:
            return ""
        return f" -> {types[0]}" if len(types) == 1 else f" -> tuple[{', '.join(types)}]"

    # -- programs ---------------------------------------------------------------------------------------------------

    def program(self, program: Program) -> str:
        """Text of a program: header, imports, dimension symbols, functions with callees first."""
        self.in_program = True
        functions = _callees_first(program)
        symbols = self._symbols(functions)
        for function in functions:
            self.function(function, "    ", symbols)
        body = "\n".join(self.lines or ["    pass"])
        name = program.name or "Program"
        lines = [f"# pypto.program: {name}"]
        if self.pl == "pl":
            lines.append("import pypto.language as pl")
        else:
            lines.append(f"from pypto import language as {self.pl}")
        if "pld." in body:
            lines.append("import pypto.language.distributed as pld")
        lines.append("")
        if symbols.of:
            lines += [f"{symbol} = {self.pl}.dynamic({string(symbol)})" for symbol in symbols.of.values()]
            lines.append("")
        lines += [f"@{self.pl}.program", f"class {name}:", body]
        return "\n".join(lines)


def _callees_first(program: Program) -> list[Function]:
    """Functions after the functions they call, otherwise in name order."""
    by_name = {key.name: function for key, function in program.functions.items()}
    ordered: list[Function] = []
    state: dict[str, int] = {}  # 1 while its callees are placed, 2 when placed
    for root in by_name:
        stack = [(root, iter(_callees(by_name[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            name, pending = stack[-1]
            callee = next((c for c in pending if c in by_name and c not in state), None)
            if callee is None:
                stack.pop()
                state[name] = 2
                ordered.append(by_name[name])
            else:
                state[callee] = 1
                stack.append((callee, iter(_callees(by_name[callee]))))
    return ordered


def _callees(function: Function) -> list[str]:
    """Names of the functions that a function calls or launches, sorted."""
    names: set[str] = set()
    work: list[Any] = []
    for stmt in walk_stmts(function.body):
        work.extend(_operands(stmt))
        while work:
            expr = work.pop()
            if isinstance(expr, (Call, Submit)) and isinstance(expr.op, GlobalVar):
                names.add(expr.op.name)
            work.extend(_operands(expr))
    return sorted(names)


def _operands(item: Any) -> tuple:
    """The expressions directly in a statement or expression that can hold calls."""
    fields = _OPERANDS.get(type(item))
    if fields is None:
        return ()
    value = fields(item)
    return value if isinstance(value, tuple) else (value,)


_OPERANDS = {
    Call: attrgetter("args"), Submit: attrgetter("args"), MakeTuple: attrgetter("elements"),
    TupleGetItemExpr: attrgetter("tuple"), S.AssignStmt: attrgetter("value"), S.EvalStmt: attrgetter("expr"),
    S.ReturnStmt: attrgetter("value"), S.YieldStmt: attrgetter("value"), S.IfStmt: attrgetter("condition"),
    S.WhileStmt: attrgetter("condition"), S.ForStmt: attrgetter("start", "stop", "step"),
    **dict.fromkeys(BINARY_CLASSES, attrgetter("left", "right")), **dict.fromkeys(UNARY_CLASSES, attrgetter("operand")),
}  # fmt: skip
