"""Python numbers as operator operands: which constant they become."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstFloat, ConstInt, Expr, as_expr
from pypto.ir.span import Span
from pypto.ir.types import ScalarType


def element_scalar(value: Any, dtype: DataType, span: Span) -> Expr:
    """A scalar operand next to values of element type ``dtype``.

    A Python number or an INDEX constant takes the element type (a fractional number next to integers stays FP32);
    a constant of an explicit type and a typed variable are kept as written.

    Raises:
        ValueError: a run-time INDEX scalar, which has no element type.
    """
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, (int, float)):
        return element_constant(value, dtype, span)
    expr = as_expr(value, span)
    if isinstance(expr.type, ScalarType) and expr.type.dtype == DataType.INDEX:
        if dtype == DataType.INDEX:
            return expr
        if isinstance(expr, ConstInt):
            return element_constant(expr.value, dtype, expr.span)
        raise ValueError(
            f"Scalar operand has dtype `index`, which has no place next to {dtype} elements; convert it first, "
            "for example pl.cast(value, pl.INT32)"
        )
    return expr


def element_constant(value: int | float, dtype: DataType, span: Span) -> Expr:
    """``value`` as a constant of ``dtype``; a fractional number of an integer type stays FP32."""
    if dtype.is_float():
        return ConstFloat(float(value), dtype, span)
    if isinstance(value, float):
        return ConstFloat(value, DataType.FP32, span)
    return ConstInt(value, dtype, span)


def float_scalar(value: Any, span: Span) -> Expr:
    """A Python number or an INDEX constant as an FP32 constant; typed expressions are kept.

    Raises:
        ValueError: a run-time INDEX scalar.
    """
    if isinstance(value, (bool, int, float)):
        return ConstFloat(float(value), DataType.FP32, span)
    return element_scalar(value, DataType.FP32, span)


def as_datatype(value: Any) -> DataType:
    """An element type given as such or by its integer code.

    Raises:
        TypeError: anything else.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return DataType.from_code(value)
    raise TypeError(f"expected an element type such as pl.FP32, got {type(value).__name__}")
