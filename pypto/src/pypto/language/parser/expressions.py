"""Expressions: literals, operators, comparisons, tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pypto.ir import scalar_ops
from pypto.ir.dtype import DataType
from pypto.ir.expr import Abs, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.language.parser.diagnostics import (
    ErrorCode,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
    concise_error_message,
)
from pypto.language.parser.names import MISSING, NamesMixin
from pypto.language.parser.type_consistency import type_text

_BINARY: dict[type, Callable] = {
    ast.Add: scalar_ops.add, ast.Sub: scalar_ops.sub, ast.Mult: scalar_ops.mul, ast.Div: scalar_ops.truediv,
    ast.FloorDiv: scalar_ops.floordiv, ast.Mod: scalar_ops.mod, ast.Pow: scalar_ops.pow,
    ast.LShift: scalar_ops.bit_shift_left, ast.RShift: scalar_ops.bit_shift_right, ast.BitAnd: scalar_ops.bit_and,
    ast.BitOr: scalar_ops.bit_or, ast.BitXor: scalar_ops.bit_xor,
}  # fmt: skip
#: Operators that tensors and tiles have, by the name of the unified operator.
_ARRAY_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARISONS: dict[type, Callable] = {
    ast.Eq: scalar_ops.eq, ast.NotEq: scalar_ops.ne, ast.Lt: scalar_ops.lt, ast.LtE: scalar_ops.le,
    ast.Gt: scalar_ops.gt, ast.GtE: scalar_ops.ge,
}  # fmt: skip
_UNARY: dict[type, Callable] = {ast.USub: scalar_ops.neg, ast.Invert: scalar_ops.bit_not, ast.Not: scalar_ops.not_}


class ExpressionsMixin(NamesMixin):
    """Parses one expression into IR."""

    def parse_expression(self, node: ast.expr) -> Expr:
        """The IR expression of ``node``; a language error at the place of the mistake."""
        match node:
            case ast.Constant():
                return self._literal(node)
            case ast.Name():
                return self.lookup_name(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp():
                return self._boolean(node)
            case ast.Call():
                return self.parse_call(node)
            case ast.Subscript():
                return self.parse_subscript(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.List() | ast.Tuple():
                return MakeTuple(tuple(self.parse_expression(e) for e in node.elts), self.span(node))
        raise self.unsupported(f"Unsupported expression type: {type(node).__name__}", node)

    def _literal(self, node: ast.Constant) -> Expr:
        value, span = node.value, self.span(node)
        if isinstance(value, bool):
            return ConstBool(value, span)
        if isinstance(value, int):
            return ConstInt(value, DataType.INDEX, span)
        if isinstance(value, float):
            return ConstFloat(value, DataType.FP32, span)
        if value is None:
            return self.call_operator("system.task_invalid", [], {}, node)
        raise self.fail(ParserTypeError, f"Unsupported constant type: {type(value)}", node)

    def _binary(self, node: ast.BinOp) -> Expr:
        folded = self.fold(node)
        if folded is not MISSING:
            return self.value_to_expr(folded, node)
        build = _BINARY.get(type(node.op))
        if build is None:
            name = type(node.op).__name__
            raise self._unsupported(f"Unsupported binary operator: {name}", node, ErrorCode.UNSUPPORTED_BINARY)
        left, right = self.parse_expression(node.left), self.parse_expression(node.right)
        if type(node.op) in _ARRAY_BINARY and (_is_array(left) or _is_array(right)):
            left, right = self._array_first(left, right, node)
            return self.call_unified(_ARRAY_BINARY[type(node.op)], [left, right], {}, node)
        return self._scalar(build, node, left, right)

    def _array_first(self, left: Expr, right: Expr, node: ast.BinOp) -> tuple[Expr, Expr]:
        """Operators of tensors and tiles take their scalar on the right; sums and products may be turned round."""
        if _is_array(left):
            return left, right
        if isinstance(node.op, (ast.Add, ast.Mult)):
            return right, left
        raise self.fail(
            ParserTypeError, f"The left operand of '{ast.unparse(node)}' is a scalar, the right one is not", node,
            hint="Write pl.neg(x) + s for s - x, and pl.recip(x) * s for s / x",
        )  # fmt: skip

    def _unary(self, node: ast.UnaryOp) -> Expr:
        folded = self.fold(node)
        if folded is not MISSING:
            return self.value_to_expr(folded, node)
        operand = self.parse_expression(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.USub) and _is_array(operand):
            return self.call_unified("neg", [operand], {}, node)
        return self._scalar(_UNARY[type(node.op)], node, operand)

    def _compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) != 1:
            raise self.fail(
                ParserSyntaxError, "Only simple comparisons supported", node, hint="Write a < b and b < c for a chain"
            )
        build = _COMPARISONS.get(type(node.ops[0]))
        if build is None:
            name = type(node.ops[0]).__name__
            raise self._unsupported(f"Unsupported comparison: {name}", node, ErrorCode.UNSUPPORTED_COMPARISON)
        return self._scalar(build, node, self.parse_expression(node.left), self.parse_expression(node.comparators[0]))

    def _boolean(self, node: ast.BoolOp) -> Expr:
        build = scalar_ops.and_ if isinstance(node.op, ast.And) else scalar_ops.or_
        result = self.parse_expression(node.values[0])
        for operand in node.values[1:]:
            result = self._scalar(build, node, result, self.parse_expression(operand))
        return result

    def _scalar(self, build: Callable, node: ast.expr, *operands: Expr) -> Expr:
        for operand in operands:
            if not isinstance(operand.type, ScalarType):
                raise self.fail(
                    ParserSyntaxError,
                    "Expression must be ScalarExpr or Var with ScalarType, got "
                    f"{type(operand).__name__} with type {type(operand.type).__name__}",
                    node,
                    hint="Use the pl.* operators for tensors and tiles",
                )
        try:
            return build(*operands, self.span(node))
        except (TypeError, ValueError) as error:
            message = concise_error_message(error, strip_trailing_span=True)
            raise self.fail(
                ParserSyntaxError, f"Operator {message}", node, hint="Convert one side with pl.cast(x, dtype)"
            ) from error

    def scalar_builtin(self, name: str, node: ast.Call) -> Expr:
        """``min(a, b)``, ``max(a, b)`` and ``abs(x)`` on scalars."""
        folded = self.closure_value(node)
        if folded is not MISSING and isinstance(folded, (int, float)):
            return self.value_to_expr(folded, node)
        operands = [self.parse_expression(a) for a in node.args]
        if node.keywords or len(operands) != (1 if name == "abs" else 2):
            raise self.unsupported(f"Unsupported function call: {ast.unparse(node)}", node)
        if name == "abs":
            return self._scalar(lambda x, span: Abs(x, x.type.dtype, span), node, *operands)
        return self._scalar(scalar_ops.min_ if name == "min" else scalar_ops.max_, node, *operands)

    def _attribute(self, node: ast.Attribute) -> Expr:
        value = self.closure_value(node)
        if value is not MISSING and isinstance(value, (int, float, list, tuple, Expr)):
            return self.value_to_expr(value, node)
        raise self._unsupported(
            f"Standalone attribute access not supported: {ast.unparse(node)}",
            node,
            ErrorCode.UNSUPPORTED_OPERATION,
            hint="Use pl.tensor.dim(x, i) for the extent of a tensor" if node.attr == "shape" else None,
        )

    def parse_condition(self, node: ast.expr, what: str) -> Expr:
        """The condition of an if or while: a BOOL scalar."""
        condition = self.parse_expression(node)
        kind = condition.type
        if not (isinstance(kind, ScalarType) and kind.dtype == DataType.BOOL):
            raise self.fail(
                ParserTypeError,
                f"{what} condition must be a Bool-typed scalar expression, got {type_text(kind)}",
                node,
                hint="Compare explicitly, e.g. n != 0",
            )
        return condition

    def _unsupported(self, message: str, node: ast.AST, code: ErrorCode, hint: str | None = None) -> Any:
        return UnsupportedFeatureError(message, self.span(node), hint=hint, code=code)


def _is_array(value: Expr) -> bool:
    return isinstance(value.type, (TensorType, TileType))
