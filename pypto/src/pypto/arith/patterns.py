"""Rewrite rules written as text: ``"(x + c1) + c2 => x + (c1 + c2)"``.

Names ``c``, ``c1``, ``c2``, ... match integer constants, every other name any expression; a name used twice must match
structurally equal expressions. On the right, an operation on constants only is computed, everything else is built.
``if`` adds a condition: Python over the constants as ints, plus the questions of the context (``nonzero(x)``, ...).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstInt, Expr
from pypto.ir.structural import structural_equal

Bindings = dict[str, Any]  # expressions, and the ints of constants under their names

_OPERATORS: dict[type, type] = {
    ast.Add: E.Add, ast.Sub: E.Sub, ast.Mult: E.Mul, ast.FloorDiv: E.FloorDiv, ast.Mod: E.FloorMod,
    ast.Eq: E.Eq, ast.NotEq: E.Ne, ast.Lt: E.Lt, ast.LtE: E.Le, ast.Gt: E.Gt, ast.GtE: E.Ge, ast.And: E.And,
    ast.Or: E.Or, ast.Not: E.Not, ast.USub: E.Neg,
}  # fmt: skip
_FUNCTIONS: dict[str, type] = {"min": E.Min, "max": E.Max}
BOOLEAN = frozenset({E.Eq, E.Ne, E.Lt, E.Le, E.Gt, E.Ge, E.And, E.Or, E.Not})

_COMPUTE: dict[type, Callable[..., int]] = {
    E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b, E.FloorMod: lambda a, b: a % b, E.Min: min, E.Max: max, E.Neg: lambda a: -a,
}  # fmt: skip


def _is_constant_name(name: str) -> bool:
    return name[0] == "c" and (len(name) == 1 or name[1:].isdigit())


class Pattern(NamedTuple):
    """A node of a pattern. ``cls`` None: a name or a literal."""

    cls: type | None
    operands: tuple[Pattern, ...] = ()
    name: str = ""
    value: int | bool | None = None

    @property
    def constant(self) -> bool:
        """Made of constants only."""
        if self.cls is None:
            return self.value is not None or _is_constant_name(self.name)
        return all(p.constant for p in self.operands)


def parse(text: str) -> Pattern:
    """The pattern that a Python expression stands for."""
    return _convert(ast.parse(text.strip(), mode="eval").body)


def _convert(node: ast.expr) -> Pattern:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return Pattern(_OPERATORS[type(op)], (_convert(left), _convert(right)))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return Pattern(_OPERATORS[type(op)], (_convert(left), _convert(right)))
        case ast.BoolOp(op=op, values=[left, right]):
            return Pattern(_OPERATORS[type(op)], (_convert(left), _convert(right)))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return Pattern(None, value=-value)
        case ast.UnaryOp(op=op, operand=operand):
            return Pattern(_OPERATORS[type(op)], (_convert(operand),))
        case ast.Call(func=ast.Name(id=name), args=args):
            return Pattern(_FUNCTIONS[name], tuple(_convert(a) for a in args))
        case ast.Name(id=name):
            return Pattern(None, name=name)
        case ast.Constant(value=value):
            return Pattern(None, value=value)
    raise ValueError(f"not a rewrite pattern: {ast.unparse(node)}")


def same(a: Expr, b: Expr) -> bool:
    """Structural equality with the quick answers first."""
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b) or cls is E.Var or cls is E.IterArg:
        return False
    if cls is ConstInt:
        return a.value == b.value
    return structural_equal(a, b)


def match(pattern: Pattern, expr: Expr, found: Bindings) -> bool:
    """Whether ``expr`` has the form of ``pattern``; fills ``found``."""
    if pattern.cls is None:
        if pattern.value is not None:
            literal = ConstBool if isinstance(pattern.value, bool) else ConstInt
            return type(expr) is literal and expr.value == pattern.value
        if _is_constant_name(pattern.name):
            if type(expr) is not ConstInt:
                return False
            return found.setdefault(pattern.name, expr.value) == expr.value
        known = found.get(pattern.name)
        if known is None:
            found[pattern.name] = expr
            return True
        return same(known, expr)
    if type(expr) is not pattern.cls:
        return False
    if len(pattern.operands) == 1:
        return match(pattern.operands[0], expr.operand, found)
    return match(pattern.operands[0], expr.left, found) and match(pattern.operands[1], expr.right, found)


class Rule(NamedTuple):
    """One compiled rewrite rule."""

    text: str
    left: Pattern
    right: Pattern
    condition: Callable[[Bindings], bool] | None
    operand_classes: tuple[type | None, ...]

    def applies(self, expr: Expr, questions: dict[str, Callable]) -> Bindings | None:
        """The bindings when the left side matches and the condition holds."""
        found: Bindings = {}
        if not match(self.left, expr, found):
            return None
        if self.condition is not None and not self.condition({**questions, **found}):
            return None
        return found


def build(
    pattern: Pattern, found: Bindings, dtype: DataType, make: Callable[..., Expr], constant: Callable[[int], Expr]
) -> Expr:
    """The expression a right side stands for.

    Args:
        pattern: the right side.
        found: what the left side matched.
        dtype: element type of new arithmetic nodes and constants.
        make: ``make(cls, *operands, dtype)`` builds, and simplifies, a node.
        constant: turns an int into an expression.
    """
    if pattern.cls is None:
        if isinstance(pattern.value, bool):
            return ConstBool(pattern.value)
        if pattern.value is not None:
            return constant(pattern.value)
        value = found[pattern.name]
        return constant(value) if isinstance(value, int) else value
    if pattern.constant and pattern.cls in _COMPUTE:
        return constant(compute(pattern, found))
    operands = [build(p, found, dtype, make, constant) for p in pattern.operands]
    return make(pattern.cls, *operands, DataType.BOOL if pattern.cls in BOOLEAN else dtype)


def compute(pattern: Pattern, found: Bindings) -> int:
    """The value of a pattern of constants."""
    if pattern.cls is None:
        return found[pattern.name] if pattern.value is None else pattern.value
    return _COMPUTE[pattern.cls](*[compute(p, found) for p in pattern.operands])


def rules(*texts: str) -> dict[type, list[Rule]]:
    """Compile rules, grouped by the class of the node they rewrite, in the order given."""
    table: dict[type, list[Rule]] = {}
    for text in texts:
        for line in text.strip().splitlines():
            line = line.partition("#")[0].strip()
            if not line:
                continue
            body, _, condition = line.partition(" if ")
            left, arrow, right = body.partition("=>")
            if not arrow:
                raise ValueError(f"not a rewrite rule: {line}")
            pattern = parse(left)
            code = compile(condition.strip(), f"<rule {body.strip()}>", "eval") if condition else None
            test = (lambda names, code=code: eval(code, {"__builtins__": {}}, names)) if code else None
            classes = tuple(p.cls for p in pattern.operands)
            table.setdefault(pattern.cls, []).append(Rule(line, pattern, parse(right), test, classes))
    return table
