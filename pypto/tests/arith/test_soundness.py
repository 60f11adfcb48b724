"""Simplification and bounds never change or miss a value: checked on random expressions and values."""

import operator

from hypothesis import given, settings
from hypothesis import strategies as st
from pypto.arith import Analyzer, CanonicalSimplifier, RewriteSimplifier

from pypto import ir

INT = ir.DataType.INT64
BOOL = ir.DataType.BOOL
VARIABLES = [ir.Var(name, ir.ScalarType(INT)) for name in "xyz"]

ARITHMETIC = {
    ir.Add: operator.add, ir.Sub: operator.sub, ir.Mul: operator.mul, ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod, ir.Min: min, ir.Max: max,
}  # fmt: skip
COMPARISON = {
    ir.Eq: operator.eq, ir.Ne: operator.ne, ir.Lt: operator.lt, ir.Le: operator.le, ir.Gt: operator.gt,
    ir.Ge: operator.ge,
}  # fmt: skip


def evaluate(expr: ir.Expr, values: dict):
    cls = type(expr)
    if isinstance(expr, ir.Var):
        return values[expr]
    if cls in (ir.ConstInt, ir.ConstBool):
        return expr.value
    if cls in ARITHMETIC:
        return ARITHMETIC[cls](evaluate(expr.left, values), evaluate(expr.right, values))
    if cls in COMPARISON:
        return COMPARISON[cls](evaluate(expr.left, values), evaluate(expr.right, values))
    if cls is ir.And:
        return bool(evaluate(expr.left, values)) and bool(evaluate(expr.right, values))
    if cls is ir.Or:
        return bool(evaluate(expr.left, values)) or bool(evaluate(expr.right, values))
    if cls is ir.Not:
        return not evaluate(expr.operand, values)
    if cls is ir.Neg:
        return -evaluate(expr.operand, values)
    raise AssertionError(cls)


def binary(cls, left, right):
    return cls(left, right, INT, ir.Span.unknown())


leaves = st.one_of(
    st.sampled_from(VARIABLES), st.integers(-9, 9).map(lambda v: ir.ConstInt(v, INT)), st.sampled_from(VARIABLES)
)
integers = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(binary, st.sampled_from([ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max]), inner, inner),
        st.builds(
            binary,
            st.sampled_from([ir.FloorDiv, ir.FloorMod]),
            inner,
            st.sampled_from([1, 2, 3, 4, 6, 8, -2, -3]).map(lambda v: ir.ConstInt(v, INT)),
        ),
        st.builds(lambda e: ir.Neg(e, INT, ir.Span.unknown()), inner),
    ),
    max_leaves=9,
)
comparisons = st.builds(
    lambda cls, a, b: cls(a, b, BOOL, ir.Span.unknown()), st.sampled_from(list(COMPARISON)), integers, integers
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds(lambda cls, a, b: cls(a, b, BOOL, ir.Span.unknown()), st.sampled_from([ir.And, ir.Or]), inner, inner),
        st.builds(lambda e: ir.Not(e, BOOL, ir.Span.unknown()), inner),
    ),
    max_leaves=3,
)
values = st.tuples(*[st.integers(-12, 12)] * 3).map(lambda vs: dict(zip(VARIABLES, vs)))


@settings(max_examples=400, deadline=None)
@given(st.one_of(integers, conditions), values)
def test_simplifiers_keep_the_value(expr, point):
    expected = evaluate(expr, point)
    for simplify in (RewriteSimplifier(), CanonicalSimplifier(), Analyzer().simplify):
        assert evaluate(simplify(expr), point) == expected


@settings(max_examples=300, deadline=None)
@given(st.one_of(integers, conditions), values, st.integers(0, 5), st.integers(0, 5))
def test_simplification_under_bounds_keeps_the_value(expr, point, below, above):
    analyzer = Analyzer()
    for var, value in point.items():
        analyzer.bind(var, value - below, value + above + 1)
    assert evaluate(analyzer.simplify(expr), point) == evaluate(expr, point)


@settings(max_examples=300, deadline=None)
@given(integers, values, st.integers(0, 5), st.integers(0, 5))
def test_bounds_and_residues_hold(expr, point, below, above):
    analyzer = Analyzer()
    for var, value in point.items():
        analyzer.bind(var, value - below, value + above + 1)
    value = evaluate(expr, point)
    bound, residue = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
    assert bound.min_value <= value <= bound.max_value
    assert value == residue.base if residue.coeff == 0 else (value - residue.base) % residue.coeff == 0


@settings(max_examples=300, deadline=None)
@given(conditions, integers, values)
def test_simplification_under_a_true_condition_keeps_the_value(condition, expr, point):
    if not evaluate(condition, point):
        return
    analyzer = Analyzer()
    before = analyzer.simplify(expr)
    with analyzer.constraint_context(condition):
        assert evaluate(analyzer.simplify(expr), point) == evaluate(expr, point)
        assert analyzer.can_prove(ir.Not(condition, BOOL, ir.Span.unknown())) is False
    ir.assert_structural_equal(analyzer.simplify(expr), before)
