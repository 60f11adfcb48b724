"""ExpandManualPhaseFence: one dummy task between an array of producers and the many consumers of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.dtype import DataType
from pypto.ir.enums import is_orchestration_like
from pypto.ir.expr import Call, Submit, Var, const_value
from pypto.ir.node import make, replace
from pypto.ir.program import Function
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
from pypto.ir.types import ArrayType, scalar_type
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import op_ref
from pypto.passes.lib.rewrite import with_body
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.walk import bodies, defined_vars, iter_stmts, stmt_call, yielded
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


def _array_dep(stmt: Stmt) -> Var | None:
    """The task-id array that is the only dependency of a launch."""
    call = stmt_call(stmt)
    if not isinstance(call, Submit) or len(call.deps) != 1:
        return None
    dep = call.deps[0]
    is_array = isinstance(dep, Var) and isinstance(dep.type, ArrayType) and dep.type.dtype == DataType.TASK_ID
    return dep if is_array else None


def _consumers(body: Stmt, trips: int | None) -> Iterator[tuple[Var, int | None]]:
    """(array, executions) of every launch below that waits for a whole array."""
    for stmt in flatten_to_stmts(body):
        array = _array_dep(stmt)
        if array is not None:
            yield array, trips
        elif isinstance(stmt, ForStmt):
            own = trip_count(stmt.start, stmt.stop, stmt.step)
            yield from _consumers(stmt.body, None if own is None or trips is None else own * trips)
        elif isinstance(stmt, WhileStmt):
            yield from _consumers(stmt.body, None)
        else:
            for nested in bodies(stmt):
                yield from _consumers(nested, trips)


class _ArrayNames:
    """Names of one array through loop carries and in-place updates; a plain copy is an array of its own."""

    def __init__(self, body: Stmt) -> None:
        self._source: dict[Var, Var] = {}
        for stmt in iter_stmts(body):
            if isinstance(stmt, (ForStmt, WhileStmt)):
                for arg, result in zip(stmt.iter_args, stmt.return_vars):
                    if isinstance(arg.type, ArrayType) and isinstance(arg.initValue, Var):
                        self._source[arg] = self._source[result] = arg.initValue
            elif isinstance(stmt, IfStmt):
                for result, value in zip(stmt.return_vars, yielded(stmt.then_body)):
                    if isinstance(result.type, ArrayType) and isinstance(value, Var):
                        self._source[result] = value
            elif _is_update(stmt):
                self._source[stmt.var] = stmt.value.args[0]

    def root(self, var: Var) -> Var:
        while var in self._source:
            var = self._source[var]
        return var

    def updated_in(self, loop: ForStmt) -> set[Var]:
        """Roots of the arrays that the loop writes."""
        return {self.root(s.value.args[0]) for s in iter_stmts(loop.body) if _is_update(s)}


def _is_update(stmt: Stmt) -> bool:
    value = stmt.value if type(stmt) is AssignStmt else None
    return isinstance(value, Call) and value.op.name == "array.update_element" and isinstance(value.args[0], Var)


class _DepsTo(IRMutator):
    """Replaces an array dependency of launches by the barrier."""

    def __init__(self, array: Var, barrier: Var) -> None:
        super().__init__()
        self._array, self._barrier = array, barrier

    def visit_submit(self, submit: Submit) -> Submit:
        if len(submit.deps) == 1 and submit.deps[0] is self._array:
            return replace(submit, deps=(self._barrier,))
        return submit

    def visit_type(self, kind):
        return kind


class _Fences:
    def __init__(self, body: Stmt) -> None:
        self._count = 0
        self._names = _ArrayNames(body)

    def rewrite(self, stmt: Stmt, manual: bool) -> Stmt:
        kind = type(stmt)
        if kind is SeqStmts:
            return self._list(stmt, manual)
        if kind is IfStmt:
            then_body = self.rewrite(stmt.then_body, manual)
            else_body = None if stmt.else_body is None else self.rewrite(stmt.else_body, manual)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if kind is ForStmt and manual:
            before, loop = self._loop(stmt)
            return seq([*before, loop]) if before else loop
        if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
            if isinstance(stmt, RuntimeScopeStmt):
                manual = stmt.manual
            body = self.rewrite(stmt.body, manual)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def _list(self, stmt: SeqStmts, manual: bool) -> Stmt:
        children = [self.rewrite(c, manual) for c in stmt.stmts]
        return stmt if all(a is b for a, b in zip(children, stmt.stmts)) else seq(children, stmt.span)

    def _loop(self, loop: ForStmt) -> tuple[list[Stmt], ForStmt]:
        """(barriers to put in front, rewritten loop)."""
        inside = {v for s in (loop, *iter_stmts(loop.body)) for v in defined_vars(s)}
        launches: dict[Var, int | None] = {}
        own = trip_count(loop.start, loop.stop, loop.step)
        for array, times in _consumers(loop.body, own):
            known = launches.get(array, 0)
            launches[array] = None if times is None or known is None else known + times
        before: list[Stmt] = []
        updated: set[Var] | None = None
        for array, consumers in launches.items():
            producers = const_value(array.type.extent)
            if array in inside or not consumers or producers is None:
                continue
            if producers * consumers - (producers + consumers) <= 0:
                continue
            updated = self._names.updated_in(loop) if updated is None else updated
            if self._names.root(array) in updated:
                continue
            barrier = Var(f"phase_fence_barrier_{self._count}_tid", scalar_type(DataType.TASK_ID), loop.span)
            self._count += 1
            attrs = {"dummy_task": True, "manual_dep_edges": [array]}
            call = make(Call, op_ref("system.task_dummy"), (), {}, attrs, barrier.type, loop.span)
            before.append(AssignStmt(barrier, call, loop.span))
            loop = _DepsTo(array, barrier).visit_stmt(loop)
        body = self.rewrite(loop.body, True)
        return before, loop if body is loop.body else replace(loop, body=body)


@function_pass(
    "ExpandManualPhaseFence",
    required=(P.NoNestedCalls, P.NormalizedStmtStructure, P.CallDirectionsResolved),
    produced=(P.NoNestedCalls, P.NormalizedStmtStructure, P.CallDirectionsResolved),
)
def expand_manual_phase_fence(function: Function) -> Function:
    """In manual scopes, replace producers x consumers edges by producers + consumers through a dummy task."""
    if not is_orchestration_like(function.func_type) or function.body is None:
        return function
    if not any(_array_dep(stmt) is not None for stmt in iter_stmts(function.body)):
        return function
    return with_body(function, _Fences(function.body).rewrite(function.body, False))
