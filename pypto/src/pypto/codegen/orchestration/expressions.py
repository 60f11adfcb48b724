"""Scalar expressions in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.errors import InternalError
from pypto.ir import DataType, Expr
from pypto.ir import expr as E
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Var

if TYPE_CHECKING:
    from pypto.codegen.orchestration.emitter import OrchestrationEmitter

_BINARY = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "/", E.FloorMod: "%", E.FloatDiv: "/", E.Eq: "==", E.Ne: "!=",
    E.Lt: "<", E.Le: "<=", E.Gt: ">", E.Ge: ">=", E.And: "&&", E.Or: "||", E.Xor: "!=", E.BitAnd: "&", E.BitOr: "|",
    E.BitXor: "^", E.BitShiftLeft: "<<", E.BitShiftRight: ">>",
}  # fmt: skip


def c_type(dtype: DataType) -> str:
    """C++ type of a scalar variable."""
    if dtype == DataType.TASK_ID:
        return "PTO2TaskId"
    text = dtype.to_c_type_string()
    if text == "unknown":
        raise InternalError(f"scalars of type {dtype} have no C++ type")
    return text


def expression(emitter: OrchestrationEmitter, expr: Expr) -> str:
    """C++ text of a scalar expression; every binary expression is parenthesised."""
    if isinstance(expr, ConstInt):
        return str(expr.value)
    if isinstance(expr, ConstBool):
        return "true" if expr.value else "false"
    if isinstance(expr, ConstFloat):
        return f"{expr.value:.9g}" + ("f" if _has_point(expr.value) else ".0f")
    if isinstance(expr, Var):
        text = emitter.scalars.get(expr)
        if text is None:
            raise InternalError(f"scalar '{expr.name_hint}' is used before its definition", span=expr.span)
        return text
    if isinstance(expr, (E.Min, E.Max)):
        name = "min" if isinstance(expr, E.Min) else "max"
        left, right = expression(emitter, expr.left), expression(emitter, expr.right)
        return f"std::{name}<{c_type(expr.dtype)}>({left}, {right})"
    if isinstance(expr, E.BinaryExpr) and type(expr) in _BINARY:
        return f"({expression(emitter, expr.left)} {_BINARY[type(expr)]} {expression(emitter, expr.right)})"
    if isinstance(expr, E.Cast):
        return f"static_cast<{c_type(expr.dtype)}>({expression(emitter, expr.operand)})"
    if isinstance(expr, E.Not):
        return f"(!{expression(emitter, expr.operand)})"
    if isinstance(expr, E.Neg):
        return f"(-{expression(emitter, expr.operand)})"
    if isinstance(expr, E.BitNot):
        return f"(~{expression(emitter, expr.operand)})"
    if isinstance(expr, E.Abs):
        return f"std::abs({expression(emitter, expr.operand)})"
    if isinstance(expr, Call):
        return emitter.scalar_call(expr)
    raise InternalError(f"{type(expr).__name__} cannot be printed in an orchestration function", span=expr.span)


def _has_point(value: float) -> bool:
    text = f"{value:.9g}"
    return "." in text or "e" in text or "n" in text


def narrowed(emitter: OrchestrationEmitter, expr: Expr) -> str:
    """A value in a ``uint32_t`` array: literals bare, everything else cast."""
    text = expression(emitter, expr)
    return text if isinstance(expr, ConstInt) else f"static_cast<uint32_t>({text})"
