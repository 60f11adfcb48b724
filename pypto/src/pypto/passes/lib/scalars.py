"""Integer expressions with constant folding, as passes build them for offsets, bounds and sizes."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.expr import Add, ConstInt, Expr, FloorDiv, FloorMod, Mul, Sub, const_index, const_value


def index(value: int | Expr) -> Expr:
    """``value`` as an INDEX expression."""
    return value if isinstance(value, Expr) else const_index(value)


def int64(value: int) -> ConstInt:
    """``ConstInt(value, INT64)``."""
    return ConstInt(value, DataType.INT64)


def add(a: int | Expr, b: int | Expr) -> Expr:
    """``a + b``, folded when constant; zero disappears."""
    a, b = index(a), index(b)
    x, y = const_value(a), const_value(b)
    if x is not None and y is not None:
        return ConstInt(x + y, a.dtype)
    if x == 0:
        return b
    if y == 0:
        return a
    return Add(a, b, a.type.dtype)


def sub(a: int | Expr, b: int | Expr) -> Expr:
    """``a - b``, folded when constant."""
    a, b = index(a), index(b)
    x, y = const_value(a), const_value(b)
    if x is not None and y is not None:
        return ConstInt(x - y, a.dtype)
    return a if y == 0 else Sub(a, b, a.type.dtype)


def mul(a: int | Expr, b: int | Expr) -> Expr:
    """``a * b``, folded when constant; one disappears, zero absorbs."""
    a, b = index(a), index(b)
    x, y = const_value(a), const_value(b)
    if x is not None and y is not None:
        return ConstInt(x * y, a.dtype)
    if x == 0 or y == 0:
        return const_index(0)
    if x == 1:
        return b
    if y == 1:
        return a
    return Mul(a, b, a.type.dtype)


def floordiv(a: int | Expr, b: int | Expr) -> Expr:
    """``a // b``, folded when constant."""
    a, b = index(a), index(b)
    x, y = const_value(a), const_value(b)
    if x is not None and y:
        return ConstInt(x // y, a.dtype)
    return a if y == 1 else FloorDiv(a, b, a.type.dtype)


def floormod(a: int | Expr, b: int | Expr) -> Expr:
    """``a % b``, folded when constant."""
    a, b = index(a), index(b)
    x, y = const_value(a), const_value(b)
    if x is not None and y:
        return ConstInt(x % y, a.dtype)
    return FloorMod(a, b, a.type.dtype)


def product(extents) -> int | None:
    """Product of constant extents, None when one is symbolic."""
    result = 1
    for extent in extents:
        value = const_value(extent)
        if value is None:
            return None
        result *= value
    return result


def align(value: int, step: int) -> int:
    """``value`` rounded up to a multiple of ``step``."""
    return -(-value // step) * step


def trip_count(start: Expr, stop: Expr, step: Expr) -> int | None:
    """Number of iterations of a loop with constant bounds, None when a bound is symbolic."""
    a, b, s = const_value(start), const_value(stop), const_value(step)
    if a is None or b is None or not s:
        return None
    return max(0, -((a - b) // s))
