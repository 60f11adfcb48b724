"""Modular properties: every value of an expression has the form ``coeff * k + base``."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import msgspec

from pypto.arith.facts import comparison, conjuncts, is_integer
from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.expr import ConstInt, Expr, Var


class ModularSet(msgspec.Struct, frozen=True):
    """``{coeff * k + base}``; coeff 0 is the single value ``base``, coeff 1 every integer."""

    coeff: int
    base: int

    def is_exact(self) -> bool:
        return self.coeff == 0

    def is_everything(self) -> bool:
        return self.coeff == 1 and self.base == 0

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


EVERYTHING = ModularSet(1, 0)


def _normal(coeff: int, base: int) -> ModularSet:
    coeff = abs(coeff)
    return ModularSet(coeff, base % coeff if coeff else base)


class ModularSetAnalyzer:
    """Computes modular sets from what is known about variables."""

    def __init__(self) -> None:
        self._known: dict[Var, ModularSet] = {}

    def __call__(self, expr: Expr) -> ModularSet:
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        return self._known.get(expr, EVERYTHING) if isinstance(expr, Var) else EVERYTHING

    def update(self, var: Var, value: ModularSet) -> None:
        """State what is known about ``var``.

        Raises:
            ValueError: a negative coefficient.
        """
        if value.coeff < 0:
            raise user_error(f"ModularSet coeff must be non-negative, got {value.coeff}")
        self._known[var] = _normal(value.coeff, value.base)

    def unbind(self, var: Var) -> None:
        self._known.pop(var, None)

    def enter_constraint(self, condition: Expr) -> Callable[[], None] | None:
        """Learn ``x == c`` and ``x % m == c``; returns the function that forgets it, None when nothing was learned."""
        known = dict(self._known)
        for part in conjuncts(condition):
            self._learn(part)
        if known == self._known:
            return None

        def restore() -> None:
            self._known = known

        return restore

    def _learn(self, condition: Expr) -> None:
        found = comparison(condition)
        if found is None or found[0] is not E.Eq:
            return
        _, left, right = found
        if type(left) is ConstInt:
            left, right = right, left
        if type(right) is not ConstInt:
            return
        if isinstance(left, Var):
            self._known[left] = ModularSet(0, right.value)
        elif type(left) is E.FloorMod and isinstance(left.left, Var) and type(left.right) is ConstInt:
            modulus = left.right.value
            if modulus > 0 and 0 <= right.value < modulus:
                fact = _intersection(self(left.left), ModularSet(modulus, right.value))
                if fact is not None:
                    self._known[left.left] = fact

    # -- rules ------------------------------------------------------------------------------------------------------

    def _const(self, expr: ConstInt) -> ModularSet:
        return ModularSet(0, expr.value)

    def _sum(self, expr: E.Add) -> ModularSet:
        a, b = self(expr.left), self(expr.right)
        return _normal(gcd(a.coeff, b.coeff), a.base + b.base)

    def _difference(self, expr: E.Sub) -> ModularSet:
        a, b = self(expr.left), self(expr.right)
        return _normal(gcd(a.coeff, b.coeff), a.base - b.base)

    def _product(self, expr: E.Mul) -> ModularSet:
        return _times(self(expr.left), self(expr.right))

    def _negation(self, expr: E.Neg) -> ModularSet:
        a = self(expr.operand)
        return _normal(a.coeff, -a.base)

    def _quotient(self, expr: E.FloorDiv) -> ModularSet:
        return _divide(self(expr.left), expr.right.value) if type(expr.right) is ConstInt else EVERYTHING

    def _remainder(self, expr: E.FloorMod) -> ModularSet:
        return _modulo(self(expr.left), expr.right.value) if type(expr.right) is ConstInt else EVERYTHING

    def _union(self, expr: E.BinaryExpr) -> ModularSet:
        a, b = self(expr.left), self(expr.right)
        coeff = gcd(gcd(a.coeff, b.coeff), a.base - b.base)
        return _normal(coeff, a.base)

    def _bit_and(self, expr: E.BitAnd) -> ModularSet:
        mask = expr.right.value if type(expr.right) is ConstInt else 0
        return _modulo(self(expr.left), mask + 1) if mask > 0 and mask & (mask + 1) == 0 else EVERYTHING

    def _shift_left(self, expr: E.BitShiftLeft) -> ModularSet:
        count = _shift_count(expr)
        return EVERYTHING if count is None else _times(self(expr.left), ModularSet(0, 1 << count))

    def _shift_right(self, expr: E.BitShiftRight) -> ModularSet:
        count = _shift_count(expr)
        return EVERYTHING if count is None else _divide(self(expr.left), 1 << count)

    def _cast(self, expr: E.Cast) -> ModularSet:
        if not expr.dtype.is_int() or not is_integer(expr.operand):
            return EVERYTHING
        return self(expr.operand)


def _shift_count(expr: E.BinaryExpr) -> int | None:
    if type(expr.right) is ConstInt and 0 <= expr.right.value < 64:
        return expr.right.value
    return None


def _times(a: ModularSet, b: ModularSet) -> ModularSet:
    coeff = gcd(a.coeff * b.coeff, gcd(a.coeff * b.base, a.base * b.coeff))
    return _normal(coeff, a.base * b.base)


def _divide(a: ModularSet, divisor: int) -> ModularSet:
    if divisor == 0:
        return EVERYTHING
    if a.coeff % divisor:
        return EVERYTHING
    return _normal(a.coeff // divisor, a.base // divisor)


def _modulo(a: ModularSet, divisor: int) -> ModularSet:
    if divisor <= 0:
        return EVERYTHING
    if a.coeff == 0:
        return ModularSet(0, a.base % divisor)
    return _normal(gcd(a.coeff, divisor), a.base)


def _intersection(a: ModularSet, b: ModularSet) -> ModularSet | None:
    """Numbers of both sets by the Chinese remainder theorem; None when there are none."""
    if a.coeff == 0:
        return a if (b.coeff == 0 and a.base == b.base) or (b.coeff and (a.base - b.base) % b.coeff == 0) else None
    if b.coeff == 0:
        return _intersection(b, a)
    common = gcd(a.coeff, b.coeff)
    if (b.base - a.base) % common:
        return None
    step = b.coeff // common
    steps = (b.base - a.base) // common * pow(a.coeff // common, -1, step) % step if step > 1 else 0
    return _normal(a.coeff * step, a.base + a.coeff * steps)


_A = ModularSetAnalyzer
_RULES: dict[type, Callable[[ModularSetAnalyzer, Expr], ModularSet]] = {
    ConstInt: _A._const, E.Add: _A._sum, E.Sub: _A._difference, E.Mul: _A._product, E.Neg: _A._negation,
    E.FloorDiv: _A._quotient, E.FloorMod: _A._remainder, E.Min: _A._union, E.Max: _A._union, E.BitAnd: _A._bit_and,
    E.BitShiftLeft: _A._shift_left, E.BitShiftRight: _A._shift_right, E.Cast: _A._cast,
}  # fmt: skip
