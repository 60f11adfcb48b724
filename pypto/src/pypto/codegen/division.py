"""Integer division: programs round down, the operators of the generated texts towards zero."""

from __future__ import annotations

from functools import cached_property

from pypto.arith import Analyzer
from pypto.errors import user_error
from pypto.ir import Function, Span
from pypto.ir import expr as E
from pypto.passes.lib.scalar_bounds import learn_bounds


class Divisions:
    """What is known of the divisions of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def _facts(self) -> Analyzer:
        analyzer = Analyzer()
        learn_bounds(self._function.body, analyzer)
        return analyzer

    def may_truncate(self, expr: E.BinaryExpr) -> bool:
        """Whether rounding towards zero gives the same: nothing can be negative, or it is no rounded division."""
        if not isinstance(expr, (E.FloorDiv, E.FloorMod)) or not expr.dtype.is_signed_int():
            return True
        return all(self._facts.const_int_bound(e).is_non_negative() for e in (expr.left, expr.right))


def check_divisor(expr: E.BinaryExpr, span: Span) -> None:
    """An integer division that still divides by a written zero after simplification; ``ValueError``."""
    if not isinstance(expr, (E.FloorDiv, E.FloorMod, E.FloatDiv)) or expr.type.dtype.is_float():
        return
    if isinstance(expr.right, E.ConstInt) and expr.right.value == 0:
        place = expr.right.span if expr.right.span.is_valid() else span
        raise user_error("Division by zero; guard the statement with an if, or correct the divisor", span=place)
