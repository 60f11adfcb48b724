"""Symbolic intervals of integer expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pypto.arith.facts import comparison, conjuncts, split_offset
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var

if TYPE_CHECKING:
    from pypto.arith.analyzer import Analyzer


class IntSet(msgspec.Struct, frozen=True, eq=False):
    """The closed interval ``[min_value, max_value]`` of expressions; None means unbounded."""

    min_value: Expr | None
    max_value: Expr | None

    @staticmethod
    def everything() -> IntSet:
        return _EVERYTHING

    @staticmethod
    def single_point(value: Expr) -> IntSet:
        return IntSet(value, value)

    @staticmethod
    def interval(low: Expr | None, high: Expr | None) -> IntSet:
        return IntSet(low, high)

    def is_everything(self) -> bool:
        return self.min_value is None and self.max_value is None

    def is_single_point(self) -> bool:
        low, high = self.min_value, self.max_value
        if low is None or high is None:
            return False
        return low is high or (type(low) is ConstInt and type(high) is ConstInt and low.value == high.value)

    def is_nothing(self) -> bool:
        """Always False: empty sets are not represented."""
        return False

    def __repr__(self) -> str:
        def text(value: Expr | None) -> str:
            return "None" if value is None else value.as_python(format=False)

        return f"IntSet[{text(self.min_value)}, {text(self.max_value)}]"


_EVERYTHING = IntSet(None, None)
Rule = Callable[["IntSetAnalyzer", Expr], IntSet]


class IntSetAnalyzer:
    """Replaces bound variables by their intervals; free variables stand for themselves."""

    def __init__(self, analyzer: Analyzer | None = None):
        self._analyzer = analyzer
        self._known: dict[Var, IntSet] = {}

    def __call__(self, expr: Expr) -> IntSet:
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        return self._known.get(expr, IntSet(expr, expr)) if isinstance(expr, Var) else IntSet(expr, expr)

    def update(self, var: Var, value: IntSet) -> None:
        self._known[var] = value

    def bind(self, var: Var, low: Expr, high_exclusive: Expr) -> None:
        """``low <= var < high_exclusive``."""
        self._known[var] = IntSet(low, self._make(E.Sub, high_exclusive, _one(high_exclusive)))

    def unbind(self, var: Var) -> None:
        self._known.pop(var, None)

    def enter_constraint(self, condition: Expr) -> Callable[[], None]:
        """Tighten intervals by a condition; the returned function restores what was known before."""
        known = dict(self._known)
        for part in conjuncts(condition):
            self._learn(part)

        def restore() -> None:
            self._known = known

        return restore

    def _learn(self, condition: Expr) -> None:
        found = comparison(condition)
        if found is None or found[0] is E.Ne:
            return
        cls, left, right = found
        for expr, other, is_left in ((left, right, True), (right, left, False)):
            base, offset = split_offset(expr)
            if not isinstance(base, Var):
                continue
            shift = offset + (1 if cls is E.Lt and is_left else 0) - (1 if cls is E.Lt and not is_left else 0)
            limit = self._make(E.Sub, other, ConstInt(shift, other.type.dtype, other.span)) if shift else other
            old = self._known.get(base, _EVERYTHING)
            low = self._tighter(old.min_value, limit, E.Max) if cls is E.Eq or not is_left else old.min_value
            high = self._tighter(old.max_value, limit, E.Min) if cls is E.Eq or is_left else old.max_value
            self._known[base] = IntSet(low, high)

    def _tighter(self, old: Expr | None, new: Expr, cls: type) -> Expr:
        """The stronger of two limits; constants win over symbols when neither is known to be stronger."""
        if old is None:
            return new
        limit = self._make(cls, old, new)
        if type(limit) is not cls:
            return limit
        return old if type(old) is ConstInt else new

    # -- rules ------------------------------------------------------------------------------------------------------

    def _make(self, cls: type, left: Expr, right: Expr) -> Expr:
        node = cls(left, right, left.type.dtype, left.span)
        if self._analyzer is not None:
            return self._analyzer.simplify(node)
        from pypto.arith.rewrite import RewriteSimplifier

        return RewriteSimplifier()(node)

    def _apply(self, cls: type, left: Expr | None, right: Expr | None) -> Expr | None:
        return None if left is None or right is None else self._make(cls, left, right)

    def _sum(self, expr: E.Add) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        return IntSet(self._apply(E.Add, a.min_value, b.min_value), self._apply(E.Add, a.max_value, b.max_value))

    def _difference(self, expr: E.Sub) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        return IntSet(self._apply(E.Sub, a.min_value, b.max_value), self._apply(E.Sub, a.max_value, b.min_value))

    def _product(self, expr: E.Mul) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        if a.is_single_point() and not b.is_single_point():
            a, b = b, a
        if b.is_single_point():
            sign = self._sign(b.min_value)
            if sign == 0:
                return _EVERYTHING if not a.is_single_point() else IntSet(expr, expr)
            low, high = (a.min_value, a.max_value) if sign > 0 else (a.max_value, a.min_value)
            return IntSet(self._apply(E.Mul, low, b.min_value), self._apply(E.Mul, high, b.min_value))
        ends = (a.min_value, a.max_value, b.min_value, b.max_value)
        if any(end is None for end in ends):
            return _EVERYTHING
        if all(type(end) is ConstInt for end in ends):
            corners = [x.value * y.value for x in ends[:2] for y in ends[2:]]
            dtype = expr.dtype
            return IntSet(ConstInt(min(corners), dtype, expr.span), ConstInt(max(corners), dtype, expr.span))
        if self._sign(a.min_value) > 0 and self._sign(b.min_value) > 0:
            return IntSet(self._make(E.Mul, ends[0], ends[2]), self._make(E.Mul, ends[1], ends[3]))
        return _EVERYTHING

    def _sign(self, expr: Expr | None) -> int:
        """1 for a value known to be >= 0, -1 for <= 0, 0 when unknown."""
        if expr is None:
            return 0
        if type(expr) is ConstInt:
            return 1 if expr.value >= 0 else -1
        if self._analyzer is None:
            return 0
        bound = self._analyzer.const_int_bound(expr)
        return 1 if bound.min_value >= 0 else -1 if bound.max_value <= 0 else 0

    def _negation(self, expr: E.Neg) -> IntSet:
        a = self(expr.operand)
        zero = ConstInt(0, expr.dtype, expr.span)
        return IntSet(self._apply(E.Sub, zero, a.max_value), self._apply(E.Sub, zero, a.min_value))

    def _minimum(self, expr: E.Min) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        high = b.max_value if a.max_value is None else a.max_value
        if a.max_value is not None and b.max_value is not None:
            high = self._make(E.Min, a.max_value, b.max_value)
        return IntSet(self._apply(E.Min, a.min_value, b.min_value), high)

    def _maximum(self, expr: E.Max) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        low = b.min_value if a.min_value is None else a.min_value
        if a.min_value is not None and b.min_value is not None:
            low = self._make(E.Max, a.min_value, b.min_value)
        return IntSet(low, self._apply(E.Max, a.max_value, b.max_value))

    def _quotient(self, expr: E.FloorDiv) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        if not b.is_single_point() or (type(b.min_value) is ConstInt and b.min_value.value == 0):
            return _EVERYTHING
        if type(b.min_value) is not ConstInt:
            return IntSet(expr, expr) if a.is_single_point() else _EVERYTHING
        divisor = b.min_value
        low, high = (a.min_value, a.max_value) if divisor.value > 0 else (a.max_value, a.min_value)
        return IntSet(self._apply(E.FloorDiv, low, divisor), self._apply(E.FloorDiv, high, divisor))

    def _remainder(self, expr: E.FloorMod) -> IntSet:
        a, b = self(expr.left), self(expr.right)
        if not b.is_single_point() or type(b.min_value) is not ConstInt or b.min_value.value <= 0:
            return IntSet(expr, expr) if a.is_single_point() and b.is_single_point() else _EVERYTHING
        if a.is_single_point():
            value = self._make(E.FloorMod, a.min_value, b.min_value)
            return IntSet(value, value)
        zero, top = ConstInt(0, expr.dtype, expr.span), ConstInt(b.min_value.value - 1, expr.dtype, expr.span)
        ends = (a.min_value, a.max_value)
        if all(type(end) is ConstInt for end in ends) and ends[0].value >= 0 and ends[1].value <= top.value:
            return a
        return IntSet(zero, top)


def _one(like: Expr) -> ConstInt:
    kind = like.type
    return ConstInt(1, getattr(kind, "dtype", DataType.INDEX), like.span)


_A = IntSetAnalyzer
_RULES: dict[type, Rule] = {
    E.Add: _A._sum, E.Sub: _A._difference, E.Mul: _A._product, E.Neg: _A._negation, E.Min: _A._minimum,
    E.Max: _A._maximum, E.FloorDiv: _A._quotient, E.FloorMod: _A._remainder,
}  # fmt: skip
