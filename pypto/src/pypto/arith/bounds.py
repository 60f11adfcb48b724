"""Constant bounds of integer expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import msgspec

from pypto.arith.facts import comparison, conjuncts, split_offset
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.structural import structural_equal
from pypto.ir.types import ScalarType

POS_INF = 2**63 - 1
NEG_INF = -(2**63)


class ConstIntBound(msgspec.Struct, frozen=True):
    """The closed interval ``[min_value, max_value]``; ``kNegInf`` and ``kPosInf`` mean unbounded."""

    kPosInf: ClassVar[int] = POS_INF
    kNegInf: ClassVar[int] = NEG_INF

    min_value: int
    max_value: int

    def is_const(self) -> bool:
        return self.min_value == self.max_value and NEG_INF < self.min_value < POS_INF

    def is_non_negative(self) -> bool:
        return self.min_value >= 0

    def is_positive(self) -> bool:
        return self.min_value > 0

    def is_everything(self) -> bool:
        return self.min_value == NEG_INF and self.max_value == POS_INF

    def intersect(self, other: ConstIntBound) -> ConstIntBound:
        """Both intervals; ``other`` when they are disjoint (the facts contradict each other)."""
        low, high = max(self.min_value, other.min_value), min(self.max_value, other.max_value)
        return ConstIntBound(low, high) if low <= high else other

    def __repr__(self) -> str:
        def text(value: int) -> str:
            return "+inf" if value == POS_INF else "-inf" if value == NEG_INF else str(value)

        return f"ConstIntBound[{text(self.min_value)}, {text(self.max_value)}]"


EVERYTHING = ConstIntBound(NEG_INF, POS_INF)
_BOOL = ConstIntBound(0, 1)
_NON_NEGATIVE = ConstIntBound(0, POS_INF)


def _clamp(value: int) -> int:
    return NEG_INF if value < NEG_INF else POS_INF if value > POS_INF else value


def _infinite(value: int) -> bool:
    return value in (NEG_INF, POS_INF)


def _add(a: int, b: int, towards: int) -> int:
    """``a + b``; opposite infinities give ``towards``, the infinity on the safe side."""
    if _infinite(a) or _infinite(b):
        if _infinite(a) and _infinite(b) and a != b:
            return towards
        return a if _infinite(a) else b
    return _clamp(a + b)


def _neg(value: int) -> int:
    return POS_INF if value == NEG_INF else NEG_INF if value == POS_INF else -value


def _mul(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    if _infinite(a) or _infinite(b):
        return POS_INF if (a < 0) == (b < 0) else NEG_INF
    return _clamp(a * b)


def _floordiv(a: int, b: int) -> int:
    if _infinite(a):
        return a if b > 0 else _neg(a)
    if _infinite(b):
        return 0 if a == 0 or (a < 0) == (b < 0) else -1
    return _clamp(a // b)


def dtype_bound(dtype: DataType) -> ConstIntBound:
    """All values of an integer dtype (64-bit ones count as unbounded)."""
    if dtype == DataType.BOOL:
        return _BOOL
    bits = dtype.get_bit()
    if dtype.is_unsigned_int():
        return ConstIntBound(0, _clamp(2**bits - 1))
    if dtype.is_signed_int() and bits < 64:
        return ConstIntBound(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return EVERYTHING


class ConstIntBoundAnalyzer:
    """Computes bounds from what is known about variables. INDEX variables are never negative."""

    def __init__(self) -> None:
        self._known: dict[Var, ConstIntBound] = {}
        self._constrained: list[tuple[Expr, ConstIntBound]] = []  # facts about expressions that are no variables

    def __call__(self, expr: Expr) -> ConstIntBound:
        bound = self._bound(expr)
        for other, known in self._constrained:
            if type(other) is type(expr) and structural_equal(other, expr):
                bound = bound.intersect(known)
        return bound

    def bind(self, var: Var, low: int, high_exclusive: int) -> None:
        """``low <= var < high_exclusive``."""
        self._known[var] = ConstIntBound(low, high_exclusive - 1)

    def update(self, var: Var, bound: ConstIntBound) -> None:
        self._known[var] = bound

    def unbind(self, var: Var) -> None:
        self._known.pop(var, None)

    def enter_constraint(self, condition: Expr) -> Callable[[], None]:
        """Tighten bounds by a condition; the returned function restores what was known before."""
        known, constrained = dict(self._known), list(self._constrained)
        for part in conjuncts(condition):
            self._learn(part)

        def restore() -> None:
            self._known, self._constrained = known, constrained

        return restore

    def _learn(self, condition: Expr) -> None:
        found = comparison(condition)
        if found is None:
            return
        cls, left, right = found
        for expr, other, is_left in ((left, right, True), (right, left, False)):
            base, offset = split_offset(expr)
            if base is None:
                continue
            limit = self(other)
            low, high = limit.min_value, limit.max_value
            strict = 1 if cls is E.Lt else 0
            if cls is E.Eq:
                fact = ConstIntBound(_add(low, -offset, NEG_INF), _add(high, -offset, POS_INF))
            elif cls is E.Ne:
                fact = self._without(base, limit, offset)
            elif is_left:
                fact = ConstIntBound(NEG_INF, _add(high, -offset - strict, POS_INF))
            else:
                fact = ConstIntBound(_add(low, strict - offset, NEG_INF), POS_INF)
            if fact is None or fact.is_everything():
                continue
            if isinstance(base, Var):
                self._known[base] = self._bound(base).intersect(fact)
            else:
                self._constrained.append((base, self(base).intersect(fact)))

    def _without(self, base: Expr, limit: ConstIntBound, offset: int) -> ConstIntBound | None:
        """The bound of ``base`` without the constant it differs from, when that is one of its ends."""
        if not limit.is_const():
            return None
        value, bound = limit.min_value - offset, self(base)
        if bound.min_value == value and not bound.is_const():
            return ConstIntBound(value + 1, bound.max_value)
        if bound.max_value == value and not bound.is_const():
            return ConstIntBound(bound.min_value, value - 1)
        return None

    # -- rules ------------------------------------------------------------------------------------------------------

    def _bound(self, expr: Expr) -> ConstIntBound:
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, Var):
            known = self._known.get(expr)
            return self._default(expr) if known is None else known
        return self._default(expr)

    @staticmethod
    def _default(expr: Expr) -> ConstIntBound:
        kind = expr.type
        if type(kind) is not ScalarType:
            return EVERYTHING
        if kind.dtype == DataType.INDEX and isinstance(expr, Var):
            return _NON_NEGATIVE
        return _BOOL if kind.dtype == DataType.BOOL else EVERYTHING

    def _const(self, expr: ConstInt) -> ConstIntBound:
        value = _clamp(expr.value)
        return ConstIntBound(value, value)

    def _const_bool(self, expr: E.ConstBool) -> ConstIntBound:
        return ConstIntBound(int(expr.value), int(expr.value))

    def _const_float(self, expr: E.ConstFloat) -> ConstIntBound:
        if not math.isfinite(expr.value):
            return EVERYTHING
        return ConstIntBound(_clamp(math.floor(expr.value)), _clamp(math.ceil(expr.value)))

    def _truth(self, expr: Expr) -> ConstIntBound:
        return _BOOL

    def _sum(self, expr: E.Add) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        return ConstIntBound(_add(a.min_value, b.min_value, NEG_INF), _add(a.max_value, b.max_value, POS_INF))

    def _difference(self, expr: E.Sub) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        low = _add(a.min_value, _neg(b.max_value), NEG_INF)
        return ConstIntBound(low, _add(a.max_value, _neg(b.min_value), POS_INF))

    def _product(self, expr: E.Mul) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        corners = [_mul(x, y) for x in (a.min_value, a.max_value) for y in (b.min_value, b.max_value)]
        return ConstIntBound(min(corners), max(corners))

    def _quotient(self, expr: E.FloorDiv) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        divisors = []  # the ends of the negative and of the positive divisors
        if b.min_value < 0:
            divisors += [b.min_value, min(b.max_value, -1)]
        if b.max_value > 0:
            divisors += [max(b.min_value, 1), b.max_value]
        corners = [_floordiv(x, y) for x in (a.min_value, a.max_value) for y in divisors]
        return ConstIntBound(min(corners), max(corners)) if corners else EVERYTHING

    def _remainder(self, expr: E.FloorMod) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        if b.min_value > 0:
            high = b.max_value if _infinite(b.max_value) else b.max_value - 1
            return ConstIntBound(0, min(high, a.max_value) if a.min_value >= 0 else high)
        if b.max_value < 0:
            return ConstIntBound(b.min_value if _infinite(b.min_value) else b.min_value + 1, 0)
        low = b.min_value if _infinite(b.min_value) else min(b.min_value + 1, 0)
        return ConstIntBound(low, b.max_value if _infinite(b.max_value) else max(b.max_value - 1, 0))

    def _minimum(self, expr: E.Min) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        return ConstIntBound(min(a.min_value, b.min_value), min(a.max_value, b.max_value))

    def _maximum(self, expr: E.Max) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        return ConstIntBound(max(a.min_value, b.min_value), max(a.max_value, b.max_value))

    def _negation(self, expr: E.Neg) -> ConstIntBound:
        a = self(expr.operand)
        return ConstIntBound(_neg(a.max_value), _neg(a.min_value))

    def _absolute(self, expr: E.Abs) -> ConstIntBound:
        a = self(expr.operand)
        if a.min_value >= 0:
            return a
        if a.max_value <= 0:
            return ConstIntBound(_neg(a.max_value), _neg(a.min_value))
        return ConstIntBound(0, max(_neg(a.min_value), a.max_value))

    def _cast(self, expr: E.Cast) -> ConstIntBound:
        target = dtype_bound(expr.dtype)
        if not (expr.dtype.is_int() or expr.dtype == DataType.BOOL):
            return EVERYTHING
        a = self(expr.operand)
        fits = target.min_value <= a.min_value and a.max_value <= target.max_value
        return a if fits else target

    def _power(self, expr: E.Pow) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        if not b.is_const() or b.min_value < 0:
            return EVERYTHING
        exponent = b.min_value
        if exponent == 0:
            return ConstIntBound(1, 1)
        low, high = _power(a.min_value, exponent), _power(a.max_value, exponent)
        if exponent % 2:
            return ConstIntBound(low, high)
        return ConstIntBound(0 if a.min_value <= 0 <= a.max_value else min(low, high), max(low, high))

    def _bit_and(self, expr: E.BitAnd) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        limits = [bound.max_value for bound in (a, b) if bound.min_value >= 0]
        return ConstIntBound(0, min(limits)) if limits else EVERYTHING

    def _bit_or(self, expr: E.BitOr) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        if a.min_value < 0 or b.min_value < 0:
            return EVERYTHING
        high = max(a.max_value, b.max_value)
        return ConstIntBound(0, POS_INF if _infinite(high) else 2 ** high.bit_length() - 1)

    def _shift_left(self, expr: E.BitShiftLeft) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        if a.min_value < 0 or b.min_value < 0 or b.max_value > 63:
            return EVERYTHING
        return ConstIntBound(_mul(a.min_value, 1 << b.min_value), _mul(a.max_value, 1 << b.max_value))

    def _shift_right(self, expr: E.BitShiftRight) -> ConstIntBound:
        a, b = self(expr.left), self(expr.right)
        if b.min_value < 0 or b.max_value > 63:
            return EVERYTHING
        corners = [_floordiv(x, 1 << y) for x in (a.min_value, a.max_value) for y in (b.min_value, b.max_value)]
        return ConstIntBound(min(corners), max(corners))


def _power(base: int, exponent: int) -> int:
    """``base ** exponent`` saturated."""
    if _infinite(base):
        return POS_INF if base > 0 or exponent % 2 == 0 else NEG_INF
    if abs(base) > 1 and exponent >= 64:
        return POS_INF if base > 0 or exponent % 2 == 0 else NEG_INF
    return _clamp(base**exponent) if abs(base) > 1 else base ** (exponent % 2 if base < 0 else 1)


_A = ConstIntBoundAnalyzer
_RULES: dict[type, Callable[[ConstIntBoundAnalyzer, Expr], ConstIntBound]] = {
    ConstInt: _A._const, E.ConstBool: _A._const_bool, E.ConstFloat: _A._const_float,
    E.Add: _A._sum, E.Sub: _A._difference, E.Mul: _A._product, E.FloorDiv: _A._quotient, E.FloorMod: _A._remainder,
    E.Min: _A._minimum, E.Max: _A._maximum, E.Neg: _A._negation, E.Abs: _A._absolute, E.Cast: _A._cast,
    E.Pow: _A._power, E.BitAnd: _A._bit_and, E.BitOr: _A._bit_or, E.BitXor: _A._bit_or,
    E.BitShiftLeft: _A._shift_left, E.BitShiftRight: _A._shift_right,
    **dict.fromkeys((E.Eq, E.Ne, E.Lt, E.Le, E.Gt, E.Ge, E.And, E.Or, E.Xor, E.Not), _A._truth),
}  # fmt: skip
