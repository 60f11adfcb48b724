"""Every rewrite rule holds for all integers."""

import operator
import random

import pytest
from pypto.arith.patterns import Pattern, Rule, rules
from pypto.arith.rules import ARITHMETIC, COMPARISON, LOGIC, MIRRORED

from pypto import ir

OPERATORS = {
    ir.Add: operator.add, ir.Sub: operator.sub, ir.Mul: operator.mul, ir.FloorDiv: operator.floordiv,
    ir.FloorMod: operator.mod, ir.Min: min, ir.Max: max, ir.Neg: operator.neg, ir.Eq: operator.eq, ir.Ne: operator.ne,
    ir.Lt: operator.lt, ir.Le: operator.le, ir.Gt: operator.gt, ir.Ge: operator.ge,
    ir.And: lambda a, b: bool(a) and bool(b), ir.Or: lambda a, b: bool(a) or bool(b), ir.Not: operator.not_,
}  # fmt: skip
ALL = [rule for table in (ARITHMETIC, COMPARISON, LOGIC, MIRRORED) for group in table.values() for rule in group]


def names(pattern: Pattern) -> set[str]:
    if pattern.cls is None:
        return {pattern.name} if pattern.value is None else set()
    return set().union(*map(names, pattern.operands))


def value(pattern: Pattern, point: dict[str, int]):
    if pattern.cls is None:
        return point[pattern.name] if pattern.value is None else pattern.value
    return OPERATORS[pattern.cls](*[value(p, point) for p in pattern.operands])


def condition_holds(rule: Rule, point: dict[str, int]) -> bool:
    return rule.condition is None or rule.condition({"nonzero": lambda x: x != 0, **point})


@pytest.mark.parametrize("rule", ALL, ids=[rule.text for rule in ALL])
def test_rule_holds(rule):
    draw = random.Random(rule.text)
    variables, tried = sorted(names(rule.left)), 0
    for _ in range(2000):
        point = {name: draw.randint(-8, 8) for name in variables}
        try:
            if not condition_holds(rule, point):
                continue
            left = value(rule.left, point)
        except ZeroDivisionError:
            continue
        right = value(rule.right, point)
        logical = isinstance(left, bool) or isinstance(right, bool)
        assert bool(left) == bool(right) if logical else left == right, point
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("text", ["x + y", "x + f(y) => x", "x @ y => x"])
def test_malformed_rule_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        rules(text)
