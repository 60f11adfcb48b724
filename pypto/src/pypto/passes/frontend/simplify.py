"""Simplify: fold arithmetic everywhere, drop decided branches, single-trip loops and dead scalars."""

from __future__ import annotations

from collections import Counter

from pypto.arith import Analyzer
from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind
from pypto.ir.expr import (
    BinaryExpr,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    FloatDiv,
    Not,
    Sub,
    UnaryExpr,
    Var,
    const_value,
)
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import ScalarType
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.dead_scalars import remove_dead_scalars
from pypto.passes.lib.rewrite import clone, with_body
from pypto.passes.lib.scalar_bounds import is_integer, learn_bounds
from pypto.passes.lib.walk import defined_vars, iter_stmts
from pypto.passes.pass_ import function_pass

_CONSTANTS = (ConstInt, ConstFloat, ConstBool)


@function_pass("Simplify")
def simplify(function: Function) -> Function:
    """Fold scalar arithmetic in every operand, bound, condition and type; remove what is decided or dead."""
    if function.body is None:
        return function
    folded = _Simplifier(function).visit_function(function)
    return with_body(folded, remove_dead_scalars(folded))


class _Simplifier(IRMutator):
    """One walk in program order; the analyzer holds what is known at the current place."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._analyzer = Analyzer()
        self._depth = 0  # inside an arithmetic tree: only its root is simplified
        self._branching = 0  # inside a loop or a branch
        learn_bounds(function.body, self._analyzer)
        self._assigned: Counter[Var] = Counter(var for stmt in iter_stmts(function.body) for var in defined_vars(stmt))

    # -- expressions --------------------------------------------------------------------------------------------

    def _arithmetic(self, expr: Expr, rebuild) -> Expr:
        self._depth += 1
        new = rebuild(expr)
        self._depth -= 1
        if self._depth or isinstance(new, _CONSTANTS) or not isinstance(new, (BinaryExpr, UnaryExpr)):
            return new
        return self._analyzer.simplify(new)

    def visit_binary_expr(self, value: BinaryExpr) -> Expr:
        return self._arithmetic(value, super().visit_binary_expr)

    def visit_unary_expr(self, value: UnaryExpr) -> Expr:
        return self._arithmetic(value, super().visit_unary_expr)

    def visit_call(self, call: Call) -> Expr:
        depth, self._depth = self._depth, 0
        new = super().visit_call(call)
        self._depth = depth
        return new

    # -- bindings -----------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        new = super().visit_assign_stmt(stmt)
        if type(new.var.type) is ScalarType and self._assigned[stmt.var] == 1:
            self._learn(stmt.var, new)
        return new

    def _learn(self, var: Var, stmt: AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, _CONSTANTS):
            if not self._branching:
                self.var_map[var] = self._typed_constant(value, var)
            elif isinstance(value, ConstInt):
                self._analyzer.bind(stmt.var, value.value, value.value + 1, allow_override=True)
            return
        if isinstance(value, (BinaryExpr, UnaryExpr)) and not isinstance(value, FloatDiv) and is_integer(stmt.var):
            bound = self._analyzer.const_int_bound(value)
            if not bound.is_everything():
                self._analyzer.const_int_bound.update(stmt.var, bound)

    @staticmethod
    def _typed_constant(value: Expr, var: Var) -> Expr:
        """The constant in the dtype of the variable it stands for."""
        dtype = var.type.dtype
        if isinstance(value, ConstInt) and value.dtype != dtype and dtype.is_int():
            return ConstInt(value.value, dtype, value.span)
        return value

    # -- control flow -------------------------------------------------------------------------------------------

    def visit_seq_stmts(self, stmt: SeqStmts) -> Stmt:
        children: list[Stmt] = []
        for child in stmt.stmts:
            children.append(self.visit_stmt(child))
        if all(a is b for a, b in zip(children, stmt.stmts)):
            return stmt
        return seq(children, stmt.span)

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        if isinstance(condition, ConstBool):
            return self._kept_branch(stmt, stmt.then_body if condition.value else stmt.else_body)
        self._branching += 1
        with self._analyzer.constraint_context(condition):
            then_body = self.visit_stmt(stmt.then_body)
        else_body = stmt.else_body
        if else_body is not None:
            opposite = self._analyzer.simplify(Not(condition, DataType.BOOL, condition.span))
            with self._analyzer.constraint_context(opposite):
                else_body = self.visit_stmt(else_body)
        self._branching -= 1
        return self._rebuild(
            stmt,
            condition=condition,
            then_body=then_body,
            else_body=else_body,
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def _kept_branch(self, stmt: IfStmt, body: Stmt | None) -> Stmt:
        """The branch that is taken; results become the values it yields."""
        stmts = [] if body is None else flatten_to_stmts(self.visit_stmt(body))
        if stmts and type(stmts[-1]) is YieldStmt and len(stmts[-1].value) == len(stmt.return_vars):
            # A yield of results and one that belongs to an enclosing loop look alike: only the former is consumed.
            self.var_map.update(zip(stmt.return_vars, stmts.pop().value))
        return _with_comments(seq(stmts, stmt.span), stmt)

    def visit_iter_args(self, iter_args) -> tuple:
        new = super().visit_iter_args(iter_args)
        for before, after in zip(iter_args, new):
            if after is not before and is_integer(before):
                self._analyzer.const_int_bound.update(after, self._analyzer.const_int_bound(before))
        return new

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        start, stop, step = (self.visit_expr(b) for b in (stmt.start, stmt.stop, stmt.step))
        if stmt.kind is ForKind.Sequential and not stmt.attrs:
            folded = self._fold_trips(stmt, start, stop, step)
            if folded is not None:
                return folded
        low, high = const_value(start), const_value(stop)
        iter_args = self.visit_iter_args(stmt.iter_args)
        loop_var = self.visit_def(stmt.loop_var)
        bound = (const_value(step) or 0) > 0 and low is not None and high is not None and high > low
        if bound:
            self._analyzer.bind(loop_var, low, high, allow_override=True)
        self._branching += 1
        body = self.visit_stmt(stmt.body)
        self._branching -= 1
        if bound:
            self._analyzer.unbind(loop_var)
        return self._rebuild(
            stmt,
            loop_var=loop_var,
            start=start,
            stop=stop,
            step=step,
            iter_args=iter_args,
            attrs=self.visit_attrs(stmt.attrs),
            body=body,
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def _fold_trips(self, stmt: ForStmt, start: Expr, stop: Expr, step: Expr) -> Stmt | None:
        """A loop that provably runs zero times or once, without the loop."""
        stride = const_value(step)
        if not stride:
            return None
        span_ = const_value(start), const_value(stop)
        if None in span_:
            distance = const_value(self._analyzer.simplify(Sub(stop, start, stop.type.dtype, stmt.span)))
        else:
            distance = span_[1] - span_[0]
        if distance is None:
            return None
        trips = max(0, -(-distance // stride))
        if trips > 1:
            return None
        inits = [self.visit_expr(a.initValue) for a in stmt.iter_args]
        if trips == 0:
            copies = [AssignStmt(self.visit_def(v), i, stmt.span) for v, i in zip(stmt.return_vars, inits)]
            return _with_comments(seq(copies, stmt.span), stmt)
        var_map: dict[Var, Expr] = {**self.var_map, stmt.loop_var: self._typed_constant(start, stmt.loop_var)}
        var_map.update(zip(stmt.iter_args, inits))
        body = clone(stmt.body, var_map)
        learn_bounds(body, self._analyzer)
        self._assigned.update(v for s in iter_stmts(body) for v in defined_vars(s))
        stmts = flatten_to_stmts(self.visit_stmt(body))
        if stmts and type(stmts[-1]) is YieldStmt:
            self.var_map.update(zip(stmt.return_vars, stmts.pop().value))
        return _with_comments(seq(stmts, stmt.span), stmt)

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        iter_args = self.visit_iter_args(stmt.iter_args)
        condition = self.visit_expr(stmt.condition)
        self._branching += 1
        with self._analyzer.constraint_context(condition):
            body = self.visit_stmt(stmt.body)
        self._branching -= 1
        return self._rebuild(
            stmt,
            iter_args=iter_args,
            condition=condition,
            body=body,
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )


def _with_comments(body: Stmt, erased: Stmt) -> Stmt:
    """The comments of an erased statement move to the first one that stays."""
    stmts = flatten_to_stmts(body)
    if not erased.leading_comments or not stmts:
        return body
    first = replace(stmts[0])
    stmts[0] = attach_leading_comments(first, [*erased.leading_comments, *first.leading_comments])
    return seq(stmts, body.span)
