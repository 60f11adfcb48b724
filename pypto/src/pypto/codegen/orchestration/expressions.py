"""Scalar expressions in C++."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING

from pypto.codegen.division import check_divisor
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
        return float_literal(expr.value)
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
        check_divisor(expr, expr.span)
        left, right = expression(emitter, expr.left), expression(emitter, expr.right)
        if not emitter.divisions.may_truncate(expr):
            return _rounded_down(type(expr), left, right)
        return f"({left} {_BINARY[type(expr)]} {right})"
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


def _rounded_down(kind: type[Expr], left: str, right: str) -> str:
    if kind is E.FloorMod:
        return f"(({left} % {right} + {right}) % {right})"
    return f"({left} / {right} - ({left} % {right} != 0 && ({left} < 0) != ({right} < 0)))"


def float_literal(value: float, decimals: int | None = None) -> str:
    """C++ text of a ``float``; with ``decimals`` fixed-point text of that many places when that is the same number."""
    if not math.isfinite(value):
        text = '__builtin_nanf("")' if math.isnan(value) else "__builtin_inff()"
        return f"-{text}" if math.copysign(1.0, value) < 0 else text
    fixed = f"{value:.{decimals}f}" if decimals is not None else ""
    if fixed and ctypes.c_float(float(fixed)).value == ctypes.c_float(value).value:
        return f"{fixed}f"
    text = f"{value:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def narrowed(emitter: OrchestrationEmitter, expr: Expr) -> str:
    """A value in a ``uint32_t`` array: literals bare, everything else cast."""
    text = expression(emitter, expr)
    return text if isinstance(expr, ConstInt) else f"static_cast<uint32_t>({text})"
