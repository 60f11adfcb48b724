"""LegalizeSpmdLaunches: guard launches whose block count may be zero."""

from __future__ import annotations

from contextlib import ExitStack

from pypto.arith import Analyzer
from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import ParamDirection, is_orchestration_like
from pypto.ir.expr import Call, ConstInt, Expr, Ge, Gt, Lt, Not, Submit, TupleGetItemExpr, Var, const_index, const_value
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import ScalarType, TensorType, TupleType, scalar_type
from pypto.ops.registry import op_ref
from pypto.passes.lib.core_affinity import CORE_COUNT_QUERIES
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.rewrite import with_body
from pypto.passes.lib.scalar_bounds import learn_bounds
from pypto.passes.lib.walk import all_uses, iter_calls, map_functions, stmt_call
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

#: Placeholder of a pipe workspace, created for one launch.
_WORKSPACE = "gm_pipe_buffer_"


def block_count(call: Call | Submit) -> Expr | None:
    """Runtime block count of a launch; None when it has none or a constant one."""
    count = call.core_num if isinstance(call, Submit) else call.attrs.get("core_num")
    return count if isinstance(count, Expr) and not isinstance(count, ConstInt) else None


class _Guards:
    def __init__(self, program: Program, lineage: Lineage, body: Stmt) -> None:
        self._program, self._lineage = program, lineage
        self._facts = Analyzer()
        learn_bounds(body, self._facts)

    def body(self, body: Stmt) -> Stmt:
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        position = 0
        while position < len(old):
            stmt = old[position]
            call = stmt_call(stmt)
            if call is not None and is_user_call(call) and self._may_be_empty(call):
                items = self._projections(stmt, old, position)
                workspace = self._private_workspace(stmt, new, old)
                if workspace is not None:
                    new.remove(workspace)
                new.append(self._guarded(stmt, call, items, workspace))
                position += 1 + len(items)
                continue
            new.append(self._nested(stmt))
            position += 1
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old))
        return body if same else seq(new, body.span)

    def _may_be_empty(self, call: Call | Submit) -> bool:
        count = block_count(call)
        if isinstance(count, Call) and count.op.name in CORE_COUNT_QUERIES:
            return False  # every device has cores
        return count is not None and not self._facts.can_prove_greater_equal(count, 1)

    def _nested(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, AssignStmt):
            if isinstance(stmt.var.type, ScalarType) and _is_arithmetic(stmt.value):
                self._facts.bind(stmt.var, stmt.value, allow_override=True)
            return stmt
        if isinstance(stmt, ForStmt):
            with ExitStack() as stack:
                if (const_value(stmt.step) or 0) > 0:
                    for fact in (
                        Ge(stmt.loop_var, stmt.start, DataType.BOOL),
                        Lt(stmt.loop_var, stmt.stop, DataType.BOOL),
                    ):
                        stack.enter_context(self._facts.constraint_context(fact))
                new = self.body(stmt.body)
            return stmt if new is stmt.body else replace(stmt, body=new)
        if isinstance(stmt, IfStmt):
            with self._facts.constraint_context(stmt.condition):
                then_body = self.body(stmt.then_body)
            else_body = stmt.else_body
            if else_body is not None:
                with self._facts.constraint_context(Not(stmt.condition, DataType.BOOL)):
                    else_body = self.body(else_body)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if isinstance(stmt, (WhileStmt, ScopeStmt)):
            new = self.body(stmt.body)
            return stmt if new is stmt.body else replace(stmt, body=new)
        return stmt

    @staticmethod
    def _projections(stmt: Stmt, stmts: list[Stmt], position: int) -> list[AssignStmt]:
        """The assignments right behind a launch that take its result apart."""
        if not isinstance(stmt, AssignStmt) or not isinstance(stmt.var.type, TupleType):
            return []
        items: list[AssignStmt] = []
        for later in stmts[position + 1 :]:
            value = later.value if isinstance(later, AssignStmt) else None
            if not isinstance(value, TupleGetItemExpr) or value.tuple is not stmt.var:
                break
            items.append(later)
        rest = stmts[position + 1 + len(items) :]
        if any(stmt.var in all_uses(s) for s in rest):
            raise user_error(
                f"launch '{stmt.value.op.name}' with a runtime core_num: its results must be unpacked where it is "
                "launched",
                span=stmt.span,
            )
        return items

    @staticmethod
    def _private_workspace(stmt: Stmt, before: list[Stmt], stmts: list[Stmt]) -> AssignStmt | None:
        """The pipe workspace that was created for this launch."""
        call = stmt_call(stmt)
        last = call.args[-1] if call.args else None
        if not isinstance(last, Var) or not last.name_hint.startswith(_WORKSPACE):
            return None
        if any(last in all_uses(s) for s in stmts if s is not stmt):
            raise user_error(
                f"launch '{call.op.name}' with a runtime core_num shares its pipe workspace with another launch",
                span=stmt.span,
            )
        return next((s for s in before if isinstance(s, AssignStmt) and s.var is last), None)

    def _guarded(
        self, stmt: Stmt, call: Call | Submit, items: list[AssignStmt], workspace: AssignStmt | None
    ) -> IfStmt:
        """``if count > 0: launch`` with the caller's buffers standing for the results otherwise."""
        self._check_outputs(call)
        span = stmt.span
        inside: list[Stmt] = [] if workspace is None else [workspace]
        outside: list[Stmt] = []
        results: list[Var] = []
        launched: list[Expr] = []
        skipped: list[Expr] = []
        if not isinstance(stmt, AssignStmt):
            inside.append(stmt)
        else:
            own = replace(stmt.var)
            inside.append(replace(stmt, var=own))
            picks = [(s.var, s.value.index) for s in items] if items else [(stmt.var, None)]
            for var, index in picks:
                value: Expr = own
                if index is not None:
                    value = replace(var)
                    inside.append(AssignStmt(value, TupleGetItemExpr(own, index, span), span))
                results.append(var)
                launched.append(value)
                skipped.append(self._without_launch(call, var, index or 0, outside))
        if results:
            inside.append(make(YieldStmt, tuple(launched), span, []))
            outside.append(make(YieldStmt, tuple(skipped), span, []))
        condition = Gt(block_count(call), const_index(0), DataType.BOOL, span)
        return IfStmt(condition, seq(inside), seq(outside) if outside else None, tuple(results), span)

    def _check_outputs(self, call: Call | Submit) -> None:
        callee = self._program.get_function(call.op.name)
        missing = [
            f"'{p.name_hint}' (index {i})"
            for i, (p, d) in enumerate(zip(callee.params, callee.param_directions))
            if i >= len(call.args) and d is not ParamDirection.In and isinstance(p.type, TensorType)
        ]
        if missing:
            raise user_error(
                f"launch '{call.op.name}' with a runtime core_num must be given every output buffer, because an empty "
                f"launch returns them: {', '.join(missing)} missing",
                span=call.span,
            )

    def _without_launch(self, call: Call | Submit, var: Var, index: int, outside: list[Stmt]) -> Expr:
        if isinstance(var.type, ScalarType) and var.type.dtype == DataType.TASK_ID:
            deps = list(call.deps) if isinstance(call, Submit) else []
            attrs = {"dummy_task": True, "manual_dep_edges": deps}
            kind = scalar_type(DataType.TASK_ID)
            dummy = make(Call, op_ref("system.task_dummy"), (), {}, attrs, kind, call.span)
            task = replace(var)
            outside.append(AssignStmt(task, dummy, call.span))
            return task
        buffer = self._lineage.call_alias(call, index)
        if buffer is None:
            raise user_error(
                f"launch '{call.op.name}' with a runtime core_num: result {index} is not one of the buffers passed to "
                "it, so an empty launch has no value for it; let the kernel return its Out parameters",
                span=call.span,
            )
        return buffer


def _is_arithmetic(value: Expr) -> bool:
    if isinstance(value, (Call, Submit, TupleGetItemExpr)):
        return False
    return isinstance(value.type, ScalarType) and value.type.dtype.is_int()


@program_pass(
    "LegalizeSpmdLaunches",
    required=(P.SSAForm, P.NoNestedCalls, P.ReturnParamsExplicit),
    produced=(P.SSAForm, P.NoNestedCalls, P.NormalizedStmtStructure),
    invalidated=(P.CallDirectionsResolved, P.RuntimeScopesMaterialized, P.IterArgCarryClassified),
)
def legalize_spmd_launches(program: Program) -> Program:
    """Put ``if count > 0`` around every launch whose block count is not provably positive."""
    lineage = Lineage(program)

    def legalize(function: Function) -> Function:
        if not is_orchestration_like(function.func_type) or function.body is None:
            return function
        if not any(is_user_call(c) and block_count(c) is not None for _, c in iter_calls(function.body)):
            return function
        return with_body(function, _Guards(program, lineage, function.body).body(function.body))

    return map_functions(program, legalize)
