"""Simplification by rewrite rules, bottom up, with the knowledge of an analyzer where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pypto.arith.compare import CompareResult
from pypto.arith.facts import conjuncts, is_integer
from pypto.arith.fold import fold_binary, fold_unary
from pypto.arith.int_ops import fits_int64
from pypto.arith.patterns import build, same
from pypto.arith.rules import ARITHMETIC, COMPARISON, LOGIC, MIRRORED
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstInt, Expr, Var
from pypto.ir.span import Span

if TYPE_CHECKING:
    from pypto.arith.analyzer import Analyzer

#: Rewrites of rewrites; the rules terminate, this only bounds the cost of a long chain.
_MAX_CHAIN = 48

_ORDERED = (E.Lt, E.Le, E.Eq, E.Ne)
_DECIDED: dict[type, tuple[int, int]] = {  # relations that make the comparison true, and those that make it false
    E.Lt: (CompareResult.kLT, CompareResult.kGE),
    E.Le: (CompareResult.kLE, CompareResult.kGT),
    E.Eq: (CompareResult.kEQ, CompareResult.kNE),
    E.Ne: (CompareResult.kNE, CompareResult.kEQ),
}


class _Overflow(Exception):
    """A constant of a rule does not fit in 64 bits: the rule does not apply."""


class RewriteSimplifier:
    """Call it on an expression. Float expressions, and what no rule changes, come back as the same object."""

    def __init__(self, analyzer: Analyzer | None = None):
        self._analyzer = analyzer
        self._values: dict[Var, Expr] = {}
        self._facts: list[Expr] = []
        self._chain = 0
        self._questions = {"nonzero": self._is_nonzero}

    def __call__(self, expr: Expr) -> Expr:
        if isinstance(expr, E.BinaryExpr):
            return self._visit_binary(expr)
        if isinstance(expr, E.UnaryExpr):
            return self._visit_unary(expr)
        if isinstance(expr, Var):
            return self._with_facts(self._values.get(expr, expr))
        return expr

    def update(self, var: Var, value: Expr | None) -> None:
        """Replace ``var`` by ``value`` from now on; None stops that."""
        if value is None:
            self._values.pop(var, None)
        else:
            self._values[var] = value

    def enter_constraint(self, condition: Expr) -> Callable[[], None]:
        """Take a condition as true; the returned function takes it back."""
        facts = self._facts
        self._facts = [*facts, *[part for part in conjuncts(condition) if not isinstance(part, ConstBool)]]

        def restore() -> None:
            self._facts = facts

        return restore

    # -- recursion --------------------------------------------------------------------------------------------------

    def _visit_binary(self, expr: E.BinaryExpr) -> Expr:
        left, right = self(expr.left), self(expr.right)
        new = self._binary(type(expr), left, right, expr.dtype, expr.span)
        if new is None:
            return expr if left is expr.left and right is expr.right else type(expr)(left, right, expr.dtype, expr.span)
        return new

    def _visit_unary(self, expr: E.UnaryExpr) -> Expr:
        operand = self(expr.operand)
        new = self._unary(type(expr), operand, expr.dtype, expr.span)
        if new is None:
            return expr if operand is expr.operand else type(expr)(operand, expr.dtype, expr.span)
        return new

    def _make(self, cls: type, operands: list[Expr], dtype: DataType, span: Span) -> Expr:
        """A node on simplified operands, simplified."""
        if len(operands) == 1:
            new = self._unary(cls, operands[0], dtype, span)
        else:
            new = self._binary(cls, operands[0], operands[1], dtype, span)
        return cls(*operands, dtype, span) if new is None else new

    # -- nodes ------------------------------------------------------------------------------------------------------

    def _binary(self, cls: type, left: Expr, right: Expr, dtype: DataType, span: Span) -> Expr | None:
        """What ``cls(left, right)`` becomes; None when it stays as it is."""
        logical = cls in (E.And, E.Or, E.Xor)
        if not logical and not (is_integer(left) and is_integer(right)):
            return self._decided_by_fact(cls(left, right, dtype, span)) if dtype == DataType.BOOL else None
        try:
            folded = fold_binary(cls, left, right, dtype, span)
        except ValueError:
            return None  # a division by zero is reported where it is executed
        if folded is not None:
            return folded
        if (cls is E.FloorDiv or cls is E.FloorMod) and type(right) is ConstInt and right.value == 0:
            return None
        if cls in MIRRORED:
            turned = E.Lt if cls is E.Gt else E.Le
            return self._make(turned, [right, left], dtype, span)
        known = self._by_knowledge(cls, left, right, dtype, span)
        if known is not None:
            return known
        node = cls(left, right, dtype, span)
        tables = (LOGIC,) if logical else (COMPARISON,) if cls in _ORDERED else (ARITHMETIC,)
        element = dtype if cls not in _ORDERED else left.type.dtype
        new = self._rewrite(node, tables[0], element, span)
        return self._decided_by_fact(node) if new is None and dtype == DataType.BOOL else new

    def _unary(self, cls: type, operand: Expr, dtype: DataType, span: Span) -> Expr | None:
        if cls is E.Cast:
            return None
        if cls is not E.Not and not is_integer(operand):
            return None
        folded = fold_unary(cls, operand, dtype, span)
        if folded is not None:
            return folded
        node = cls(operand, dtype, span)
        if cls is E.Not:
            new = self._rewrite(node, LOGIC, DataType.BOOL, span)
            return self._decided_by_fact(node) if new is None else new
        if cls is E.Abs and self._analyzer is not None and self._analyzer.const_int_bound(operand).is_non_negative():
            return operand
        return self._rewrite(node, ARITHMETIC, dtype, span)

    def _rewrite(self, node: Expr, table: dict, dtype: DataType, span: Span) -> Expr | None:
        candidates = table.get(type(node))
        if not candidates or self._chain >= _MAX_CHAIN:
            return None
        if isinstance(node, E.BinaryExpr):
            classes = (type(node.left), type(node.right))
        else:
            classes = (type(node.operand),)
        for rule in candidates:
            if any(wanted is not None and wanted is not cls for wanted, cls in zip(rule.operand_classes, classes)):
                continue
            found = rule.applies(node, self._questions)
            if found is None:
                continue
            self._chain += 1
            try:
                return build(
                    rule.right,
                    found,
                    dtype,
                    lambda cls, *rest: self._make(cls, list(rest[:-1]), rest[-1], span),
                    lambda value: _constant(value, dtype, span),
                )
            except _Overflow:
                continue
            finally:
                self._chain -= 1
        return None

    # -- knowledge --------------------------------------------------------------------------------------------------

    def _by_knowledge(self, cls: type, left: Expr, right: Expr, dtype: DataType, span: Span) -> Expr | None:
        """What bounds, modular sets and stated comparisons say about ``cls(left, right)``."""
        analyzer = self._analyzer
        if analyzer is None:
            return None
        if cls in _DECIDED:
            relation = analyzer.compare(left, right)
            true, false = _DECIDED[cls]
            if relation & ~true == 0:
                return ConstBool(True, span)
            return ConstBool(False, span) if relation & ~false == 0 else None
        if cls is E.Min or cls is E.Max:
            relation = analyzer.compare(left, right)
            smaller, larger = (left, right) if cls is E.Min else (right, left)
            if relation & ~CompareResult.kLE == 0:
                return smaller
            return larger if relation & ~CompareResult.kGE == 0 else None
        if cls is E.FloorDiv or cls is E.FloorMod:
            bound = analyzer.const_int_bound(cls(left, right, dtype, span))
            if bound.is_const():
                return ConstInt(bound.min_value, dtype, span)
            if cls is E.FloorMod and type(right) is ConstInt and right.value > 0:
                dividend = analyzer.const_int_bound(left)
                if dividend.min_value >= 0 and dividend.max_value < right.value:
                    return left
                residue = analyzer.modular_set(left)
                if residue.coeff % right.value == 0:
                    return ConstInt(residue.base % right.value, dtype, span)
        return None

    def _is_nonzero(self, expr: Expr) -> bool:
        if type(expr) is ConstInt:
            return expr.value != 0
        if self._analyzer is None:
            return False
        return self._analyzer.compare(expr, ConstInt(0, DataType.INDEX)) & CompareResult.kEQ == 0

    def _with_facts(self, expr: Expr) -> Expr:
        return self._decided_by_fact(expr) or expr if self._facts else expr

    def _decided_by_fact(self, expr: Expr) -> Expr | None:
        """True or False when ``expr``, or its negation, was stated."""
        for fact in self._facts:
            if same(fact, expr):
                return ConstBool(True, expr.span)
            if type(fact) is E.Not and same(fact.operand, expr):
                return ConstBool(False, expr.span)
            if type(expr) is E.Not and same(fact, expr.operand):
                return ConstBool(False, expr.span)
        return None


def _constant(value: int, dtype: DataType, span: Span) -> ConstInt:
    if not fits_int64(value):
        raise _Overflow
    return ConstInt(value, dtype, span)
