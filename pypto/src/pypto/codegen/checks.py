"""Mistakes that both generators refuse."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir import Span
from pypto.ir import expr as E


def check_divisor(expr: E.BinaryExpr, span: Span) -> None:
    """An integer division that still divides by a written zero after simplification; ``ValueError``."""
    if not isinstance(expr, (E.FloorDiv, E.FloorMod, E.FloatDiv)) or expr.type.dtype.is_float():
        return
    if isinstance(expr.right, E.ConstInt) and expr.right.value == 0:
        place = expr.right.span if expr.right.span.is_valid() else span
        raise user_error("Division by zero; guard the statement with an if, or correct the divisor", span=place)
