"""Folding of scalar operators on constants, and of the identities with one constant operand."""

from __future__ import annotations

import math
from collections.abc import Callable

from pypto.arith.int_ops import fits_int64
from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr
from pypto.ir.span import Span

Number = int | float


def _power(base: Number, exponent: Number) -> Number | None:
    if isinstance(base, float):
        try:
            return base**exponent
        except (OverflowError, ZeroDivisionError):
            return None
    if exponent < 0 or (abs(base) > 1 and exponent > 63):
        return None
    return base**exponent


def _shift_left(a: int, b: int) -> int | None:
    return a << b if 0 <= b < 64 else None


def _shift_right(a: int, b: int) -> int | None:
    return a >> b if 0 <= b < 64 else None


def _float_div(a: Number, b: Number) -> float | None:
    if b == 0.0:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


_ARITHMETIC: dict[type, Callable[[Number, Number], Number | None]] = {
    E.Add: lambda a, b: a + b,
    E.Sub: lambda a, b: a - b,
    E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b,
    E.FloorMod: lambda a, b: a % b,
    E.Min: min,
    E.Max: max,
    E.Pow: _power,
}
_COMPARISONS: dict[type, Callable[[Number, Number], bool]] = {
    E.Eq: lambda a, b: a == b,
    E.Ne: lambda a, b: a != b,
    E.Lt: lambda a, b: a < b,
    E.Le: lambda a, b: a <= b,
    E.Gt: lambda a, b: a > b,
    E.Ge: lambda a, b: a >= b,
}
_BITWISE: dict[type, Callable[[int, int], int | None]] = {
    E.BitAnd: lambda a, b: a & b,
    E.BitOr: lambda a, b: a | b,
    E.BitXor: lambda a, b: a ^ b,
    E.BitShiftLeft: _shift_left,
    E.BitShiftRight: _shift_right,
}
_LOGICAL: dict[type, Callable[[bool, bool], bool]] = {
    E.And: lambda a, b: a and b,
    E.Or: lambda a, b: a or b,
    E.Xor: lambda a, b: a != b,
}


def fold_const(expr: Expr) -> Expr | None:
    """The value of an operator node on constants, or of an identity such as ``x + 0``; None when nothing applies.

    Results that do not fit in 64 bits and shifts by a negative or too large count are left alone.

    Raises:
        ValueError: integer division or modulo by zero, and INT64_MIN // -1.
    """
    if isinstance(expr, E.BinaryExpr):
        return fold_binary(type(expr), expr.left, expr.right, expr.dtype, expr.span)
    if isinstance(expr, E.UnaryExpr):
        return fold_unary(type(expr), expr.operand, expr.dtype, expr.span)
    return None


def fold_binary(cls: type, a: Expr, b: Expr, dtype: DataType, span: Span) -> Expr | None:
    """:func:`fold_const` of ``cls(a, b)`` without building the node."""
    if type(a) is ConstInt and type(b) is ConstInt:
        return _fold_ints(cls, a.value, b.value, dtype, span)
    if type(a) is ConstFloat and type(b) is ConstFloat:
        return _fold_floats(cls, a.value, b.value, dtype, span)
    if type(a) is ConstBool and type(b) is ConstBool:
        if cls in _LOGICAL:
            return ConstBool(_LOGICAL[cls](a.value, b.value), span)
        if cls is E.Eq or cls is E.Ne:
            return ConstBool(_COMPARISONS[cls](a.value, b.value), span)
        return None
    return _fold_identity(cls, a, b, dtype, span)


def _fold_ints(cls: type, a: int, b: int, dtype: DataType, span: Span) -> Expr | None:
    if cls in _COMPARISONS:
        return ConstBool(_COMPARISONS[cls](a, b), span)
    if cls in _LOGICAL:
        return ConstBool(_LOGICAL[cls](bool(a), bool(b)), span)
    if cls is E.FloorDiv or cls is E.FloorMod:
        if b == 0:
            what = "division" if cls is E.FloorDiv else "modulo"
            raise user_error(f"integer {what} by zero in a constant expression", span=span)
        if cls is E.FloorDiv and not fits_int64(a // b):
            raise user_error("INT64_MIN // -1 does not fit in 64 bits", span=span)
    function = _ARITHMETIC.get(cls) or _BITWISE.get(cls)
    value = None if function is None else function(a, b)
    return ConstInt(value, dtype, span) if value is not None and fits_int64(value) else None


def _fold_floats(cls: type, a: float, b: float, dtype: DataType, span: Span) -> Expr | None:
    if cls in _COMPARISONS:
        return ConstBool(_COMPARISONS[cls](a, b), span)
    if cls is E.FloatDiv:
        value = _float_div(a, b)
    elif cls in (E.FloorDiv, E.FloorMod) and b == 0.0:
        return None
    else:
        function = _ARITHMETIC.get(cls)
        value = None if function is None else function(a, b)
    return ConstFloat(value, dtype, span) if isinstance(value, float) else None


def _fold_identity(cls: type, a: Expr, b: Expr, dtype: DataType, span: Span) -> Expr | None:
    if type(b) is ConstInt:
        value = b.value
        if value == 0:
            if cls is E.Add or cls is E.Sub:
                return a
            if cls is E.Mul:
                return ConstInt(0, dtype, span)
        elif value == 1:
            if cls is E.Mul or cls is E.FloorDiv:
                return a
            if cls is E.FloorMod:
                return ConstInt(0, dtype, span)
    elif type(a) is ConstInt:
        if a.value == 0:
            if cls is E.Add:
                return b
            if cls is E.Mul:
                return ConstInt(0, dtype, span)
        elif a.value == 1 and cls is E.Mul:
            return b
    return None


def fold_unary(cls: type, operand: Expr, dtype: DataType, span: Span) -> Expr | None:
    """:func:`fold_const` of ``cls(operand)`` without building the node."""
    if type(operand) is ConstBool:
        return ConstBool(not operand.value, span) if cls is E.Not else None
    if type(operand) is ConstInt:
        if cls is E.Not:
            return ConstBool(not operand.value, span)
        value = {E.Neg: -operand.value, E.Abs: abs(operand.value), E.BitNot: ~operand.value}.get(cls)
        return ConstInt(value, dtype, span) if value is not None and fits_int64(value) else None
    if type(operand) is ConstFloat:
        value = {E.Neg: -operand.value, E.Abs: abs(operand.value)}.get(cls)
        return None if value is None else ConstFloat(value, dtype, span)
    return None
