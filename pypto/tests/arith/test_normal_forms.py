"""The forms in which the analyzer leaves expressions."""

import pytest
from pypto.arith import Analyzer

from pypto import ir

INDEX = ir.DataType.INDEX
NAMES = {name: ir.Var(name, ir.ScalarType(INDEX)) for name in "nm"}
NAMES |= {"min": ir.min_, "max": ir.max_, "not_": ir.not_}


def simplified(text: str) -> str:
    expr = eval(text, {"__builtins__": {}}, NAMES)
    return Analyzer().simplify(ir.ConstInt(expr, INDEX) if isinstance(expr, int) else expr).as_python(format=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 + n", "n"), ("n - 0", "n"), ("1 * n", "n"), ("n // 1", "n"), ("-(-n)", "n"),
        ("n * 0", "0"), ("n - n", "0"), ("n % 1", "0"), ("(n * 4) % 4", "0"),
        ("2 * n", "n * 2"), ("n * 2 * 3", "n * 6"),
        ("(n + 3) + 4", "n + 7"), ("3 + (n + 4)", "n + 7"), ("(n + 32 - 1) // 32", "(n + 31) // 32"),
        ("n + n", "n * 2"), ("n * 2 - n", "n"), ("n + m - m", "n"), ("n + (m - n)", "m"),
        ("(n + 1) * 16", "n * 16 + 16"), ("(n + m) * 4", "(n + m) * 4"), ("(n - m) * 2", "(n - m) * 2"),
        ("n * 4 + m * 4", "(n + m) * 4"), ("n * 4 + n * 4", "n * 8"), ("n * 8 + n", "n * 9"),
        ("(n * 4) // 4", "n"), ("(n * 8 + 4) // 4", "n * 2 + 1"), ("(n + 32) // 32", "n // 32 + 1"),
        ("(n // 4) * 4", "n // 4 * 4"), ("n - n % 4", "n - n % 4"), ("m + n", "m + n"), ("m * n", "m * n"),
        ("min(32, n)", "pl.min(n, 32)"), ("min(n, min(n, 4))", "pl.min(n, 4)"), ("max(0, n)", "n"),
        ("n > 0", "0 < n"), ("n >= 1", "1 <= n"), ("n >= 0", "True"), ("n * 0 == n", "n == 0"),
        ("n + 1 == 0", "False"), ("not_(n > m)", "n <= m"), ("not_(n == 0)", "n != 0"), ("n - 1 < m - 1", "n < m"),
        ("n + 1 > m", "m < n + 1"), ("n - m > 0", "0 < n - m"), ("n - 1", "n - 1"), ("10 - n", "10 - n"),
        ("n - 5 + 2", "n - 3"), ("n // 2 * 3 // 6", "n // 4"), ("(n // 8) * 8 + n % 8 + 3", "n + 3"),
    ],
)  # fmt: skip
def test_normal_form(text, expected):
    assert simplified(text) == expected


def test_unchanged_expression_is_the_same_object():
    n, m = NAMES["n"], NAMES["m"]
    for expr in (n + m, (n + m) * 4, n // 4 * 4, ir.min_(n, 4), n < m, 10 - n):
        assert Analyzer().simplify(expr) is expr


def test_separately_built_equal_terms_cancel():
    c = ir.Var("c", ir.ScalarType(ir.DataType.INT32))
    result = Analyzer().simplify(ir.cast(c, INDEX) - (ir.cast(c, INDEX) - 1))
    assert isinstance(result, ir.ConstInt) and result.value == 1


def test_float_expression_is_left_alone():
    x = ir.Var("x", ir.ScalarType(ir.DataType.FP32))
    expr = x - 2.0
    assert Analyzer().simplify(expr) is expr


def test_stated_condition_decides_the_same_condition():
    flag = ir.Var("flag", ir.ScalarType(ir.DataType.BOOL))
    analyzer = Analyzer()
    with analyzer.constraint_context(flag):
        assert analyzer.simplify(flag).value is True
        assert analyzer.simplify(ir.not_(flag)).value is False
    assert analyzer.simplify(flag) is flag


def test_division_by_constant_zero_is_left_for_the_program():
    expr = ir.ConstInt(5, INDEX) // ir.ConstInt(0, INDEX)
    assert Analyzer().simplify(expr) is expr
