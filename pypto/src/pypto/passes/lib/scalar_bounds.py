"""Constant bounds of the integer scalars that a body defines.

The arithmetic analyzer takes an INDEX variable it knows nothing about as never negative. That holds for parameters and
extents; a value that the program computes, counts down or carries round a loop may be negative all the same.
"""

from __future__ import annotations

from collections import Counter

from pypto.arith import Analyzer
from pypto.arith.bounds import EVERYTHING, NEG_INF, POS_INF, ConstIntBound
from pypto.ir.expr import Var, const_value
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import ScalarType
from pypto.passes.lib.walk import defined_vars, iter_stmts, yielded

_NON_NEGATIVE = ConstIntBound(0, POS_INF)


def learn_bounds(body: Stmt | None, analyzer: Analyzer) -> None:
    """Tell ``analyzer`` a bound for every integer scalar defined in ``body``.

    A loop carry is never negative when it starts so and every iteration keeps it so; otherwise nothing is known.
    Nothing is known either about a variable that is assigned more than once.
    """
    definitions = Counter(var for stmt in iter_stmts(body) for var in defined_vars(stmt) if is_integer(var))
    changing = {var for var, count in definitions.items() if count > 1}
    for var in changing:
        analyzer.const_int_bound.update(var, EVERYTHING)
    _Learner(analyzer, changing).body(body)


class _Learner:
    """One walk in program order."""

    def __init__(self, analyzer: Analyzer, changing: set[Var]) -> None:
        self._bound = analyzer.const_int_bound
        self._changing = changing

    def _set(self, var: Var, bound: ConstIntBound) -> None:
        if var not in self._changing:
            self._bound.update(var, bound)

    def body(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            self._stmt(stmt)

    def _stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, AssignStmt):
            if is_integer(stmt.var):
                self._set(stmt.var, self._bound(stmt.value))
        elif isinstance(stmt, ForStmt):
            self._set(stmt.loop_var, self._loop_range(stmt))
            self._loop(stmt)
        elif isinstance(stmt, WhileStmt):
            self._loop(stmt)
        elif isinstance(stmt, IfStmt):
            self.body(stmt.then_body)
            self.body(stmt.else_body)
            for var, a, b in zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body)):
                if is_integer(var):
                    self._set(var, _union(self._bound(a), self._bound(b)))
        elif isinstance(stmt, ScopeStmt):
            self.body(stmt.body)

    def _loop(self, loop: ForStmt | WhileStmt) -> None:
        """Assume that every carry stays non-negative, and give up those for which the body does not show it."""
        integers = [(i, arg) for i, arg in enumerate(loop.iter_args) if is_integer(arg)]
        assumed = {i for i, arg in integers if self._bound(arg.initValue).is_non_negative()}
        while True:
            for i, arg in integers:
                self._set(arg, _NON_NEGATIVE if i in assumed else EVERYTHING)
            self.body(loop.body)
            values = yielded(loop.body)
            kept = {i for i in assumed if i < len(values) and self._bound(values[i]).is_non_negative()}
            if kept == assumed:
                break
            assumed = kept
        for i, _ in integers:
            if i < len(loop.return_vars):
                self._set(loop.return_vars[i], _NON_NEGATIVE if i in assumed else EVERYTHING)

    def _loop_range(self, loop: ForStmt) -> ConstIntBound:
        """Values of the loop variable."""
        start, stop, step = self._bound(loop.start), self._bound(loop.stop), const_value(loop.step)
        if not step:
            return EVERYTHING
        if step > 0:
            return _ordered(start.min_value, stop.max_value if stop.max_value == POS_INF else stop.max_value - 1)
        return _ordered(stop.min_value if stop.min_value == NEG_INF else stop.min_value + 1, start.max_value)


def _ordered(low: int, high: int) -> ConstIntBound:
    """The interval; one value when the loop never runs."""
    return ConstIntBound(low, max(low, high))


def _union(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(min(a.min_value, b.min_value), max(a.max_value, b.max_value))


def is_integer(var: Var) -> bool:
    """Whether a variable is an integer scalar."""
    return type(var.type) is ScalarType and var.type.dtype.is_int()
