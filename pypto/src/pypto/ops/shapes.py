"""Extents as expressions: folding arithmetic, linear comparison proofs, broadcasting, element type promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pypto.ir import scalar_ops
from pypto.ir.dtype import DataType
from pypto.ir.expr import Add, BinaryExpr, Cast, ConstInt, Expr, Max, Min, Mul, Sub, UnaryExpr, Var, as_dim, const_index
from pypto.ir.span import UNKNOWN_SPAN


def const(value: Any) -> int | None:
    """The value of an integer constant, else None."""
    return value.value if isinstance(value, ConstInt) else None


def consts(values: Sequence[Any]) -> list[int] | None:
    """The values when all are integer constants, else None."""
    out = [const(v) for v in values]
    return None if any(v is None for v in out) else out  # type: ignore[return-value]


def dim_text(value: Any) -> str:
    """An extent for a message: the number, the symbol's name, or a short form of the expression."""
    if isinstance(value, ConstInt):
        return str(value.value)
    if isinstance(value, Var):
        return value.name_hint
    if isinstance(value, BinaryExpr):
        return f"{type(value).__name__}({dim_text(value.left)}, {dim_text(value.right)})"
    return type(value).__name__


def shape_text(shape: Sequence[Any]) -> str:
    """A shape for a message, e.g. ``[4, N]``."""
    return "[" + ", ".join(dim_text(d) for d in shape) + "]"


# --- folding arithmetic ------------------------------------------------------------------------------------------


def _folding(value_of: Callable[[int, int], int], build: Callable[..., Expr], neutral: int | None):
    def combine(a: Any, b: Any) -> Expr:
        a, b = as_dim(a), as_dim(b)
        x, y = const(a), const(b)
        if x is not None and y is not None:
            return const_index(value_of(x, y))
        if neutral is not None and y == neutral:
            return a
        return build(a, b, UNKNOWN_SPAN)

    return combine


