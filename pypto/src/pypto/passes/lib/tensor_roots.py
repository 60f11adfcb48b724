"""Which buffer a tensor value of an orchestration function is a name of."""

from __future__ import annotations

from pypto.ir.expr import Call, Expr, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TensorType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import VIEWS
from pypto.passes.lib.walk import yielded


def tensor_roots(function: Function, lineage: Lineage, *, exact: bool = False) -> dict[Var, Var]:
    """Tensor variable -> the parameter, creation or opaque result whose buffer it names.

    Args:
        exact: only names of the whole buffer count: views and carries that a loop rebinds start a root of their own.
            Otherwise a view belongs to its source and a rebound carry to what the loop yields.
    """
    roots: dict[Var, Var] = {p: p for p in function.params if isinstance(p.type, TensorType)}
    if function.body is not None:
        _Roots(roots, lineage, exact).walk(function.body)
    return roots


class _Roots:
    def __init__(self, roots: dict[Var, Var], lineage: Lineage, exact: bool) -> None:
        self.roots, self._lineage, self._exact = roots, lineage, exact
        self._tuples: dict[Var, Expr] = {}

    def walk(self, body: Stmt) -> None:
        roots = self.roots
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is AssignStmt:
                self._assign(stmt)
            elif kind is ForStmt or kind is WhileStmt:
                for arg in stmt.iter_args:
                    if arg.initValue in roots:
                        roots[arg] = roots[arg.initValue]
                self.walk(stmt.body)
                for arg, result, value in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body)):
                    root = roots.get(value) if isinstance(value, Var) else None
                    if root is None and arg not in roots:
                        continue
                    if self._exact:
                        roots[result] = root if root is not None and root is roots.get(arg) else result
                    else:
                        # A carry that is rebound to another buffer names that buffer after the loop.
                        roots[result] = root if root is not None else roots[arg]
            elif kind is IfStmt:
                self.walk(stmt.then_body)
                if stmt.else_body is not None:
                    self.walk(stmt.else_body)
                for var, a, b in zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body)):
                    if not isinstance(var.type, TensorType):
                        continue
                    same = isinstance(a, Var) and a in roots and roots.get(b) is roots[a]
                    roots[var] = roots[a] if same else var
            elif isinstance(stmt, ScopeStmt):
                self.walk(stmt.body)

    def _assign(self, stmt: AssignStmt) -> None:
        value, var = stmt.value, stmt.var
        if isinstance(value, (Call, Submit, MakeTuple)) and not isinstance(var.type, TensorType):
            self._tuples[var] = value
            return
        if not isinstance(var.type, TensorType):
            return
        source = self._lineage.alias_source(value, self._tuples)
        if source is None and not self._exact and isinstance(value, Call) and value.op.name in VIEWS:
            source = value.args[0]
        if isinstance(value, TupleGetItemExpr) and source is None:
            self.roots[var] = var
            return
        self.roots[var] = self.roots.get(source, var) if isinstance(source, Var) else var
