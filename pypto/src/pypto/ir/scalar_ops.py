"""Scalar operators with promotion, and the Python operators of :class:`~pypto.ir.expr.Expr`.

Promotion: both operands numeric and of one category; the wider width wins, equal widths take the left dtype; an
operand of another dtype gets a ``Cast``, except between INDEX and INT64.
"""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import Expr, as_expr
from pypto.ir.span import Span, capture_span
from pypto.ir.types import ScalarType

_INTERCHANGEABLE = (DataType.INDEX, DataType.INT64)


def _scalar_dtype(value: Expr, name: str, span: Span) -> DataType:
    kind = value.type
    if not isinstance(kind, ScalarType):
        raise user_error(
            f"{name} requires scalar operands (of a ScalarType), got {type(kind).__name__}", span=span, kind=TypeError
        )
    return kind.dtype


def _cast_to(value: Expr, dtype: DataType, span: Span) -> Expr:
    own = value.type.dtype
    if own == dtype or (own in _INTERCHANGEABLE and dtype in _INTERCHANGEABLE):
        return value
    return E.Cast(value, dtype, span)


def promoted_dtype(left: DataType, right: DataType) -> DataType:
    """The wider dtype; the left one at equal width."""
    return right if right.get_bit() > left.get_bit() else left


def _numeric_pair(lhs: Any, rhs: Any, name: str, span: Span) -> tuple[Expr, Expr, DataType]:
    left, right = _operands(lhs, rhs, span)
    ldtype, rdtype = _scalar_dtype(left, name, span), _scalar_dtype(right, name, span)
    for dtype in (ldtype, rdtype):
        if dtype == DataType.BOOL:
            raise user_error(f"{name} does not accept bool dtype", span=span, kind=TypeError)
        if not (dtype.is_int() or dtype.is_float()):
            raise user_error(f"{name} requires numeric scalar dtype, got {dtype}", span=span, kind=TypeError)
    if ldtype.is_float() != rdtype.is_float():
        raise user_error(
            f"{name} requires same numeric dtype category, got {ldtype} and {rdtype}", span=span, kind=TypeError
        )
    dtype = promoted_dtype(ldtype, rdtype)
    return _cast_to(left, dtype, span), _cast_to(right, dtype, span), dtype


def _operands(lhs: Any, rhs: Any, span: Span) -> tuple[Expr, Expr]:
    """Python numbers become constants; a bool counts as the int it is."""
    left = as_expr(int(lhs) if isinstance(lhs, bool) else lhs, span)
    right = as_expr(int(rhs) if isinstance(rhs, bool) else rhs, span)
    return left, right


def _arithmetic(node: type, name: str):
    def build(lhs: Any, rhs: Any, span: Span | None = None) -> Expr:
        span = span or capture_span()
        left, right, dtype = _numeric_pair(lhs, rhs, name, span)
        return node(left, right, dtype, span)

    return _named(build, name, f"``{node.__name__}`` of two numeric scalars.")


def _comparison(node: type, name: str):
    def build(lhs: Any, rhs: Any, span: Span | None = None) -> Expr:
        span = span or capture_span()
        left, right, _ = _numeric_pair(lhs, rhs, name, span)
        return node(left, right, DataType.BOOL, span)

    return _named(build, name, f"``{node.__name__}`` of two numeric scalars, a BOOL.")


def _bitwise(node: type, name: str):
    def build(lhs: Any, rhs: Any, span: Span | None = None) -> Expr:
        span = span or capture_span()
        left, right = _operands(lhs, rhs, span)
        ldtype, rdtype = _scalar_dtype(left, name, span), _scalar_dtype(right, name, span)
        for dtype in (ldtype, rdtype):
            if not dtype.is_int():
                raise user_error(f"{name} requires integer dtype, got {dtype}", span=span, kind=TypeError)
        dtype = promoted_dtype(ldtype, rdtype)
        return node(_cast_to(left, dtype, span), _cast_to(right, dtype, span), dtype, span)

    return _named(build, name, f"``{node.__name__}`` of two integer scalars.")


