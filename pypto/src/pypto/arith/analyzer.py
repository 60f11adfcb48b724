"""The analyzer: all sub-analyzers over one set of facts about variables."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from pypto.arith.bounds import NEG_INF, POS_INF, ConstIntBound, ConstIntBoundAnalyzer
from pypto.arith.canonical import CanonicalSimplifier
from pypto.arith.compare import CompareResult, TransitiveComparisonAnalyzer
from pypto.arith.facts import comparison, is_integer
from pypto.arith.int_set import IntSet, IntSetAnalyzer
from pypto.arith.modular import ModularSetAnalyzer
from pypto.arith.patterns import same
from pypto.arith.rewrite import RewriteSimplifier
from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstInt, Expr, Var


class ConstraintContext:
    """A condition taken as true until :meth:`exit_scope`, or until the ``with`` block ends."""

    def __init__(self, analyzer: Analyzer, condition: Expr):
        self._restores: list[Callable[[], None]] = []
        self._analyzer = analyzer
        self._condition = condition
        self._enter()

    def _enter(self) -> None:
        for part in (
            self._analyzer.const_int_bound,
            self._analyzer.modular_set,
            self._analyzer.rewrite_simplify,
            self._analyzer.transitive_cmp,
            self._analyzer.int_set,
        ):
            restore = part.enter_constraint(self._condition)
            if restore is not None:
                self._restores.append(restore)

    def exit_scope(self) -> None:
        """Restore what was known before; calling it again does nothing."""
        while self._restores:
            self._restores.pop()()

    def __enter__(self) -> ConstraintContext:
        return self

    def __exit__(self, *exc: object) -> None:
        self.exit_scope()


class Analyzer:
    """Simplifies and proves with facts about variables.

    Sub-analyzers: ``const_int_bound``, ``modular_set``, ``rewrite_simplify``, ``canonical_simplify``,
    ``transitive_cmp``, ``int_set``.
    """

    def __init__(self) -> None:
        self.const_int_bound = ConstIntBoundAnalyzer()
        self.modular_set = ModularSetAnalyzer()
        self.rewrite_simplify = RewriteSimplifier(self)
        self.canonical_simplify = CanonicalSimplifier(self)
        self.transitive_cmp = TransitiveComparisonAnalyzer()
        self.int_set = IntSetAnalyzer(self)
        self._bound: dict[Var, object] = {}

    # -- facts ------------------------------------------------------------------------------------------------------

    def bind(
        self, var: Var, value: Expr | int, high_exclusive: int | None = None, allow_override: bool = False
    ) -> None:
        """``var == value`` for an expression, ``value <= var < high_exclusive`` for a range.

        Raises:
            ValueError: an empty range, or a variable already bound to something else without ``allow_override``.
        """
        if high_exclusive is None:
            self._bind_expr(var, E.as_expr(value), allow_override)
            return
        if high_exclusive <= value:
            raise user_error(f"cannot bind '{var.name_hint}' to the empty range [{value}, {high_exclusive})")
        if high_exclusive == value + 1:
            self._bind_expr(var, ConstInt(value, _dtype(var)), allow_override)
            return
        self._register(var, (value, high_exclusive), allow_override)
        self.const_int_bound.bind(var, value, high_exclusive)
        self.transitive_cmp.bind(var, value, high_exclusive)
        self.int_set.update(var, IntSet(ConstInt(value, _dtype(var)), ConstInt(high_exclusive - 1, _dtype(var))))

    def _bind_expr(self, var: Var, value: Expr, allow_override: bool) -> None:
        value = self.simplify(value)
        self._register(var, value, allow_override)
        self.const_int_bound.update(var, self.const_int_bound(value))
        self.modular_set.update(var, self.modular_set(value))
        self.rewrite_simplify.update(var, value)
        self.canonical_simplify.update(var, value)
        self.transitive_cmp.bind(var, value)
        self.int_set.update(var, self.int_set(value))

    def _register(self, var: Var, fact: object, allow_override: bool) -> None:
        old = self._bound.get(var)
        if old is not None:
            if isinstance(old, Expr) or isinstance(fact, Expr):
                equal = isinstance(old, Expr) and isinstance(fact, Expr) and same(old, fact)
            else:
                equal = old == fact
            if not equal and not allow_override:
                raise user_error(f"'{var.name_hint}' is already bound; unbind it first or pass allow_override=True")
            self.unbind(var)
        self._bound[var] = fact

    def unbind(self, var: Var) -> None:
        """Forget everything about ``var``; not an error when nothing is known."""
        self._bound.pop(var, None)
        self.const_int_bound.unbind(var)
        self.modular_set.unbind(var)
        self.rewrite_simplify.update(var, None)
        self.canonical_simplify.update(var, None)
        self.transitive_cmp.unbind(var)
        self.int_set.unbind(var)

    def constraint_context(self, condition: Expr) -> ConstraintContext:
        """Take ``condition`` as true inside a ``with`` block; conjunctions are split, blocks nest."""
        return ConstraintContext(self, condition)

    # -- simplification ---------------------------------------------------------------------------------------------

    def simplify(self, expr: Expr, steps: int = 2) -> Expr:
        """The canonical sum rewritten by the rules, ``steps`` times or until nothing changes."""
        for _ in range(steps):
            new = self.rewrite_simplify(self.canonical_simplify(expr))
            if new is expr:
                return expr
            if same(new, expr):
                return expr
            expr = new
        return expr

    # -- proofs -----------------------------------------------------------------------------------------------------

    def compare(self, left: Expr, right: Expr) -> CompareResult:
        """What bounds, residues and stated comparisons say about two integer expressions."""
        a, b = self.const_int_bound(left), self.const_int_bound(right)
        result = _compare_bounds(a, b)
        if result in (CompareResult.kLT, CompareResult.kEQ, CompareResult.kGT):
            return result
        if type(left) is not ConstInt or type(right) is not ConstInt:
            result &= self.transitive_cmp.try_compare(left, right)
        if result & CompareResult.kEQ:
            p, q = self.modular_set(left), self.modular_set(right)
            common = gcd(p.coeff, q.coeff)
            if common > 1 and (p.base - q.base) % common:
                result &= CompareResult.kNE
        return result or CompareResult.kUnknown

    def can_prove_greater_equal(self, expr: Expr, value: int) -> bool:
        """``expr >= value`` for every value of the variables."""
        return self._bound_of(expr).min_value >= value

    def can_prove_less(self, expr: Expr, value: int) -> bool:
        """``expr < value`` for every value of the variables."""
        bound = self._bound_of(expr)
        return bound.max_value < value and bound.max_value != POS_INF

    def _bound_of(self, expr: Expr) -> ConstIntBound:
        bound = self.const_int_bound(expr)
        if bound.min_value != NEG_INF and bound.max_value != POS_INF:
            other = self.const_int_bound(self.simplify(expr))
            return bound.intersect(other)
        simplified = self.simplify(expr)
        return bound if simplified is expr else bound.intersect(self.const_int_bound(simplified))

    def can_prove_equal(self, left: Expr, right: Expr) -> bool:
        """The two expressions have the same value for every value of the variables."""
        if same(left, right):
            return True
        if not (is_integer(left) and is_integer(right)):
            return same(self.simplify(left), self.simplify(right))
        difference = self.simplify(E.Sub(left, right, left.type.dtype, left.span))
        bound = self.const_int_bound(difference)
        return bound.min_value == 0 == bound.max_value or self.compare(left, right) == CompareResult.kEQ

    def can_prove(self, condition: Expr) -> bool:
        """The condition is true for every value of the variables, as far as this analyzer can see."""
        simplified = self.simplify(condition)
        if isinstance(simplified, ConstBool):
            return simplified.value
        return self._holds(simplified) or self._holds(condition)

    def _holds(self, condition: Expr) -> bool:
        if type(condition) is E.And:
            return self._holds(condition.left) and self._holds(condition.right)
        if type(condition) is E.Or:
            return self._holds(condition.left) or self._holds(condition.right)
        found = comparison(condition)
        if found is None or found[0] not in (E.Lt, E.Le):
            return False
        cls, left, right = found
        limit = 0 if cls is E.Lt else 1
        high, low = self.int_set(left).max_value, self.int_set(right).min_value
        for a, b in ((high, right), (left, low), (high, low)):
            if a is None or b is None:
                continue
            difference = self.simplify(E.Sub(a, b, a.type.dtype, a.span))
            if self.const_int_bound(difference).max_value < limit:
                return True
        return False


def _compare_bounds(a: ConstIntBound, b: ConstIntBound) -> CompareResult:
    result = CompareResult.kUnknown
    if a.max_value != POS_INF and b.min_value != NEG_INF:
        if a.max_value < b.min_value:
            return CompareResult.kLT
        if a.max_value == b.min_value:
            result &= CompareResult.kLE
    if a.min_value != NEG_INF and b.max_value != POS_INF:
        if a.min_value > b.max_value:
            return CompareResult.kGT
        if a.min_value == b.max_value:
            result &= CompareResult.kGE
    return result


def _dtype(var: Var) -> DataType:
    return getattr(var.type, "dtype", DataType.INDEX)
