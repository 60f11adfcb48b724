"""Differences of index expressions, reduced to constants where they are linear."""

from __future__ import annotations

from pypto.ir import scalar_ops
from pypto.ir.expr import Add, ConstInt, Expr, Mul, Neg, Sub, const_index
from pypto.ir.span import Span


def difference(upper: Expr, lower: Expr, span: Span) -> Expr:
    """``upper - lower``: a constant when the symbols cancel, ``upper`` when ``lower`` is 0."""
    if isinstance(lower, ConstInt) and lower.value == 0:
        return upper
    terms, constant = _linear(upper)
    other, offset = _linear(lower)
    for atom, factor in other.items():
        terms[atom] = terms.get(atom, 0) - factor
    if all(factor == 0 for factor in terms.values()):
        return const_index(constant - offset, span)
    return scalar_ops.sub(upper, lower, span)


def _linear(value: Expr) -> tuple[dict[Expr, int], int]:
    """Coefficients by atom (compared by identity) and the constant term."""
    if isinstance(value, ConstInt):
        return {}, value.value
    if isinstance(value, (Add, Sub)):
        sign = 1 if isinstance(value, Add) else -1
        terms, constant = _linear(value.left)
        for atom, factor in _linear(value.right)[0].items():
            terms[atom] = terms.get(atom, 0) + sign * factor
        return terms, constant + sign * _linear(value.right)[1]
    if isinstance(value, Neg):
        terms, constant = _linear(value.operand)
        return {atom: -factor for atom, factor in terms.items()}, -constant
    if isinstance(value, Mul):
        for factor, rest in ((value.left, value.right), (value.right, value.left)):
            if isinstance(factor, ConstInt):
                terms, constant = _linear(rest)
                return {a: f * factor.value for a, f in terms.items()}, constant * factor.value
    return {value: 1}, 0
