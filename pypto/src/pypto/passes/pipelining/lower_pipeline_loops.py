"""LowerPipelineLoops: replicate the body of a pipelined loop once per stage."""

from __future__ import annotations

from pypto.arith import Analyzer
from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind
from pypto.ir.expr import Add, Call, ConstInt, Eq, Expr, FloorDiv, Le, Max, Mul, Sub, Var, const_index, const_value
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import scalar_type
from pypto.passes.lib.op_facts import MATMULS
from pypto.passes.lib.rewrite import fresh, with_body
from pypto.passes.lib.scalar_bounds import learn_bounds
from pypto.passes.lib.scalars import trip_count
from pypto.passes.pass_ import function_pass
from pypto.passes.pipelining.replication import (
    DOUBLE_BUFFER_C,
    STAGES,
    has_pipeline,
    replicate,
    sequential,
    shifted,
    stages_of,
    tagged_body,
)
from pypto.passes.properties import IRProperty as P

_TILE_IR = (
    P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip


def _not_accumulator(call: Call) -> bool:
    return call.op.name not in MATMULS


def _any(call: Call) -> bool:
    return True


class _Lowering:
    """Lowers the loops of one function; group ids count up over the function."""

    def __init__(self, body: Stmt) -> None:
        self._next_group = 0
        self._facts = Analyzer()
        learn_bounds(body, self._facts)

    def rewrite(self, stmt: Stmt) -> Stmt:
        kind = type(stmt)
        if kind is SeqStmts:
            children = [self.rewrite(c) for c in stmt.stmts]
            return stmt if all(a is b for a, b in zip(children, stmt.stmts)) else seq(children, stmt.span)
        if kind is IfStmt:
            then_body = self.rewrite(stmt.then_body)
            else_body = None if stmt.else_body is None else self.rewrite(stmt.else_body)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if kind is ForStmt:
            factor = stages_of(stmt)
            if factor > 1:
                return seq(self._lower(stmt, factor))
        if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
            body = self.rewrite(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def _group(self) -> int:
        self._next_group += 1
        return self._next_group - 1

    def _lower(self, loop: ForStmt, factor: int) -> list[Stmt]:
        step = const_value(loop.step)
        trips = trip_count(loop.start, loop.stop, loop.step)
        if trips is None and (step is None or step <= 0):
            raise user_error("pl.pipeline: a loop with runtime bounds needs a positive constant step", span=loop.span)
        if step == 0:
            raise user_error("pl.pipeline: the step must not be zero", span=loop.span)
        if trips == 0:
            return [sequential(loop, body=self.rewrite(loop.body))]
        if trips is None:
            return self._dynamic(loop, factor, step)
        start = const_value(loop.start)
        full, rest = divmod(trips, factor)
        if full == 0:
            return self._flat(loop, start, trips, tuple(a.initValue for a in loop.iter_args), bind=True)
        stop = ConstInt(start + full * factor * step, loop.start.dtype)
        if rest == 0:
            return [self._main(loop, factor, step, stop, loop.return_vars)]
        results = tuple(fresh(v, "_main") for v in loop.return_vars)
        main = self._main(loop, factor, step, stop, results)
        return [main, *self._flat(loop, start + full * factor * step, rest, results, bind=True)]

    def _main(self, loop: ForStmt, factor: int, step: int, stop: Expr, results: tuple[Var, ...]) -> ForStmt:
        group = self._group()
        body, values = self._clones(loop, loop.loop_var, step, factor, loop.iter_args, group, keep_first=True)
        if values:
            body.append(make(YieldStmt, values, loop.span, []))
        attrs = {**loop.attrs, STAGES: 1}
        stride = ConstInt(factor * step, loop.step.dtype if isinstance(loop.step, ConstInt) else DataType.INDEX)
        return replace(
            loop, stop=stop, step=stride, body=seq(body, loop.body.span), attrs=attrs, return_vars=results,
            kind=ForKind.Pipeline,
        )  # fmt: skip

    def _clones(
        self,
        loop: ForStmt,
        index: Expr,
        step: int,
        count: int,
        carries: tuple[Expr, ...],
        group: int,
        *,
        keep_first: bool = False,
    ) -> tuple[list[Stmt], tuple[Expr, ...]]:
        tagged = _any if loop.attrs.get(DOUBLE_BUFFER_C) else _not_accumulator
        result: list[Stmt] = []
        for stage in range(count):
            stmts, carries = replicate(loop, shifted(index, stage * step), carries, first=keep_first and stage == 0)
            stmts = tagged_body(stmts, group, stage, tagged)
            result.extend(flatten_to_stmts(self.rewrite(seq(stmts))))
        return result, carries

    def _flat(self, loop: ForStmt, start: int, count: int, carries: tuple[Expr, ...], *, bind: bool) -> list[Stmt]:
        step = const_value(loop.step)
        first = ConstInt(start, loop.start.dtype)
        stmts, values = self._clones(loop, first, step, count, carries, self._group())
        if bind:
            stmts += [AssignStmt(var, value, loop.span) for var, value in zip(loop.return_vars, values)]
        return stmts

    def _dynamic(self, loop: ForStmt, factor: int, step: int) -> list[Stmt]:
        """Main loop over whole groups of iterations, then a cascade over the number of remaining ones."""
        index = DataType.INDEX
        # Bounds that may cross each other would count a negative number of iterations.
        ordered = self._facts.can_prove(Le(loop.start, loop.stop, DataType.BOOL, loop.span))
        stop = loop.stop if ordered else Max(loop.stop, loop.start, index, loop.span)
        span = Sub(stop, loop.start, index)
        whole: Expr = span
        if step != 1:
            whole = FloorDiv(Add(span, const_index(step - 1), index), const_index(step), index)
        groups = FloorDiv(whole, const_index(factor), index)
        end_var = Var("unroll_main_end", scalar_type(index), loop.span)
        end = Add(loop.start, Mul(groups, const_index(factor * step), index), index)
        rem_var = Var("unroll_rem", scalar_type(index), loop.span)
        if step == 1:
            rem: Expr = Sub(stop, end_var, index)
        else:
            rem = Sub(whole, Mul(groups, const_index(factor), index), index)
        results = tuple(fresh(v, "_main") for v in loop.return_vars)
        main = self._main(loop, factor, step, end_var, results)
        # The cascade is built from the largest remainder inwards, which is also the order of the group ids.
        tail: Stmt | None = None
        for count in range(factor - 1, 0, -1):
            stmts, values = self._clones(loop, end_var, step, count, results, self._group())
            names = loop.return_vars
            if count > 1:
                names = tuple(fresh(v, f"_rem{count}") for v in loop.return_vars)
            if results:
                stmts.append(make(YieldStmt, values, loop.span, []))
                other = seq([make(YieldStmt, results, loop.span, [])] if tail is None else self._passed_on(tail))
            else:
                other = tail
            condition = Eq(rem_var, const_index(count), DataType.BOOL, loop.span)
            tail = IfStmt(condition, seq(stmts), other, names, loop.span)
        return [
            AssignStmt(end_var, end, loop.span),
            main,
            AssignStmt(rem_var, rem, loop.span),
            *([tail] if tail is not None else []),
        ]

    @staticmethod
    def _passed_on(branch: IfStmt) -> list[Stmt]:
        return [branch, make(YieldStmt, branch.return_vars, branch.span, [])]


@function_pass("LowerPipelineLoops", required=_TILE_IR, produced=_TILE_IR)
def lower_pipeline_loops(function: Function) -> Function:
    """Turn ``pl.pipeline(..., stage=F)`` into a loop over F copies of its body, plus copies for the rest."""
    if function.body is None or not has_pipeline(function.body):
        return function
    return with_body(function, _Lowering(function.body).rewrite(function.body))
