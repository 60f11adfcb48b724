"""Constant conditions of ``pl.static_assert``."""

from __future__ import annotations

import operator

from pypto.ir import expr as E
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr

_NUMBERS = {E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul, E.FloorDiv: operator.floordiv,
            E.FloorMod: operator.mod, E.Min: min, E.Max: max}  # fmt: skip
_TESTS = {E.Eq: operator.eq, E.Ne: operator.ne, E.Lt: operator.lt, E.Le: operator.le, E.Gt: operator.gt,
          E.Ge: operator.ge}  # fmt: skip


def fold_condition(value: Expr) -> Expr:
    """``value`` as a constant when it is built from constants only, else ``value`` itself."""
    result = _value(value)
    if isinstance(result, bool):
        return ConstBool(result, value.span)
    return value


def _value(value: Expr) -> bool | int | float | None:
    if isinstance(value, (ConstBool, ConstInt, ConstFloat)):
        return value.value
    if isinstance(value, E.Not):
        inner = _value(value.operand)
        return None if inner is None else not inner
    if isinstance(value, E.Cast):
        return _value(value.operand)
    if not isinstance(value, E.BinaryExpr):
        return None
    left, right = _value(value.left), _value(value.right)
    if left is None or right is None:
        return None
    if isinstance(value, E.And):
        return bool(left and right)
    if isinstance(value, E.Or):
        return bool(left or right)
    table = _TESTS if type(value) in _TESTS else _NUMBERS
    function = table.get(type(value))
    if function is None or (function in (operator.floordiv, operator.mod) and right == 0):
        return None
    return function(left, right)
