"""InsertCommFence: publish window writes and invalidate stale lines around cross-rank synchronisation."""

from __future__ import annotations

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, Var, const_index
from pypto.ir.node import make
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, EvalStmt, Stmt
from pypto.ir.types import DistributedTensorType, UnknownType
from pypto.ops.registry import op_ref
from pypto.passes.lib.op_facts import same_object_arg
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, op_name, stmt_call
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

INVALIDATE, FENCE, WAIT = "system.cacheinvalid", "system.fence", "pld.system.wait"
#: Operator -> operand that a write into this rank's window goes to.
_LOCAL_WRITES = {"tile.store": 2, "tensor.write": 0, "pld.tile.get": 0, "pld.tensor.get": 0}
_REMOTE_WRITES = ("pld.tile.remote_store", "pld.tensor.remote_store", "pld.tile.put", "pld.tensor.put")


def _marker(name: str, args: tuple[Expr, ...], like: Stmt) -> Stmt:
    return EvalStmt(make(Call, op_ref(name), args, {}, {}, UnknownType.get(), like.span), like.span)


class _Fences:
    def __init__(self, function: Function) -> None:
        self._plain = {
            stmt.var: stmt.value.args[same_object_arg(stmt.value)]
            for stmt, call in iter_calls(function.body)
            if type(stmt) is AssignStmt and isinstance(call, Call) and same_object_arg(call) is not None
        }

    def _parameter(self, tensor: Expr) -> Expr:
        """The oldest name of a window: the parameter rather than the result of an earlier store."""
        while isinstance(tensor, Var) and tensor in self._plain:
            tensor = self._plain[tensor]
        return tensor

    def edit(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for index, stmt in enumerate(stmts):
            result.append(stmt)
            following = stmts[index + 1 :]
            markers = self._markers(stmt, following)
            present = [op_name(s) for s in following[: len(markers)]]
            if present != [op_name(m) for m in markers]:
                result.extend(markers)
        return stmts if len(result) == len(stmts) else result

    def _markers(self, stmt: Stmt, following: list[Stmt]) -> list[Stmt]:
        call = stmt_call(stmt)
        if call is None:
            return []
        name = call.op.name
        if isinstance(call, Submit) or isinstance(call.op, GlobalVar):
            return [_marker(INVALIDATE, (), stmt), _marker(FENCE, (), stmt)]
        if name in _REMOTE_WRITES:
            return [_marker(FENCE, (), stmt)]
        if name == WAIT:
            return [] if _waits_next(following) else [_marker(INVALIDATE, (), stmt)]
        operand = _LOCAL_WRITES.get(name)
        if operand is None:
            return []
        tensor = self._parameter(call.args[operand])
        if not isinstance(tensor.type, DistributedTensorType):
            return []
        shape = tensor.type.shape
        zeros = MakeTuple(tuple(const_index(0) for _ in shape))
        return [_marker(INVALIDATE, (tensor, MakeTuple(shape), zeros), stmt), _marker(FENCE, (), stmt)]


def _waits_next(following: list[Stmt]) -> bool:
    """The run of waits goes on, so one invalidate after it is enough."""
    return bool(following) and op_name(following[0]) == WAIT


@function_pass("InsertCommFence", required=(P.SplitIncoreOrch,))
def insert_comm_fence(function: Function) -> Function:
    """Add ``cacheinvalid`` and ``fence`` after window writes and calls, ``cacheinvalid`` after waits."""
    if not is_incore_type(function.func_type) or function.body is None:
        return function
    relevant = any(
        call.op.name in _LOCAL_WRITES
        or call.op.name in _REMOTE_WRITES
        or call.op.name == WAIT
        or isinstance(call.op, GlobalVar)
        for _, call in iter_calls(function.body)
    )
    if not relevant:
        return function
    return with_body(function, rebuild_lists(function.body, _Fences(function).edit))
