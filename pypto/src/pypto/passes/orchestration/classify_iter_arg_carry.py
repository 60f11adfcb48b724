"""ClassifyIterArgCarry: say for every carry of an orchestration loop whether an iteration rebinds it."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, is_orchestration_like
from pypto.ir.expr import Expr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import ScalarType, TensorType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.rewrite import with_body
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.walk import iter_stmts, map_functions, yielded
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P


class _Classifier:
    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._tuples: dict[Var, Expr] = {}
        #: Tensor variable -> the variable whose buffer it certainly still is.
        self._class: dict[Var, Var] = {}
        self._sizes: dict[Var, int] = {}

    def rewrite(self, stmt: Stmt, manual: bool) -> Stmt:
        kind = type(stmt)
        if kind is SeqStmts:
            children = [self.rewrite(c, manual) for c in flatten_to_stmts(stmt)]
            same = len(children) == len(stmt.stmts) and all(a is b for a, b in zip(children, stmt.stmts))
            return stmt if same else seq(children, stmt.span)
        if kind is AssignStmt:
            self._assign(stmt)
            return stmt
        if kind is ForStmt:
            return self._loop(stmt, manual)
        if kind is WhileStmt:
            body = self.rewrite(stmt.body, manual)
            return stmt if body is stmt.body else replace(stmt, body=body)
        if kind is IfStmt:
            then_body = self.rewrite(stmt.then_body, manual)
            else_body = None if stmt.else_body is None else self.rewrite(stmt.else_body, manual)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if isinstance(stmt, ScopeStmt):
            body = self.rewrite(stmt.body, manual or (isinstance(stmt, RuntimeScopeStmt) and stmt.manual))
            return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def _assign(self, stmt: AssignStmt) -> None:
        if not isinstance(stmt.var.type, TensorType):
            self._tuples[stmt.var] = stmt.value
            return
        source = self._lineage.alias_source(stmt.value, self._tuples)
        if isinstance(source, Var):
            self._class[stmt.var] = self._class.get(source, source)

    def _loop(self, stmt: ForStmt, manual: bool) -> Stmt:
        body = self.rewrite(stmt.body, manual)
        if not stmt.iter_args:
            return stmt if body is stmt.body else replace(stmt, body=body)
        attrs = dict(stmt.attrs)
        for index, (arg, value) in enumerate(zip(stmt.iter_args, yielded(body))):
            kept = isinstance(arg.type, TensorType) and (value is arg or self._class.get(value) is arg)
            attrs[f"iter_arg_rebind_{index}"] = not kept
            if kept:
                result = stmt.return_vars[index]
                init = arg.initValue
                if isinstance(init, Var):
                    self._class[result] = self._class.get(init, init)
            if manual and _is_task_id(arg):
                size = self._array_size(stmt, value)
                if size is not None:
                    attrs[f"iter_arg_array_size_{index}"] = size
                    self._sizes[stmt.return_vars[index]] = size
        if attrs == stmt.attrs and body is stmt.body:
            return stmt
        return replace(stmt, body=body, attrs=attrs)

    def _array_size(self, loop: ForStmt, value: Expr) -> int | None:
        """Task ids that a manual-scope carry holds: one per iteration of the parallel loop that made it."""
        if loop.kind is ForKind.Parallel:
            trips = trip_count(loop.start, loop.stop, loop.step)
            if trips is None:
                raise user_error(
                    "manual_scope: pl.parallel loops carrying a manual_scope dep (a task id) must have a "
                    "statically-known trip count; give the loop constant bounds",
                    span=loop.span,
                )
            return trips
        return self._sizes.get(value) if isinstance(value, Var) else None


def _is_task_id(var: Var) -> bool:
    return isinstance(var.type, ScalarType) and var.type.dtype == DataType.TASK_ID


@program_pass(
    "ClassifyIterArgCarry",
    required=(P.CallDirectionsResolved, P.RuntimeScopesMaterialized),
    produced=(P.IterArgCarryClassified, P.RuntimeScopesMaterialized),
)
def classify_iter_arg_carry(program: Program) -> Program:
    """Set ``iter_arg_rebind_<i>`` (and ``iter_arg_array_size_<i>``) on the loops of orchestration functions."""
    lineage = Lineage(program)

    def classify(function: Function) -> Function:
        if not is_orchestration_like(function.func_type) or function.body is None:
            return function
        if not any(type(s) is ForStmt and s.iter_args for s in iter_stmts(function.body)):
            return function
        return with_body(function, _Classifier(lineage).rewrite(function.body, False))

    return map_functions(program, classify)
