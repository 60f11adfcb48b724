"""SynthesizeAllReduceSignals: give every host allreduce without a signal a window of its own."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, Expr, MakeTuple, Mul, Submit, Var
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import DistributedTensorType, PtrType, scalar_type
from pypto.ops.registry import op_ref
from pypto.passes.distributed.host import ALLOC, ALLREDUCE, WINDOW, is_host
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.scalars import int64
from pypto.passes.lib.walk import bodies, defined_vars, iter_stmts, map_functions, stmt_call
from pypto.passes.pass_ import program_pass


def _is_allreduce(value: Expr | None) -> bool:
    return isinstance(value, Call) and value.op.name == ALLREDUCE


def _check(stmt: Stmt, in_loop: bool) -> None:
    """Reject allreduce calls that no signal can be given to."""
    values: tuple = ()
    if isinstance(stmt, AssignStmt):
        values = (stmt.value,)
    elif isinstance(stmt, EvalStmt):
        values = (stmt.expr,)
    elif isinstance(stmt, ReturnStmt):
        values = stmt.value
    for value in values:
        if _is_allreduce(value):
            if len(value.args) not in (1, 2):
                raise user_error(
                    f"pld.tensor.allreduce takes data and an optional signal, got {len(value.args)} arguments",
                    span=stmt.span,
                )
            if len(value.args) == 1 and in_loop:
                raise user_error(
                    "pld.tensor.allreduce without an explicit signal is not supported inside a for/while loop; "
                    "allocate a signal window before the loop and pass it",
                    span=stmt.span,
                )
        elif _contains(value):
            raise user_error(
                "pld.tensor.allreduce must be a direct assignment, an expression statement or a return value, not "
                "part of another expression",
                span=stmt.span,
            )
    for body in bodies(stmt):
        for child in flatten_to_stmts(body):
            _check(child, in_loop or isinstance(stmt, (ForStmt, WhileStmt)))


def _contains(value: Expr) -> bool:
    if isinstance(value, MakeTuple):
        return any(_contains(e) for e in value.elements)
    return isinstance(value, (Call, Submit)) and (_is_allreduce(value) or any(_contains(a) for a in value.args))


class _Signals:
    def __init__(self, program: Program) -> None:
        names = set()
        for function in program.functions.values():
            names.update(p.name_hint for p in function.params)
            for stmt in iter_stmts(function.body):
                names.update(v.name_hint for v in defined_vars(stmt))
                call = stmt_call(stmt)
                if call is not None and call.op.name == ALLOC:
                    names.add(call.kwargs.get("name"))
        self._taken = names
        self._next = 0
        self._results = 0

    def _number(self) -> int:
        while any(n in self._taken for n in self._names(self._next)):
            self._next += 1
        self._next += 1
        return self._next - 1

    @staticmethod
    def _names(number: int) -> tuple[str, str, str]:
        prefix = "__allreduce_signal"
        return f"{prefix}_world_size_{number}", f"{prefix}_buf_{number}", f"{prefix}_{number}"

    def with_signal(self, call: Call) -> tuple[list[Stmt], Call]:
        """(statements that make the signal, the call with it)."""
        if len(call.args) != 1:
            return [], call
        span = call.span
        lanes = int(call.kwargs.get("core_num", 1) or 1)
        ranks_name, buffer_name, signal_name = self._names(self._number())
        kind = scalar_type(DataType.INT64)
        ranks = Var(ranks_name, kind, span)
        query = make(Call, op_ref("pld.system.world_size"), (), {}, {}, kind, span)
        size = Mul(Mul(ranks, int64(lanes), DataType.INT64), int64(DataType.INT32.get_byte()), DataType.INT64)
        buffer = Var(buffer_name, PtrType.get(), span)
        alloc = make(Call, op_ref(ALLOC), (size,), {"name": buffer_name}, {}, PtrType.get(), span)
        shape = (ranks, int64(lanes))
        view = DistributedTensorType(shape, DataType.INT32)
        signal = Var(signal_name, view, span)
        window = make(Call, op_ref(WINDOW), (buffer, MakeTuple(shape)), {"dtype": DataType.INT32}, {}, view, span)
        made: list[Stmt] = [
            AssignStmt(ranks, query, span),
            AssignStmt(buffer, alloc, span),
            AssignStmt(signal, window, span),
        ]
        return made, replace(call, args=(*call.args, signal))

    def edit(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ReturnStmt) and any(_is_allreduce(v) for v in stmt.value):
                values = []
                for value in stmt.value:
                    if _is_allreduce(value):
                        before, call = self.with_signal(value)
                        lifted = Var(f"__allreduce_result_{self._results}", call.type, stmt.span)
                        self._results += 1
                        result += [*before, AssignStmt(lifted, call, stmt.span)]
                        value = lifted
                    values.append(value)
                stmt = replace(stmt, value=tuple(values))
            elif isinstance(stmt, AssignStmt) and _is_allreduce(stmt.value):
                before, call = self.with_signal(stmt.value)
                result += before
                stmt = stmt if call is stmt.value else replace(stmt, value=call)
            elif isinstance(stmt, EvalStmt) and _is_allreduce(stmt.expr):
                before, call = self.with_signal(stmt.expr)
                result += before
                stmt = stmt if call is stmt.expr else replace(stmt, expr=call)
            result.append(stmt)
        return stmts if len(result) == len(stmts) and all(a is b for a, b in zip(result, stmts)) else result


@program_pass("SynthesizeAllReduceSignals")
def synthesize_allreduce_signals(program: Program) -> Program:
    """Allocate and pass a signal window for host ``allreduce`` calls that have none."""
    signals: _Signals | None = None

    def rewrite(function: Function) -> Function:
        nonlocal signals
        if not is_host(function):
            return function
        for stmt in flatten_to_stmts(function.body):
            _check(stmt, False)
        if signals is None:
            signals = _Signals(program)
        return with_body(function, rebuild_lists(function.body, signals.edit))

    return map_functions(program, rewrite)
