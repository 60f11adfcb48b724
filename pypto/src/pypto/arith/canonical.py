"""Simplification to a canonical sum: like terms merged, constants distributed, sums divided term by term."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING

from pypto.arith.facts import ExprKey, is_integer
from pypto.arith.fold import fold_binary, fold_unary
from pypto.arith.int_ops import fits_int64
from pypto.arith.patterns import same
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.span import Span

if TYPE_CHECKING:
    from pypto.arith.analyzer import Analyzer

_LINEAR = (E.Add, E.Sub, E.Mul, E.Neg, E.FloorDiv, E.FloorMod)


class _Sum:
    """``sum(coefficient * term) + constant``; terms in the order of their first appearance."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int = 0):
        self.constant = constant
        self.terms: dict[ExprKey, int] = {}

    @staticmethod
    def of(expr: Expr, coefficient: int = 1) -> _Sum:
        result = _Sum()
        result.terms[ExprKey(expr)] = coefficient
        return result

    def add(self, other: _Sum, factor: int) -> _Sum:
        self.constant += other.constant * factor
        for key, coefficient in other.terms.items():
            total = self.terms.get(key, 0) + coefficient * factor
            if total:
                self.terms[key] = total
            else:
                self.terms.pop(key, None)
        return self

    def scaled(self, factor: int) -> _Sum:
        return _Sum().add(self, factor) if factor else _Sum()


