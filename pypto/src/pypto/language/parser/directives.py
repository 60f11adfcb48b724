"""Statements that act while parsing: ``static_print``, ``static_assert``, ``func_attr``, ``dump_tag``."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.expr import ConstBool, ConstInt, Expr, Var
from pypto.ir.stmt import Stmt
from pypto.ir.types import TensorType
from pypto.ir.visitor import IRVisitor
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError
from pypto.language.parser.names import MISSING
from pypto.language.parser.type_consistency import type_text

_DECORATOR_ONLY = ("auto_scope", "external_source")


class DirectivesMixin(ParserBase):
    """Carries out parse-time statements."""

    DIRECTIVES = ("pl.static_print", "pl.static_assert", "pl.func_attr", "pl.dump_tag", "pl.tensor.dump_tag")

    def parse_directive(self, path: str, node: ast.Call) -> None:
        match path:
            case "pl.static_print":
                self._static_print(node)
            case "pl.static_assert":
                self._static_assert(node)
            case "pl.func_attr":
                raise self.fail(
                    ParserSyntaxError,
                    f"pl.func_attr() must appear before every other statement in '{self.function_name}'",
                    node,
                )
            case _:
                self._dump_tag(node)

    # -- static_print --------------------------------------------------------------------------------------------

    def _static_print(self, node: ast.Call) -> None:
        if not node.args or node.keywords:
            raise self.fail(ParserSyntaxError, "pl.static_print() requires at least one argument", node)
        span = self.span(node)
        parts = " ".join(self._shown(argument) for argument in node.args)
        print(f"static_print [{span.filename}:{span.begin_line}]: {parts}")

    def _shown(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(self._fragment(v) for v in node.values)
        value = self.operator_argument(node, keyword=True)
        if not isinstance(value, Expr):
            outer = self.closure_value(node)
            if outer is not MISSING and not isinstance(outer, (bool, int, float)):
                return str(outer)
            value = self.value_to_expr(value, node)
        name = value.name_hint if isinstance(value, Var) else None
        if name is None:
            from pypto.ir.printer import python_print

            name = python_print(value, format=False)
        return f"{name}: {type_text(value.type)}"

    def _fragment(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        if node.conversion != -1 or node.format_spec is not None:
            raise self.unsupported("f-strings in pl.static_print() support plain {expr} only", node)
        return self._shown(node.value)

    # -- static_assert -------------------------------------------------------------------------------------------

    def _static_assert(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or any(k.arg != "msg" for k in node.keywords):
            raise self.fail(ParserSyntaxError, "pl.static_assert() takes a condition and an optional message", node)
        texts = node.args[1:] + [k.value for k in node.keywords]
        message = ""
        if texts:
            text = texts[0]
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                raise self.fail(ParserSyntaxError, "The message of pl.static_assert() must be a string literal", text)
            message = text.value
        if not self._truth(node.args[0]):
            raise self.fail(ParserError, "static_assert failed" + (f": {message}" if message else ""), node)

    def _truth(self, node: ast.expr) -> bool:
        value: Any = self.closure_value(node)
        if value is not MISSING:
            return bool(value)
        try:
            value = self.parse_expression(node)
        except ParserError:
            value = None
        if value is not None:
            from pypto.language.parser.constants import fold_condition

            value = fold_condition(value)
        if isinstance(value, ConstBool) or (isinstance(value, ConstInt) and value.value in (0, 1)):
            return bool(value.value)
        raise self.fail(ParserError, "static_assert condition must be compile-time evaluable", node)

    # -- func_attr -----------------------------------------------------------------------------------------------

    def parse_func_attr(self, node: ast.Call) -> None:
        """Merge the dictionary of one ``pl.func_attr({...})`` into the attributes of the function."""
        if len(node.args) != 1 or node.keywords:
            raise self.fail(ParserSyntaxError, "pl.func_attr() takes exactly one positional dict argument", node)
        if not isinstance(node.args[0], ast.Dict):
            raise self.fail(ParserSyntaxError, "The argument of pl.func_attr() must be a dict literal", node)
        for key, value in self.attr_items(node.args[0]):
            if key in _DECORATOR_ONLY:
                raise self.fail(
                    ParserSyntaxError, f"'{key}' cannot be set with pl.func_attr(); it is an argument of @pl.function",
                    value,
                )  # fmt: skip
            if key in self.func_attrs:
                raise self.fail(
                    ParserSyntaxError,
                    f"Duplicate function attribute '{key}'. Each attribute may be declared only once.",
                    value,
                )
            self.func_attrs[key] = self._func_attr_value(key, value)

    def _func_attr_value(self, key: str, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            param = self.params.get(node.id)
            if param is None:
                raise self.fail(
                    ParserSyntaxError, f"'{node.id}' is not a parameter; a bare name in pl.func_attr() is always one",
                    node,
                )  # fmt: skip
            return param
        value = self.attr_value(key, node)
        if key == "split" and not isinstance(value, SplitMode):
            raise self.fail(ParserSyntaxError, "'split' takes a member of pl.SplitMode", node)
        return value

    def normalized_attrs(self) -> dict[str, Any]:
        """The function attributes as stored: a split is an int, and absent when it is NONE."""
        attrs = dict(self.func_attrs)
        split = attrs.get("split")
        if isinstance(split, (SplitMode, int)) and not isinstance(split, bool):
            if int(split) == 0:
                del attrs["split"]
            else:
                attrs["split"] = int(split)
        return attrs

    # -- dump_tag ------------------------------------------------------------------------------------------------

    def _dump_tag(self, node: ast.Call) -> None:
        if self.options.type not in (FunctionType.Orchestration, FunctionType.Graph, FunctionType.Inline):
            raise self.fail(
                ParserSyntaxError, "pl.dump_tag() is only valid inside an Orchestration or Inline function", node
            )
        if len(node.args) != 1 or node.keywords:
            raise self.fail(ParserSyntaxError, "pl.dump_tag() takes exactly one positional argument", node)
        if not isinstance(node.args[0], ast.Name):
            raise self.fail(ParserSyntaxError, "The argument of pl.dump_tag() must be a bare variable name", node)
        value = self.lookup_name(node.args[0])
        if not isinstance(value, Var) or not isinstance(value.type, TensorType):
            raise self.fail(ParserSyntaxError, "pl.dump_tag() marks a tensor", node)
        if not any(v is value for v in self.dump_tags):
            self.dump_tags.append(value)

    def add_scope_dumps(self, attrs: dict[str, Any], tags: list[Var], stmts: list[Stmt]) -> None:
        """Tensors tagged before a scope that its statements use become the scope's dump list."""
        if not tags:
            return
        uses = VarUses()
        for stmt in stmts:
            uses.visit_stmt(stmt)
        listed = attrs.get("dump_vars", [])
        found = [t for t in tags if id(t) in uses.seen and not any(t is v for v in listed)]
        if found:
            attrs["dump_vars"] = [*listed, *found]


class VarUses(IRVisitor):
    """Identities of the variables that a statement or expression mentions."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def visit_var(self, node: Var) -> None:
        self.seen.add(id(node))
        super().visit_var(node)
