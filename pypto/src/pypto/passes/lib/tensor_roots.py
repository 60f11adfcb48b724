"""Which buffers a tensor value of an orchestration function may be a name of."""

from __future__ import annotations

from pypto.ir.expr import Call, Expr, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TensorType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import VIEWS
from pypto.passes.lib.walk import yielded

Roots = frozenset[Var]


def tensor_roots(function: Function, lineage: Lineage) -> dict[Var, Roots]:
    """Tensor variable -> the parameters, creations and opaque results whose buffers it may name.

    A view belongs to its source; a branch result and a rebound loop carry may name several buffers.
    """
    return _Walk(function, lineage, exact=False).roots


def exact_roots(function: Function, lineage: Lineage) -> dict[Var, Var]:
    """Tensor variable -> the one buffer that it certainly names as a whole; other values stand for themselves."""
    return {var: next(iter(roots)) for var, roots in _Walk(function, lineage, exact=True).roots.items()}


class _Walk:
    def __init__(self, function: Function, lineage: Lineage, *, exact: bool) -> None:
        self._lineage, self._exact = lineage, exact
        self._tuples: dict[Var, Expr] = {}
        self.roots: dict[Var, Roots] = {p: Roots((p,)) for p in function.params if isinstance(p.type, TensorType)}
        if function.body is not None:
            self._body(function.body)

    def _join(self, var: Var, values: tuple[Expr, ...]) -> None:
        """``var`` is one of ``values``."""
        found = [self.roots.get(v, Roots((v,))) for v in values if isinstance(v, Var)]
        merged = Roots().union(*found)
        self.roots[var] = Roots((var,)) if not merged or (self._exact and len(merged) > 1) else merged

    def _body(self, body: Stmt) -> None:
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is AssignStmt:
                self._assign(stmt)
            elif kind is ForStmt or kind is WhileStmt:
                tensors = [isinstance(arg.type, TensorType) for arg in stmt.iter_args]
                for arg, wanted in zip(stmt.iter_args, tensors):
                    if wanted:
                        self._join(arg, (arg.initValue,))
                self._body(stmt.body)
                for arg, result, value, wanted in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body), tensors):
                    if wanted:
                        self._join(result, (arg, value))
            elif kind is IfStmt:
                self._body(stmt.then_body)
                if stmt.else_body is not None:
                    self._body(stmt.else_body)
                for var, *values in zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body)):
                    if isinstance(var.type, TensorType):
                        self._join(var, tuple(values))
            elif isinstance(stmt, ScopeStmt):
                self._body(stmt.body)

    def _assign(self, stmt: AssignStmt) -> None:
        value, var = stmt.value, stmt.var
        if not isinstance(var.type, TensorType):
            if isinstance(value, (Call, Submit, MakeTuple)):
                self._tuples[var] = value
            return
        source = self._lineage.alias_source(value, self._tuples)
        if source is None and not self._exact and isinstance(value, Call) and value.op.name in VIEWS:
            source = value.args[0]
        if isinstance(value, TupleGetItemExpr) and not isinstance(source, Var):
            source = None
        self._join(var, (source,) if isinstance(source, Var) else (var,))