class CanonicalSimplifier:
    """Call it on an expression. Float expressions, and sums already canonical, come back as the same object."""

    def __init__(self, analyzer: Analyzer | None = None):
        self._analyzer = analyzer
        self._values: dict[Var, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):
            return self._values.get(expr, expr)
        cls = type(expr)
        if cls in _LINEAR and is_integer(expr):
            new = self._emit(self._recombined(self._sum(expr)), expr.dtype, expr.span)
            return expr if new is None or same(new, expr) else new
        if isinstance(expr, E.BinaryExpr):
            left, right = self(expr.left), self(expr.right)
            try:
                folded = fold_binary(cls, left, right, expr.dtype, expr.span)
            except ValueError:
                folded = None
            if folded is not None:
                return folded
            return expr if left is expr.left and right is expr.right else cls(left, right, expr.dtype, expr.span)
        if isinstance(expr, E.UnaryExpr):
            operand = self(expr.operand)
            folded = None if cls is E.Cast else fold_unary(cls, operand, expr.dtype, expr.span)
            if folded is not None:
                return folded
            return expr if operand is expr.operand else cls(operand, expr.dtype, expr.span)
        return expr

    def update(self, var: Var, value: Expr | None) -> None:
        """Replace ``var`` by ``value`` from now on; None stops that."""
        if value is None:
            self._values.pop(var, None)
        else:
            self._values[var] = value

    def enter_constraint(self, condition: Expr) -> Callable[[], None] | None:
        """Conditions tell this simplifier nothing: there is nothing to restore."""
        return None

    # -- sums -------------------------------------------------------------------------------------------------------

    def _sum(self, expr: Expr) -> _Sum:
        cls = type(expr)
        if cls is ConstInt:
            return _Sum(expr.value)
        if isinstance(expr, Var):
            value = self._values.get(expr)
            return _Sum.of(expr) if value is None else self._sum(value)
        if not is_integer(expr):
            return _Sum.of(expr)
        if cls is E.Add:
            return _Sum().add(self._sum(expr.left), 1).add(self._sum(expr.right), 1)
        if cls is E.Sub:
            return _Sum().add(self._sum(expr.left), 1).add(self._sum(expr.right), -1)
        if cls is E.Neg:
            return self._sum(expr.operand).scaled(-1)
        if cls is E.Mul:
            return self._product(expr)
        if cls is E.FloorDiv or cls is E.FloorMod:
            return self._divided(expr)
        return _as_sum(self(expr))

    def _product(self, expr: E.Mul) -> _Sum:
        left, right = self._sum(expr.left), self._sum(expr.right)
        if not right.terms:
            return left.scaled(right.constant)
        if not left.terms:
            return right.scaled(left.constant)
        return _Sum.of(self._rebuilt(expr, left, right))

    def _rebuilt(self, expr: E.BinaryExpr, left: _Sum, right: _Sum) -> Expr:
        """The node on canonical operands, the same object when they did not change."""
        new_left = self._emit(left, expr.left.type.dtype, expr.left.span) or expr.left
        new_right = self._emit(right, expr.right.type.dtype, expr.right.span) or expr.right
        if same(new_left, expr.left) and same(new_right, expr.right):
            return expr
        return type(expr)(new_left, new_right, expr.dtype, expr.span)

    def _divided(self, expr: E.BinaryExpr) -> _Sum:
        left, right = self._recombined(self._sum(expr.left)), self._sum(expr.right)
        divisor = right.constant
        if right.terms or divisor <= 0:
            if not left.terms and not right.terms and divisor:
                return _Sum(left.constant // divisor if type(expr) is E.FloorDiv else left.constant % divisor)
            return _Sum.of(self._rebuilt(expr, left, right))
        divide = self._quotient if type(expr) is E.FloorDiv else self._remainder
        return divide(expr, left, right, divisor)

    def _quotient(self, expr: E.FloorDiv, dividend: _Sum, divisor_sum: _Sum, divisor: int) -> _Sum:
        whole, rest = _Sum(), _Sum()
        for key, coefficient in dividend.terms.items():
            if coefficient % divisor == 0:
                whole.terms[key] = coefficient // divisor
            else:
                rest.terms[key] = coefficient
        constant = dividend.constant
        if not rest.terms or constant % divisor == 0:
            whole.constant = constant // divisor
        else:
            rest.constant = constant
        if not rest.terms or self._lies_below(rest, divisor, expr):
            return whole
        if len(rest.terms) == 1 and rest.constant == 0:
            key, coefficient = next(iter(rest.terms.items()))
            common = gcd(coefficient, divisor)
            return whole.add(self._single_quotient(key.expr, coefficient // common, divisor // common, expr), 1)
        if rest.constant == dividend.constant and len(rest.terms) == len(dividend.terms):
            return whole.add(_Sum.of(self._rebuilt(expr, rest, divisor_sum)), 1)
        numerator = self._emit(rest, expr.dtype, expr.span)
        if numerator is None:
            return _Sum.of(self._rebuilt(expr, dividend, divisor_sum))
        return whole.add(
            _Sum.of(E.FloorDiv(numerator, ConstInt(divisor, expr.dtype, expr.span), expr.dtype, expr.span)), 1
        )

    def _single_quotient(self, term: Expr, coefficient: int, divisor: int, expr: E.FloorDiv) -> _Sum:
        """``coefficient * term // divisor`` for coprime numbers."""
        if divisor == 1:
            return _Sum.of(term, coefficient)
        nested = type(term) is E.FloorDiv and type(term.right) is ConstInt and term.right.value > 0
        if coefficient == 1 and nested and fits_int64(term.right.value * divisor):
            term, divisor = term.left, term.right.value * divisor
        if coefficient != 1:
            term = E.Mul(term, ConstInt(coefficient, expr.dtype, expr.span), expr.dtype, expr.span)
        if same(term, expr.left) and type(expr.right) is ConstInt and expr.right.value == divisor:
            return _Sum.of(expr)
        return _Sum.of(E.FloorDiv(term, ConstInt(divisor, expr.dtype, expr.span), expr.dtype, expr.span))

    def _remainder(self, expr: E.FloorMod, dividend: _Sum, divisor_sum: _Sum, divisor: int) -> _Sum:
        rest = _Sum(dividend.constant % divisor)
        for key, coefficient in dividend.terms.items():
            if coefficient % divisor:
                rest.terms[key] = coefficient
        if not rest.terms:
            return rest
        if self._lies_below(rest, divisor, expr):
            return rest
        if len(rest.terms) == 1 and rest.constant == 0:
            key, coefficient = next(iter(rest.terms.items()))
            term = key.expr
            if (
                coefficient == 1
                and type(term) is E.FloorMod
                and type(term.right) is ConstInt
                and term.right.value % divisor == 0
            ):
                rest = _Sum.of(term.left)
        if rest.constant == dividend.constant and rest.terms == dividend.terms:
            return _Sum.of(self._rebuilt(expr, dividend, divisor_sum))
        numerator = self._emit(rest, expr.dtype, expr.span)
        if numerator is None:
            return _Sum.of(self._rebuilt(expr, dividend, divisor_sum))
        return _Sum.of(E.FloorMod(numerator, ConstInt(divisor, expr.dtype, expr.span), expr.dtype, expr.span))

    def _lies_below(self, value: _Sum, divisor: int, expr: Expr) -> bool:
        """``0 <= value < divisor``, as far as the analyzer knows."""
        if self._analyzer is None:
            return False
        emitted = self._emit(value, expr.dtype, expr.span)
        if emitted is None:
            return False
        bound = self._analyzer.const_int_bound(emitted)
        return bound.min_value >= 0 and bound.max_value < divisor

    def _recombined(self, value: _Sum) -> _Sum:
        """``(x // c) * (c * k) + (x % c) * k`` put together as ``x * k``."""
        for key, coefficient in list(value.terms.items()):
            term = key.expr
            if type(term) is not E.FloorMod or type(term.right) is not ConstInt or key not in value.terms:
                continue
            divisor = term.right.value
            for other, factor in list(value.terms.items()):
                quotient = other.expr
                if (
                    type(quotient) is E.FloorDiv
                    and factor == coefficient * divisor
                    and type(quotient.right) is ConstInt
                    and quotient.right.value == divisor
                    and same(quotient.left, term.left)
                ):
                    del value.terms[key], value.terms[other]
                    value.add(self._sum(term.left), coefficient)
                    break
        return value

    # -- expressions ------------------------------------------------------------------------------------------------

    def _emit(self, value: _Sum, dtype: DataType, span: Span) -> Expr | None:
        """The expression of a sum: positive terms first. None when a number does not fit in 64 bits."""
        if not all(map(fits_int64, (value.constant, *value.terms.values()))):
            return None

        def scaled(term: Expr, factor: int) -> Expr:
            return term if factor == 1 else E.Mul(term, ConstInt(factor, dtype, span), dtype, span)

        items = [(key.expr, coefficient) for key, coefficient in value.terms.items()]
        constant = value.constant
        head = next((i for i, (_, coefficient) in enumerate(items) if coefficient > 0), None)
        if not items:
            return ConstInt(constant, dtype, span)
        if head is not None:
            term, coefficient = items.pop(head)
            result = scaled(term, coefficient)
        elif constant > 0:
            result, constant = ConstInt(constant, dtype, span), 0
        else:
            term, coefficient = items.pop(0)
            result = E.Neg(scaled(term, -coefficient), dtype, span) if coefficient == -1 else scaled(term, coefficient)
        for term, coefficient in items:
            cls = E.Add if coefficient > 0 else E.Sub
            result = cls(result, scaled(term, abs(coefficient)), dtype, span)
        if constant < 0 and type(result) is not E.Neg and constant != -(2**63):
            return E.Sub(result, ConstInt(-constant, dtype, span), dtype, span)
        return E.Add(result, ConstInt(constant, dtype, span), dtype, span) if constant else result


def _as_sum(expr: Expr) -> _Sum:
    return _Sum(expr.value) if type(expr) is ConstInt else _Sum.of(expr)
