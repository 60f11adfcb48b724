"""Variables of their own for copies of a body that stand side by side, in code that is not in SSA form."""

from __future__ import annotations

from pypto.ir.expr import IterArg, Var, _next_id
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt
from pypto.ir.visitor import IRMutator


def separate_blocks(function: Function) -> Function:
    """Give every block its own variables where text would name new ones.

    Loop variables, carries and the results of loops and branches are new at every loop and branch. A name that is
    first assigned inside a block with results is known in that block only. Every other assignment keeps its target:
    before SSA it gives the same variable another value.
    """
    return function if function.body is None else _Separator(function).visit_function(function)


class _Separator(IRMutator):
    """Walks in program order; ``var_map`` holds the variables that are visible, as a reader of the text sees them."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._defined: set[Var] = set(function.params)
        self.var_map.update((param, param) for param in function.params)

    def _new(self, var: Var) -> Var:
        """The variable of a new definition: ``var`` itself the first time."""
        kind = self.visit_type(var.type)
        new = var if kind is var.type and var not in self._defined else replace(var, type=kind)
        self._defined.add(new)
        self.var_map[var] = new
        return new

    def visit_def(self, var: Var) -> Var:
        return self.var_map[var] if var in self.var_map else self._new(var)

    def _block(self, body: Stmt, results: tuple) -> Stmt:
        visible = dict(self.var_map) if results else None
        new = self.visit_stmt(body)
        if visible is not None:
            self.var_map = visible
        return new

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        return self._rebuild(
            stmt,
            condition=self.visit_expr(stmt.condition),
            then_body=self._block(stmt.then_body, stmt.return_vars),
            else_body=None if stmt.else_body is None else self._block(stmt.else_body, stmt.return_vars),
            return_vars=tuple(self._new(v) for v in stmt.return_vars),
        )

    def visit_iter_args(self, iter_args) -> tuple:
        inits = [self.visit_expr(arg.initValue) for arg in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            kind = self.visit_type(arg.type)
            new = arg
            if kind is not arg.type or init is not arg.initValue or arg in self._defined:
                new = make(IterArg, arg.name_hint, kind, arg.span, _next_id(), init)
            self._defined.add(new)
            self.var_map[arg] = new
            result.append(new)
        return tuple(result)

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        iter_args = self.visit_iter_args(stmt.iter_args)
        attrs = self.visit_attrs(stmt.attrs)
        loop_var = self._new(stmt.loop_var)
        return self._rebuild(
            stmt,
            **bounds,
            iter_args=iter_args,
            loop_var=loop_var,
            attrs=attrs,
            body=self._block(stmt.body, stmt.return_vars),
            return_vars=tuple(self._new(v) for v in stmt.return_vars),
        )

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        iter_args = self.visit_iter_args(stmt.iter_args)
        return self._rebuild(
            stmt,
            iter_args=iter_args,
            condition=self.visit_expr(stmt.condition),
            body=self._block(stmt.body, stmt.return_vars),
            return_vars=tuple(self._new(v) for v in stmt.return_vars),
        )
