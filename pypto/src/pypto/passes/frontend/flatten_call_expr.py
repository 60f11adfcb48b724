"""FlattenCallExpr: three-address form, every nested call gets a name of its own."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.ir.expr import Call, Expr, IterArg, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.naming import auto_name
from pypto.passes.lib.rewrite import substitute, with_body
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_FORM = (P.SSAForm, P.NormalizedStmtStructure)


@function_pass("FlattenCallExpr", required=_FORM, produced=(*_FORM, P.NoNestedCalls))
def flatten_call_expr(function: Function) -> Function:
    """Extract nested calls, left to right and inner first, into ``t__tmp_v<n>``."""
    if function.body is None:
        return function
    return with_body(function, _Flatten().body(function.body))


class _Extract(IRMutator):
    """Replaces calls inside an expression by new variables and collects their assignments."""

    def __init__(self, owner: _Flatten) -> None:
        super().__init__()
        self._owner = owner

    def visit_call(self, call: Call) -> Expr:
        args = tuple(self.visit_expr(a) for a in call.args)
        same = all(a is b for a, b in zip(args, call.args))
        return self._owner.name(call if same else replace(call, args=args))

    def visit_submit(self, submit: Submit) -> Expr:
        return self._owner.name(self.operands(submit))

    def operands(self, call: Call | Submit) -> Call | Submit:
        """The call with nested calls of its arguments extracted, itself left in place.

        A predicate keeps the tensor element it reads: the scheduler reads it, not the orchestration.
        """
        args = tuple(self.visit_expr(a) for a in call.args)
        changes = {} if all(a is b for a, b in zip(args, call.args)) else {"args": args}
        if type(call) is Submit and call.core_num is not None:
            core_num = self.visit_expr(call.core_num)
            if core_num is not call.core_num:
                changes["core_num"] = core_num
        return replace(call, **changes) if changes else call

    def visit_var_like(self, var: Var) -> Expr:
        return var


class _Flatten:
    """Rewrites one function."""

    def __init__(self) -> None:
        self._count = 0
        self._pending: list[Stmt] = []
        self._extract = _Extract(self)

    def name(self, call: Call | Submit) -> Var:
        """Bind ``call`` to the next temporary."""
        var = Var(auto_name("t", "tmp", self._count), call.type, call.span)
        self._count += 1
        self._pending.append(AssignStmt(var, call, call.span))
        return var

    def body(self, body: Stmt) -> Stmt:
        old = flatten_to_stmts(body)
        outer, self._pending = self._pending, []
        new: list[Stmt] = []
        for stmt in old:
            result = self._stmt(stmt)
            if self._pending:
                new.extend(self._pending)
                self._pending = []
            new.append(result)
        self._pending = outer
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    def _value(self, value: Expr) -> Expr:
        """A right-hand side: the outermost call stays."""
        if type(value) is Call or type(value) is Submit:
            return self._extract.operands(value)
        return self._extract.visit_expr(value)

    def _values(self, values: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(self._extract.visit_expr(v) for v in values)

    def _stmt(self, stmt: Stmt) -> Stmt:
        rebuild = IRMutator._rebuild
        kind = type(stmt)
        if kind is AssignStmt:
            return rebuild(stmt, value=self._value(stmt.value))
        if kind is EvalStmt:
            return rebuild(stmt, expr=self._value(stmt.expr))
        if kind is YieldStmt or kind is ReturnStmt:
            return rebuild(stmt, value=self._values(stmt.value))
        if kind is IfStmt:
            condition = self._extract.visit_expr(stmt.condition)
            then_body = self.body(stmt.then_body)
            else_body = None if stmt.else_body is None else self.body(stmt.else_body)
            return rebuild(stmt, condition=condition, then_body=then_body, else_body=else_body)
        if kind is ForStmt:
            bounds = {n: self._extract.visit_expr(getattr(stmt, n)) for n in ("start", "stop", "step")}
            return self._loop(stmt, bounds)
        if kind is WhileStmt:
            return self._loop(stmt, {"condition": self._extract.visit_expr(stmt.condition)})
        if isinstance(stmt, ScopeStmt):
            return rebuild(stmt, body=self.body(stmt.body))
        return stmt

    def _loop(self, stmt: ForStmt | WhileStmt, fields: dict) -> Stmt:
        inits = self._values(a.initValue for a in stmt.iter_args)
        body = self.body(stmt.body)
        if any(init is not arg.initValue for arg, init in zip(stmt.iter_args, inits)):
            var_map: dict[Var, Expr] = {}
            new_args: list[IterArg] = []
            for arg, init in zip(stmt.iter_args, inits):
                new_args.append(arg if init is arg.initValue else replace(arg, initValue=init))
                if new_args[-1] is not arg:
                    var_map[arg] = new_args[-1]
            fields["iter_args"] = tuple(new_args)
            if "condition" in fields:
                fields["condition"] = substitute(EvalStmt(fields["condition"]), var_map).expr
            body = substitute(body, var_map)
        return IRMutator._rebuild(stmt, **fields, body=body)
