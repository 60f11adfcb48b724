"""Shape reasoning shared by type rules: constants, provable comparisons, numpy broadcasting, validity windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var, const_index
from pypto.ir.types import same_dim


def const(value: Any) -> int | None:
    """The value of an integer constant, else None."""
    return value.value if isinstance(value, ConstInt) else None


def dim_text(value: Any) -> str:
    """An extent for a message: the number, the symbol's name, or ``?``."""
    if isinstance(value, ConstInt):
        return str(value.value)
    return value.name_hint if isinstance(value, Var) else str(value)


def shape_text(shape: Sequence[Any]) -> str:
    """A shape for a message, e.g. ``[4, N]``."""
    return "[" + ", ".join(dim_text(d) for d in shape) + "]"


def broadcast(a: Sequence[Expr], b: Sequence[Expr], name: str) -> tuple[Expr, ...]:
    """Right-aligned numpy broadcasting of two shapes.

    An axis pair is compatible when provably equal or one side is 1; two different symbols, or a symbol and a
    constant above 1, are refused because the result extent could not be named.

    Raises:
        ValueError: incompatible shapes (both are printed).
    """
    out: list[Expr] = []
    for i in range(max(len(a), len(b)), 0, -1):
        x = a[-i] if i <= len(a) else None
        y = b[-i] if i <= len(b) else None
        if x is None or y is None:
            out.append(y if x is None else x)
        elif same_dim(x, y):
            out.append(x)
        elif const(x) == 1:
            out.append(y)
        elif const(y) == 1:
            out.append(x)
        else:
            raise ValueError(f"{name} requires compatible shapes, but got {shape_text(a)} and {shape_text(b)}")
    return tuple(out)


def one() -> Expr:
    """``ConstInt(1, INDEX)``."""
    return const_index(1)


def promote(a: DataType, b: DataType) -> DataType:
    """Element type of mixed operands: float over integer, wider over narrower, signed over unsigned, left on ties."""
    if a == b:
        return a
    if a.is_float() != b.is_float():
        return a if a.is_float() else b
    if a.get_bit() != b.get_bit():
        return a if a.get_bit() > b.get_bit() else b
    if a.is_signed_int() != b.is_signed_int():
        return a if a.is_signed_int() else b
    return a
