"""Comparisons derived from known ones: ``x <= y + 2`` and ``y < z`` give ``x <= z + 1``."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from pypto.arith.facts import ExprKey, comparison, conjuncts, split_offset
from pypto.ir import expr as E
from pypto.ir.expr import Expr, Var


class CompareResult(IntFlag):
    """What is known about two values, as the set of relations that are possible."""

    kInconsistent = 0
    kEQ = 1
    kLT = 2
    kLE = 3
    kGT = 4
    kGE = 5
    kNE = 6
    kUnknown = 7


class TransitiveComparisonAnalyzer:
    """A graph of difference constraints: an edge ``a -> b`` of weight ``w`` means ``a - b <= w``.

    The node None stands for the constant 0, so bounds are edges like any others.
    """

    def __init__(self) -> None:
        self._edges: dict[ExprKey | None, dict[ExprKey | None, int]] = {}
        self._distinct: set[tuple[ExprKey | None, ExprKey | None, int]] = set()  # a - b != c

    def try_compare(self, lhs: Expr, rhs: Expr, propagate_inequalities: bool = True) -> CompareResult:
        """What is known about ``lhs`` against ``rhs``; without propagation only what was stated about this pair."""
        a, a_offset = _node(lhs)
        b, b_offset = _node(rhs)
        shift = a_offset - b_offset
        if a == b:
            return CompareResult.kEQ if shift == 0 else CompareResult.kLT if shift < 0 else CompareResult.kGT
        upper = self._distance(a, b, propagate_inequalities)
        lower = self._distance(b, a, propagate_inequalities)
        result = CompareResult.kUnknown
        if upper is not None:
            limit = upper + shift
            result &= CompareResult.kLT if limit < 0 else CompareResult.kLE if limit == 0 else CompareResult.kUnknown
        if lower is not None:
            limit = shift - lower
            result &= CompareResult.kGT if limit > 0 else CompareResult.kGE if limit == 0 else CompareResult.kUnknown
        if (a, b, -shift) in self._distinct or (b, a, shift) in self._distinct:
            result &= CompareResult.kNE
        return result

    def bind(self, var: Var, low: Expr | int, high_exclusive: int | None = None) -> None:
        """``var == low`` for one expression, ``low <= var < high_exclusive`` for a range."""
        if high_exclusive is None:
            node, offset = _node(low)
            self._add(ExprKey(var), node, offset)
            self._add(node, ExprKey(var), -offset)
        else:
            self._add(ExprKey(var), None, high_exclusive - 1)
            self._add(None, ExprKey(var), -low)

    def unbind(self, var: Var) -> None:
        """Forget everything about ``var``."""
        key = ExprKey(var)
        self._edges.pop(key, None)
        for targets in self._edges.values():
            targets.pop(key, None)
        self._distinct = {fact for fact in self._distinct if key not in fact[:2]}

    def enter_constraint(self, condition: Expr) -> Callable[[], None]:
        """Add a condition; the returned function restores what was known before."""
        edges = {node: dict(targets) for node, targets in self._edges.items()}
        distinct = set(self._distinct)
        for part in conjuncts(condition):
            self._learn(part)

        def restore() -> None:
            self._edges, self._distinct = edges, distinct

        return restore

    def _learn(self, condition: Expr) -> None:
        found = comparison(condition)
        if found is None:
            return
        cls, left, right = found
        a, a_offset = _node(left)
        b, b_offset = _node(right)
        difference = b_offset - a_offset  # a OP b + difference
        if cls is E.Ne:
            self._distinct.add((a, b, difference))
            return
        self._add(a, b, difference - (1 if cls is E.Lt else 0))
        if cls is E.Eq:
            self._add(b, a, -difference)

    def _add(self, a: ExprKey | None, b: ExprKey | None, weight: int) -> None:
        targets = self._edges.setdefault(a, {})
        if b not in targets or weight < targets[b]:
            targets[b] = weight

    def _distance(self, source: ExprKey | None, target: ExprKey | None, propagate: bool) -> int | None:
        """Least known upper bound of ``source - target``."""
        if not propagate:
            return self._edges.get(source, {}).get(target)
        best: dict[ExprKey | None, int] = {source: 0}
        frontier = [source]
        # Contradictory facts make negative cycles: the number of rounds is limited by the number of nodes.
        for _ in range(len(self._edges) + 1):
            changed = []
            for node in frontier:
                for successor, weight in self._edges.get(node, {}).items():
                    distance = best[node] + weight
                    if successor not in best or distance < best[successor]:
                        best[successor] = distance
                        changed.append(successor)
            if not changed:
                break
            frontier = changed
        return best.get(target)


def _node(expr: Expr) -> tuple[ExprKey | None, int]:
    base, offset = split_offset(expr)
    return (None if base is None else ExprKey(base)), offset
