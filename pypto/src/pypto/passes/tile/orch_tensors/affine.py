"""Integer expressions as a sum over loop variables plus a part that no loop changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.ir.expr import (
    Add,
    BinaryExpr,
    Call,
    ConstInt,
    Expr,
    Mul,
    Sub,
    UnaryExpr,
    Var,
    const_index,
    const_value,
)
from pypto.ir.stmt import ForStmt
from pypto.passes.lib import scalars


@dataclass
class Affine:
    """``fixed + sum(factor * variable)``."""

    fixed: Expr
    factors: dict[Var, int] = field(default_factory=dict)

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        factors = dict(self.factors)
        for var, factor in other.factors.items():
            factors[var] = factors.get(var, 0) + sign * factor
        fixed = scalars.add(self.fixed, other.fixed) if sign > 0 else scalars.sub(self.fixed, other.fixed)
        return Affine(fixed, {var: factor for var, factor in factors.items() if factor})

    def times(self, number: int) -> Affine:
        return Affine(scalars.mul(self.fixed, number), {v: f * number for v, f in self.factors.items() if f * number})


def affine(expr: Expr, values: dict[Var, Expr], loops: set[Var]) -> Affine | None:
    """``expr`` over the loop variables ``loops``, None when it is nothing of that form.

    Args:
        values: scalar variables and the expressions that define them.
    """
    if isinstance(expr, Var):
        if expr in loops:
            return Affine(const_index(0), {expr: 1})
        if expr in values:
            return affine(values[expr], values, loops)
        return Affine(expr)
    if isinstance(expr, ConstInt):
        return Affine(expr)
    if isinstance(expr, (Call, UnaryExpr)) or not isinstance(expr, BinaryExpr):
        return None
    left, right = affine(expr.left, values, loops), affine(expr.right, values, loops)
    if left is None or right is None:
        return None
    if isinstance(expr, (Add, Sub)):
        return left.plus(right, 1 if isinstance(expr, Add) else -1)
    if isinstance(expr, Mul):
        for one, other in ((left, right), (right, left)):
            number = const_value(other.fixed)
            if number is not None and not other.factors:
                return one.times(number)
    if left.factors or right.factors:
        return None
    return Affine(type(expr)(left.fixed, right.fixed, expr.dtype, expr.span))


@dataclass
class Progression:
    """A loop with a known number of iterations: its variable is ``start + step * i`` for ``i`` in ``range(trips)``."""

    start: Affine
    step: int
    trips: int


def progression(loop: ForStmt, values: dict[Var, Expr], loops: set[Var], simplify) -> Progression | None:
    """The values of a loop variable; None unless step and number of iterations are constants."""
    step = const_value(loop.step)
    start, stop = affine(loop.start, values, loops), affine(loop.stop, values, loops)
    if not step or start is None or stop is None:
        return None
    distance = stop.plus(start, -1)
    length = const_value(simplify(distance.fixed))
    if distance.factors or length is None:
        return None
    return Progression(start, step, max(0, -(-length // step)))


def per_iteration(value: Affine, loops: dict[Var, Progression]) -> Affine:
    """``value`` with loop variables counted in iterations: each variable is replaced by ``start + step * i``."""
    result = Affine(value.fixed)
    for var, factor in value.factors.items():
        steps = loops[var]
        result = result.plus(per_iteration(steps.start, loops).times(factor))
        result = result.plus(Affine(const_index(0), {var: factor * steps.step}))
    return result


def separates(parts: list[Affine], extents: list[int], loops: dict[Var, int]) -> bool:
    """Whether boxes of size ``extents`` at ``parts`` never meet for different iterations of ``loops``.

    Every loop that runs more than once must move the box along one axis; on each axis the loops must count like the
    digits of a number, the smallest step being at least the extent of the box.

    Args:
        parts: offsets per axis, in iterations.
        loops: loop variable -> number of iterations.
    """
    placed: set[Var] = set()
    for part, extent in zip(parts, extents):
        reach = extent
        for var, factor in sorted(part.factors.items(), key=lambda item: abs(item[1])):
            if loops[var] <= 1:
                continue
            if var in placed or abs(factor) < reach:
                return False
            placed.add(var)
            reach += abs(factor) * (loops[var] - 1)
    return all(trips <= 1 or var in placed for var, trips in loops.items())
