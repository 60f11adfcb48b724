"""Reading conditions as facts: conjunctions, normalised comparisons, linear parts."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.structural import structural_equal, structural_hash
from pypto.ir.types import ScalarType


class ExprKey:
    """An expression as a dictionary key, compared structurally."""

    __slots__ = ("expr", "hash")

    def __init__(self, expr: Expr):
        self.expr = expr
        self.hash = hash(expr) if isinstance(expr, Var) else structural_hash(expr)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExprKey) and (
            self.expr is other.expr or (self.hash == other.hash and structural_equal(self.expr, other.expr))
        )


_MIRROR = {E.Gt: E.Lt, E.Ge: E.Le}
_NEGATED = {E.Lt: E.Ge, E.Le: E.Gt, E.Gt: E.Le, E.Ge: E.Lt, E.Eq: E.Ne, E.Ne: E.Eq}


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts of a conjunction; negations of disjunctions and comparisons are resolved."""
    if type(condition) is E.And:
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
        return
    if type(condition) is E.Not:
        inner = condition.operand
        if type(inner) is E.Not:
            yield from conjuncts(inner.operand)
            return
        if type(inner) is E.Or:
            for part in (inner.left, inner.right):
                yield from conjuncts(E.Not(part, DataType.BOOL, part.span))
            return
        negated = _NEGATED.get(type(inner))
        if negated is not None and is_integer(inner.left):
            yield negated(inner.left, inner.right, inner.dtype, inner.span)
            return
    yield condition


def comparison(condition: Expr) -> tuple[type, Expr, Expr] | None:
    """``(cls, left, right)`` of an integer comparison with cls one of Lt, Le, Eq, Ne; None for anything else."""
    cls = type(condition)
    if cls not in _NEGATED or not is_integer(condition.left):
        return None
    if cls in _MIRROR:
        return _MIRROR[cls], condition.right, condition.left
    return cls, condition.left, condition.right


def split_offset(expr: Expr) -> tuple[Expr | None, int]:
    """``(e, c)`` with ``expr == e + c``; ``e`` is None for a constant."""
    offset = 0
    while True:
        if type(expr) is ConstInt:
            return None, offset + expr.value
        if type(expr) is E.Add and type(expr.right) is ConstInt:
            expr, offset = expr.left, offset + expr.right.value
        elif type(expr) is E.Add and type(expr.left) is ConstInt:
            expr, offset = expr.right, offset + expr.left.value
        elif type(expr) is E.Sub and type(expr.right) is ConstInt:
            expr, offset = expr.left, offset - expr.right.value
        else:
            return expr, offset


def is_integer(expr: Expr) -> bool:
    """True for scalars of an integer dtype, INDEX included."""
    kind = expr.type
    return type(kind) is ScalarType and kind.dtype.is_int()