_add = _folding(lambda x, y: x + y, scalar_ops.add, 0)
_sub = _folding(lambda x, y: x - y, scalar_ops.sub, 0)
_mul = _folding(lambda x, y: x * y, scalar_ops.mul, 1)
_floordiv = _folding(lambda x, y: x // y, scalar_ops.floordiv, 1)


def add(a: Any, b: Any) -> Expr:
    """``a + b``, folded."""
    return as_dim(b) if const(as_dim(a)) == 0 else _add(a, b)


def sub(a: Any, b: Any) -> Expr:
    """``a - b``, folded; 0 when the difference is provably 0."""
    if isinstance(b, ConstInt) and b.value == 0:
        return as_dim(a)
    difference = constant_difference(a, b)
    return const_index(difference) if difference is not None else _sub(a, b)


def mul(a: Any, b: Any) -> Expr:
    """``a * b``, folded."""
    return as_dim(b) if const(as_dim(a)) == 1 else _mul(a, b)


def ceil_div(a: Any, divisor: int) -> Expr:
    """``ceil(a / divisor)``, folded."""
    return _floordiv(add(a, divisor - 1), divisor)


def floor_div(a: Any, divisor: int) -> Expr:
    """``a // divisor``, folded."""
    return _floordiv(a, divisor)


def minimum(a: Any, b: Any) -> Expr:
    """``min(a, b)``: one side when provably not larger, else a Min node."""
    a, b = as_dim(a), as_dim(b)
    if provably_le(a, b):
        return a
    return b if provably_le(b, a) else scalar_ops.min_(a, b, UNKNOWN_SPAN)


def maximum(a: Any, b: Any) -> Expr:
    """``max(a, b)``: one side when provably not smaller, else a Max node."""
    a, b = as_dim(a), as_dim(b)
    if provably_le(b, a):
        return a
    return b if provably_le(a, b) else scalar_ops.max_(a, b, UNKNOWN_SPAN)


def product(dims: Sequence[Any]) -> Expr:
    """Product of extents, folded."""
    out: Expr = const_index(1)
    for dim in dims:
        out = mul(out, dim)
    return out


# --- proofs ------------------------------------------------------------------------------------------------------


def _key(expr: Expr) -> Any:
    """Hashable identity of an atom: structure over the identities of variables and calls."""
    if isinstance(expr, ConstInt):
        return expr.value
    if isinstance(expr, BinaryExpr):
        return type(expr), _key(expr.left), _key(expr.right)
    if isinstance(expr, UnaryExpr):
        return type(expr), expr.dtype, _key(expr.operand)
    return id(expr)


def _linear(expr: Expr, scale: int, terms: dict[Any, int]) -> int:
    """Adds ``scale * expr`` to ``terms`` (atom key -> coefficient) and returns the constant part."""
    if isinstance(expr, ConstInt):
        return scale * expr.value
    if isinstance(expr, Add):
        return _linear(expr.left, scale, terms) + _linear(expr.right, scale, terms)
    if isinstance(expr, Sub):
        return _linear(expr.left, scale, terms) + _linear(expr.right, -scale, terms)
    if isinstance(expr, Mul):
        for factor, other in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(factor, ConstInt):
                return _linear(other, scale * factor.value, terms)
    if isinstance(expr, Cast) and expr.dtype.is_int():
        return _linear(expr.operand, scale, terms)
    key = _key(expr)
    terms[key] = terms.get(key, 0) + scale
    return 0


def constant_difference(a: Any, b: Any) -> int | None:
    """``a - b`` when it is the same number whatever the variables, else None."""
    if a is b:
        return 0
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value - b.value
    terms: dict[Any, int] = {}
    value = _linear(as_dim(a), 1, terms) + _linear(as_dim(b), -1, terms)
    return None if any(terms.values()) else value


def past_end(start: Any, extent: Any, size: Any) -> bool:
    """True when ``start + extent > size`` is certain."""
    if isinstance(start, ConstInt) and isinstance(extent, ConstInt) and isinstance(size, ConstInt):
        return start.value + extent.value > size.value
    terms: dict[Any, int] = {}
    value = _linear(as_dim(start), 1, terms) + _linear(as_dim(extent), 1, terms) + _linear(as_dim(size), -1, terms)
    return value > 0 and not any(terms.values())


def provably_equal(a: Any, b: Any) -> bool:
    """True when ``a == b`` for all values of the variables."""
    if a is b:
        return True
    if isinstance(a, ConstInt):
        return (isinstance(b, ConstInt) and a.value == b.value) or constant_difference(a, b) == 0
    return constant_difference(a, b) == 0


def provably_le(a: Any, b: Any) -> bool:
    """True when ``a <= b`` is certain; False also means undecided."""
    difference = constant_difference(a, b)
    if difference is not None:
        return difference <= 0
    if isinstance(a, Min) and (provably_le(a.left, b) or provably_le(a.right, b)):
        return True
    if isinstance(a, Max):
        return provably_le(a.left, b) and provably_le(a.right, b)
    if isinstance(b, Max) and (provably_le(a, b.left) or provably_le(a, b.right)):
        return True
    return isinstance(b, Min) and provably_le(a, b.left) and provably_le(a, b.right)


def provably_lt(a: Any, b: Any) -> bool:
    """True when ``a < b`` is certain; False also means undecided."""
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value < b.value
    difference = constant_difference(a, b)
    if difference is not None:
        return difference < 0
    if isinstance(a, Min) and (provably_lt(a.left, b) or provably_lt(a.right, b)):
        return True
    return isinstance(b, Max) and (provably_lt(a, b.left) or provably_lt(a, b.right))


def provably_negative(value: Any) -> bool:
    """True when ``value < 0`` is certain."""
    if isinstance(value, ConstInt):
        return value.value < 0
    return provably_lt(value, const_index(0))


def all_equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Equal rank and provably equal extents."""
    return a is b or (len(a) == len(b) and all(provably_equal(x, y) for x, y in zip(a, b)))


def provably_different(a: Any, b: Any) -> bool:
    """True when ``a != b`` is certain."""
    difference = constant_difference(a, b)
    return difference is not None and difference != 0


# --- broadcasting and promotion ----------------------------------------------------------------------------------


def broadcast(a: Sequence[Expr], b: Sequence[Expr], name: str) -> tuple[Expr, ...]:
    """Right-aligned numpy broadcasting of two shapes.

    An axis pair is compatible when provably equal or one side is 1. Two unrelated symbols, or a symbol and a
    constant above 1, are refused: the extent of the result could not be named.

    Raises:
        ValueError: incompatible shapes (both are printed).
    """
    out: list[Expr] = []
    for i in range(max(len(a), len(b)), 0, -1):
        x = a[-i] if i <= len(a) else None
        y = b[-i] if i <= len(b) else None
        if x is None or y is None:
            out.append(y if x is None else x)
        elif provably_equal(x, y) or const(y) == 1:
            out.append(x)
        elif const(x) == 1:
            out.append(y)
        else:
            raise ValueError(f"{name} requires compatible shapes, but got {shape_text(a)} and {shape_text(b)}")
    return tuple(out)


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