def _logical(node: type, name: str):
    def build(lhs: Any, rhs: Any, span: Span | None = None) -> Expr:
        span = span or capture_span()
        left, right = as_expr(lhs, span), as_expr(rhs, span)
        for side in (left, right):
            _scalar_dtype(side, name, span)
        return node(left, right, DataType.BOOL, span)

    return _named(build, name, f"``{node.__name__}`` of two scalars; both sides are evaluated.")


def _named(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


add = _arithmetic(E.Add, "add")
sub = _arithmetic(E.Sub, "sub")
mul = _arithmetic(E.Mul, "mul")
truediv = _arithmetic(E.FloatDiv, "truediv")
floordiv = _arithmetic(E.FloorDiv, "floordiv")
mod = _arithmetic(E.FloorMod, "mod")
pow = _arithmetic(E.Pow, "pow")
min_ = _arithmetic(E.Min, "min")
max_ = _arithmetic(E.Max, "max")
eq = _comparison(E.Eq, "eq")
ne = _comparison(E.Ne, "ne")
lt = _comparison(E.Lt, "lt")
le = _comparison(E.Le, "le")
gt = _comparison(E.Gt, "gt")
ge = _comparison(E.Ge, "ge")
bit_and = _bitwise(E.BitAnd, "bit_and")
bit_or = _bitwise(E.BitOr, "bit_or")
bit_xor = _bitwise(E.BitXor, "bit_xor")
bit_shift_left = _bitwise(E.BitShiftLeft, "bit_shift_left")
bit_shift_right = _bitwise(E.BitShiftRight, "bit_shift_right")
and_ = _logical(E.And, "and")
or_ = _logical(E.Or, "or")


def not_(operand: Any, span: Span | None = None) -> Expr:
    """Logical negation, a BOOL; any scalar dtype is accepted."""
    span = span or capture_span()
    value = as_expr(operand, span)
    _scalar_dtype(value, "not", span)
    return E.Not(value, DataType.BOOL, span)


def neg(operand: Any, span: Span | None = None) -> Expr:
    """Arithmetic negation in the operand's dtype."""
    span = span or capture_span()
    value = as_expr(operand, span)
    return E.Neg(value, _scalar_dtype(value, "neg", span), span)


def bit_not(operand: Any, span: Span | None = None) -> Expr:
    """Bitwise complement of an integer."""
    span = span or capture_span()
    value = as_expr(operand, span)
    dtype = _scalar_dtype(value, "bit_not", span)
    if not dtype.is_int():
        raise user_error(f"bit_not requires integer dtype, got {dtype}", span=span, kind=TypeError)
    return E.BitNot(value, dtype, span)


def cast(operand: Any, dtype: DataType, span: Span | None = None) -> Expr:
    """Conversion to ``dtype``; a same-dtype cast still builds a ``Cast``."""
    span = span or capture_span()
    value = as_expr(operand, span)
    _scalar_dtype(value, "cast", span)
    return E.Cast(value, dtype, span)


def _install_python_operators() -> None:
    """Bind ``+ - * / // % ** == != < <= > >= & | ^ << >> - ~`` and the reflected forms to the functions above."""
    binary = {
        "add": add, "sub": sub, "mul": mul, "truediv": truediv, "floordiv": floordiv, "mod": mod, "pow": pow,
        "and": bit_and, "or": bit_or, "xor": bit_xor, "lshift": bit_shift_left, "rshift": bit_shift_right,
    }  # fmt: skip
    comparisons = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}

    def forward(function):
        return lambda self, other: function(self, other, capture_span())

    def reflected(function):
        return lambda self, other: function(other, self, capture_span())

    for name, function in binary.items():
        setattr(Expr, f"__{name}__", forward(function))
        setattr(Expr, f"__r{name}__", reflected(function))
    for name, function in comparisons.items():
        setattr(Expr, f"__{name}__", forward(function))
    Expr.__neg__ = lambda self: neg(self, capture_span())
    Expr.__invert__ = lambda self: bit_not(self, capture_span())
    Expr.__hash__ = object.__hash__


_install_python_operators()
