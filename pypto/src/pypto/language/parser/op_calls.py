"""Calls of operators: argument values, dispatch through the public functions, errors with the user's location."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, as_expr
from pypto.ir.node import make
from pypto.ir.span import Span
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.language.parser.diagnostics import (
    BUG_CLASS_EXCEPTIONS,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    concise_error_message,
    did_you_mean,
)
from pypto.language.parser.names import MISSING, NamesMixin
from pypto.language.typing.values import _Value
from pypto.ops.registry import create_op_call, find_op

_SCALAR_HINT = "Scalars are computed with Python operators, e.g. s1 + s2, s1 % s2, s1 == s2"
#: What ``Signature.bind`` says, with the operator in front when a dispatcher passed it on.
_ARITY = re.compile(
    r"(?:pld?\.[\w.]+: )?(?:missing a required argument: '(?P<missing>\w+)'|too many positional arguments)"
)
_UNKNOWN_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_PRIVATE_NAME = re.compile(r"^_\w+\(\)")
_CATEGORIES = ("pl.tensor", "pl.tile", "pl.system", "pl.array", "pl.prefetch", "pld.tensor", "pld.tile", "pld.system")


#: Operators that read a part of their operand.
_WINDOWS = ("tensor.slice", "tile.slice", "tile.load")


class OpCallsMixin(NamesMixin):
    """Parses calls of ``pl.*`` and ``pld.*`` operators."""

    def parse_operator_call(self, path: str, node: ast.Call) -> Expr:
        """``pl.add(...)``, ``pl.tile.load(...)``, ``pld.tensor.barrier(...)``."""
        category, _, name = path.rpartition(".")
        function = self._operator(path, category, name, node)
        attrs = None
        args = [self.operator_argument(a) for a in node.args if not isinstance(a, ast.Starred)]
        if len(args) != len(node.args):
            raise self.unsupported("Argument unpacking (*args) is not supported", node)
        kwargs = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported("Keyword unpacking (**kwargs) is not supported", node)
            if keyword.arg == "attrs":
                attrs = self._operator_attrs(path, keyword.value)
            else:
                kwargs[keyword.arg] = self.operator_argument(keyword.value, keyword=True)
        self._type_constant_operands(name, function, args)
        label = f"{category} operation '{name}'"
        result = self._run(function, args, kwargs, node, label, self._ir_name(category, name))
        if attrs:
            result = make(
                Call, result.op, result.args, result.kwargs, {**result.attrs, **attrs}, result.type, result.span
            )
        return result

    def _operator_attrs(self, path: str, node: ast.expr) -> dict[str, Any]:
        """``attrs={...}`` of an operator; task edges belong to submits, scopes and dummy tasks only."""
        attrs = self.parse_attrs(node)
        for key in ("manual_dep_edges", "dummy_task"):
            if key in attrs and path != "pl.system.task_dummy":
                raise self.fail(
                    ParserSyntaxError,
                    f"Attribute '{key}' does not belong on {path}()",
                    node,
                    hint="Task edges are written with deps=[...] of pl.submit, a scope, or pl.system.task_dummy",
                )
        return attrs

    @staticmethod
    def _type_constant_operands(name: str, function: Callable, args: list) -> None:
        """Constants next to a tensor or tile: floats are FP32 and bools BOOL, which they keep; an int takes theirs."""
        if not args or not isinstance(getattr(args[0], "type", None), (TensorType, TileType)) or "fillpad" in name:
            return
        for position, value in enumerate(args[1:], 1):
            if isinstance(value, float):
                args[position] = ConstFloat(value, DataType.FP32)
            elif isinstance(value, bool) and _parameter_name(function, position) in ("rhs", "scalar"):
                args[position] = ConstBool(value)

    def call_unified(self, name: str, args: list, kwargs: dict, node: ast.AST) -> Expr:
        """A unified operator built by the parser itself."""
        from pypto.language.op import unified_ops

        return self._run(getattr(unified_ops, name), args, kwargs, node, f"pl operation '{name}'", None)

    def call_public(self, path: str, args: list, kwargs: dict, node: ast.AST) -> Expr:
        """An operator of an explicit namespace built by the parser itself."""
        category, _, name = path.rpartition(".")
        function = self._operator(path, category, name, node)
        return self._run(function, args, kwargs, node, f"{category} operation '{name}'", None)

    def call_operator(self, name: str, args: list, kwargs: dict, node: ast.AST) -> Expr:
        """An operator by its IR name."""

        return self._run(_creator(name), args, kwargs, node, name, None)

    # -- arguments -----------------------------------------------------------------------------------------------

    def operator_argument(self, node: ast.expr, keyword: bool = False) -> Any:
        """An argument: an expression, or a plain Python value (number, dtype, enum member, text, list)."""
        match node:
            case ast.Constant(value=value):
                if keyword or value is None or isinstance(value, (bool, int, float)):
                    return value
                raise self.fail(ParserTypeError, f"Unsupported constant type: {type(value)}", node)
            case ast.List() | ast.Tuple():
                return [self.operator_argument(e, keyword) for e in node.elts]
            case ast.Name(id=name):
                value = self.scopes.lookup_var(name)
                if value is not None:
                    return value
                if name in self.closure:
                    return self._outer_value(self.closure[name], node, keyword)
                raise self.undefined(node)
            case ast.Attribute():
                return self._attribute_argument(node, keyword)
        folded = self.fold(node)
        if folded is not MISSING:
            return folded
        if isinstance(node, ast.Subscript):
            value = self.closure_value(node)
            if value is not MISSING:
                return self._outer_value(value, node, keyword)
        return self.parse_expression(node)

    def _outer_value(self, value: Any, node: ast.AST, keyword: bool) -> Any:
        if isinstance(value, str) and not keyword:
            return self.value_to_expr(value, node)
        return self.argument_value(value, node)

    def _attribute_argument(self, node: ast.Attribute, keyword: bool) -> Any:
        path = self.public_path(node)
        if path is not None or self.closure_value(node) is not MISSING:
            value = self._evaluate_attribute(node)
            return self._outer_value(value, node, keyword)
        return self.parse_expression(node)

    def _evaluate_attribute(self, node: ast.Attribute) -> Any:
        found, value = self.evaluator.try_eval_expr(node)
        if found:
            return value
        import pypto.language as pl

        path = self.public_path(node)
        value: Any = pl
        for part in (path or "").split(".")[1:]:
            value = getattr(value, part, MISSING)
            if value is MISSING:
                owner = path.rsplit(".", 1)[0] if path else ""
                raise self.fail(
                    InvalidOperationError,
                    f"'{ast.unparse(node)}' does not exist",
                    node,
                    hint=did_you_mean(part, dir(pl)) or f"Look up the members of {owner}",
                )
        return value

    # -- dispatch ------------------------------------------------------------------------------------------------

    def _operator(self, path: str, category: str, name: str, node: ast.AST) -> Callable:
        module = self._module(category)
        function = getattr(module, name, None) if module is not None and not name.startswith("__") else None
        if callable(function) and name in getattr(module, "__all__", ()):
            return function
        if category.startswith("pl.builtin.") and find_op(path.removeprefix("pl.")):
            return _creator(path.removeprefix("pl."))
        if category in _CATEGORIES and category.startswith("pl."):
            shown = f"{category} operation: {name}"
            raise self.fail(InvalidOperationError, f"Unknown {shown}", node, hint=self._near(name, module))
        raise self.fail(InvalidOperationError, f"Unknown operation '{path}'", node, hint=self._near(name, module))

    @staticmethod
    def _near(name: str, module: Any) -> str | None:
        return did_you_mean(name, getattr(module, "__all__", ()))

    @staticmethod
    def _module(category: str) -> Any:
        if category == "pl":
            from pypto.language import op

            return op
        if category == "pld":
            from pypto.language.distributed.op import unified_ops

            return unified_ops
        root, _, leaf = category.partition(".")
        if root == "pl":
            import pypto.language.op as namespace
        else:
            import pypto.language.distributed.op as namespace
        return getattr(namespace, f"{leaf}_ops", None)

    @staticmethod
    def _ir_name(category: str, name: str) -> str | None:
        """The IR name that an explicit spelling denotes, for keyword forms that only printed text uses."""
        if category not in _CATEGORIES:
            return None
        leaf = name.rstrip("_")
        return f"{category.removeprefix('pl.')}.{leaf}" if category.startswith("pl.") else f"{category}.{leaf}"

    def _run(
        self, function: Callable, args: list, kwargs: dict, node: ast.AST, label: str, ir_name: str | None
    ) -> Expr:
        try:
            return self._checked(self._expression(function(*args, span=self.span(node), **kwargs), node), label, node)
        except (*BUG_CLASS_EXCEPTIONS, ParserError):
            raise
        except Exception as error:
            printed = self._printed_form(ir_name, args, kwargs, node) if isinstance(error, TypeError) else None
            if printed is not None:
                return printed
            message = concise_error_message(error, strip_trailing_span=True)
            message = message.removesuffix(f" at {self.span(node)}")
            message = _arity_message(function, args, message)
            if not (isinstance(error, TypeError) and message.startswith(("pl.", "pld."))):
                message = f"{label}: {message}"
            hint = _keyword_near(function, message)
            if args and all(isinstance(getattr(a, "type", None), ScalarType) for a in args):
                hint = _SCALAR_HINT
            raise self.fail(InvalidOperationError, message, node, hint=hint) from error

    def _checked(self, result: Expr, label: str, node: ast.AST) -> Expr:
        """``result``, whose extents must be integers that are not negative; a window holds something."""
        kind = result.type
        if isinstance(kind, (TensorType, TileType)):
            window = type(result) is Call and result.op.name in _WINDOWS
            for axis, extent in enumerate(kind.shape):
                if isinstance(extent, ConstInt) and extent.value >= window:
                    continue
                if isinstance(extent, (ConstInt, ConstFloat)):
                    least = "positive" if window else "non-negative"
                    raise self.fail(
                        InvalidOperationError,
                        f"{label}: extent {axis} of the result must be a {least} integer, got {extent.value}", node,
                    )  # fmt: skip
        return result

    def _printed_form(self, ir_name: str | None, args: list, kwargs: dict, node: ast.AST) -> Expr | None:
        """Printed IR spells the IR operands and attributes; None when that does not fit either."""
        if ir_name is None or find_op(ir_name) is None:
            return None
        try:
            operands = [self._operand(a) for a in args]
            return create_op_call(ir_name, operands, kwargs, self.span(node))
        except (TypeError, ValueError):
            return None

    def _operand(self, value: Any) -> Expr:
        if isinstance(value, (list, tuple)):
            return MakeTuple(tuple(self._operand(v) for v in value))
        return as_expr(value)

    def _expression(self, result: Any, node: ast.AST) -> Expr:
        """The result of an operator function as an expression that knows its place."""
        if isinstance(result, _Value):
            result = result.unwrap()
        if isinstance(result, (list, tuple)):
            return MakeTuple(tuple(self._expression(r, node) for r in result), self.span(node))
        if not isinstance(result, Expr):
            return self.value_to_expr(result, node)
        return with_span(result, self.span(node))

    # -- constants -----------------------------------------------------------------------------------------------

    def parse_const(self, node: ast.Call) -> Expr:
        """``pl.const(value, dtype)``."""
        if len(node.args) != 2 or node.keywords:
            raise self.fail(
                ParserSyntaxError, "pl.const() requires exactly 2 arguments: value and dtype", node,
                hint="Example: pl.const(1, pl.INT32)",
            )  # fmt: skip
        value = self._numeric_literal(node.args[0])
        dtype = self.types.resolve_dtype(node.args[1])
        if dtype.is_float():
            return ConstFloat(float(value), dtype, self.span(node))
        if isinstance(value, float):
            raise self.fail(ParserTypeError, f"pl.const() got a float value for the dtype {dtype}", node)
        return ConstInt(int(value), dtype, self.span(node))

    def _numeric_literal(self, node: ast.expr) -> int | float:
        sign, inner = 1, node
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, (ast.USub, ast.UAdd)):
            sign, inner = (-1 if isinstance(inner.op, ast.USub) else 1), inner.operand
        if isinstance(inner, ast.Constant) and isinstance(inner.value, (int, float)):
            return sign * inner.value
        if isinstance(inner, ast.Name) and inner.id in ("inf", "nan") and not self.scopes.is_defined(inner.id):
            return sign * float(inner.id)
        raise self.fail(ParserSyntaxError, "pl.const() value must be a numeric literal", node)


def with_span(value: Expr, span: Span) -> Expr:
    """``value`` located at ``span`` when it is a fresh call without a location."""
    if type(value) is Call and not value.span.is_valid():
        return make(Call, value.op, value.args, value.kwargs, value.attrs, value.type, span)
    return value


def _creator(name: str) -> Callable:
    """A function that builds a call of the operator with this IR name."""

    def create(*operands: Any, span: Span, **attrs: Any) -> Expr:
        return create_op_call(name, operands, attrs, span)

    return create


def _parameter_name(function: Callable, position: int) -> str | None:
    """The name of a positional parameter, None when there are fewer."""
    names = list(inspect.signature(function).parameters)
    return names[position] if position < len(names) else None


def _keyword_near(function: Callable, message: str) -> str | None:
    """The parameter that a misspelt keyword most likely means."""
    match = _UNKNOWN_KEYWORD.search(message)
    if match is None:
        return None
    names = [n for n in inspect.signature(function).parameters if not n.startswith("_") and n != "span"]
    return did_you_mean(match[1], names)


def _arity_message(function: Callable, args: list, message: str) -> str:
    """Texts about argument counts in the words that Python uses for calls; other texts unchanged."""
    name = function.__name__.rpartition(".")[2]
    match = _ARITY.fullmatch(message)
    if match is None:
        return _PRIVATE_NAME.sub(f"{name}()", message)
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if match["missing"] is None:
        plural = "" if len(positional) == 1 else "s"
        verb = "was" if len(args) == 1 else "were"
        return f"{name}() takes {len(positional)} positional argument{plural} but {len(args)} {verb} given"
    kind = "positional" if match["missing"] in positional else "keyword-only"
    return f"{name}() missing 1 required {kind} argument: '{match['missing']}'"
