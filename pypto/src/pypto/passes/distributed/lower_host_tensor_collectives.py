"""LowerHostTensorCollectives: turn host collectives into one built-in dispatch per device."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection, ArgEffect, CoreType, ReduceOp
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.memref import WindowBuffer
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    CommDomainScopeStmt,
    EvalStmt,
    ForStmt,
    ReturnStmt,
    Stmt,
    seq,
)
from pypto.ir.types import DistributedTensorType, UnknownType, scalar_type
from pypto.ops.registry import find_op, op_ref
from pypto.passes.context import backend_handler
from pypto.passes.distributed.host import ALL_TO_ALL_V, ALLREDUCE, COLLECTIVES, collective, is_host
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.scalars import int64, product
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_MAX_RING_RANKS = 16


def _fail(call: Call, message: str) -> Exception:
    return user_error(f"{call.op.name}: {message}", span=call.span)


class _Lowering:
    def __init__(self, function: Function) -> None:
        self._domain: dict[WindowBuffer, tuple[Expr, ...]] = {}
        self._scope: dict[WindowBuffer, Stmt] = {}
        for stmt in iter_stmts(function.body):
            if isinstance(stmt, CommDomainScopeStmt):
                for slot in stmt.slots:
                    self._domain[slot] = stmt.devices
                    self._scope[slot] = stmt

    def edit(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
            call = collective(value)
            if call is not None:
                changed = True
                result.extend(self._dispatch(call))
                if isinstance(stmt, AssignStmt):
                    result.append(replace(stmt, value=_data(call)))
            elif isinstance(stmt, ReturnStmt) and any(collective(v) for v in stmt.value):
                changed = True
                values = []
                for item in stmt.value:
                    inner = collective(item)
                    if inner is not None:
                        result.extend(self._dispatch(inner))
                        item = _data(inner)
                    values.append(item)
                result.append(replace(stmt, value=tuple(values)))
            else:
                result.append(stmt)
        return result if changed else stmts

    # -- emission -----------------------------------------------------------------------------------------------

    def _dispatch(self, call: Call) -> list[Stmt]:
        windows = self._operands(call)
        devices = self._domain[windows[0]]
        self._check(call, [const_value(d) for d in devices] if devices else None)
        name = call.op.name.removeprefix("pld.")
        if call.op.name == ALLREDUCE and call.kwargs.get("mode") == "ring":
            name += "_ring"
        builtin = f"builtin.{name}"
        kwargs = {k: v for k, v in call.kwargs.items() if k != "mode"}
        if _takes(builtin, "dtype"):
            kwargs["dtype"] = _data(call).type.dtype
        kwargs = {k: kwargs[k] for k in ("op", "root", "dtype", "core_num") if k in kwargs and _takes(builtin, k)}
        directions = [_direction(builtin, i) for i in range(len(call.args))]

        def dispatch(device: Expr) -> Stmt:
            attrs = {**kwargs, "device": device, "arg_directions": directions}
            new = make(Call, op_ref(builtin), call.args, dict(kwargs), attrs, UnknownType.get(), call.span)
            return EvalStmt(new, call.span)

        if devices:
            return [dispatch(d) for d in devices]
        kind = scalar_type(DataType.INT64)
        ranks = make(Call, op_ref("pld.system.world_size"), (), {}, {}, kind, call.span)
        rank = Var("r", kind, call.span)
        return [ForStmt(rank, int64(0), ranks, int64(1), (), seq([dispatch(rank)]), (), call.span)]

    # -- checks -------------------------------------------------------------------------------------------------

    def _operands(self, call: Call) -> list[WindowBuffer]:
        names = COLLECTIVES[call.op.name]
        windows: list[WindowBuffer] = []
        for name, arg in zip(names, call.args):
            kind = arg.type
            window = kind.window_buffer if isinstance(kind, DistributedTensorType) else None
            if window is None or window not in self._domain:
                raise _fail(call, f"{name} must be a window-bound DistributedTensor (a pld.window of this host body)")
            for other, seen in zip(names, windows):
                if seen is window:
                    raise _fail(call, f"{other} and {name} must be different window allocations")
            if windows and self._scope[window] is not self._scope[windows[0]]:
                raise _fail(call, f"{name} must be in the same communication domain as {names[0]}")
            windows.append(window)
        return windows

    def _check(self, call: Call, devices: list[int] | None) -> None:
        names = COLLECTIVES[call.op.name]
        operands = dict(zip(names, call.args))
        count = len(devices) if devices is not None else None
        lanes = int(call.kwargs.get("core_num", 1) or 1)
        handler = backend_handler()
        if handler is not None and lanes > handler.backend.get_core_count(CoreType.VECTOR):
            cores = handler.backend.get_core_count(CoreType.VECTOR)
            raise _fail(call, f"core_num ({lanes}) exceeds the backend AIV core count ({cores})")
        ring = False
        if call.op.name == ALLREDUCE:
            mode = call.kwargs.get("mode", "mesh")
            if mode not in ("mesh", "ring"):
                raise _fail(call, f'mode must be "ring" or "mesh", got "{mode}"')
            ring = mode == "ring"
            if operands["src"].type.dtype not in (DataType.FP16, DataType.FP32):
                raise _fail(call, "target dtype must be FP16 or FP32")
            if ring:
                self._check_ring(call, operands, count, lanes)
        if not ring:
            self._check_signal(call, operands["signal"], count, lanes)
        if call.op.name == "pld.tensor.broadcast" and count is not None:
            root = int(call.kwargs.get("root", 0))
            if not 0 <= root < count:
                raise _fail(call, f"root ({root}) must be a valid rank in [0, {count})")

    @staticmethod
    def _check_signal(call: Call, signal: Expr, count: int | None, lanes: int) -> None:
        shape = signal.type.shape
        if signal.type.dtype != DataType.INT32:
            raise _fail(call, f"signal must be INT32, got {signal.type.dtype}")
        if len(shape) not in (1, 2):
            raise _fail(call, f"signal must have rank 1 or 2, got {len(shape)}")
        if len(shape) == 1 and lanes != 1:
            raise _fail(call, "a rank-1 signal is valid only when one signal lane is required; use [ranks, core_num]")
        if len(shape) == 2:
            stride = const_value(shape[1])
            if stride is None:
                raise _fail(call, "rank-2 signal shape[1] must be constant")
            if stride < lanes:
                raise _fail(call, f"signal shape[1] ({stride}) must be at least the required lane count ({lanes})")
        capacity = const_value(shape[0])
        if capacity is None or count is None:
            return
        if call.op.name == ALL_TO_ALL_V and capacity != count:
            raise _fail(call, f"signal shape[0] ({capacity}) must equal the participating device count ({count})")
        if capacity < count:
            raise _fail(call, f"signal shape[0] ({capacity}) must be at least the participating device count ({count})")

    @staticmethod
    def _check_ring(call: Call, operands: dict[str, Expr], count: int | None, lanes: int) -> None:
        if lanes > 1:
            raise _fail(call, 'mode="ring" does not support core_num > 1')
        if int(call.kwargs.get("op", 0)) != ReduceOp.Sum or operands["src"].type.dtype != DataType.FP32:
            raise _fail(call, 'mode="ring" supports only Sum over FP32')
        size = product(operands["src"].type.shape)
        if size is None:
            raise _fail(call, 'mode="ring" needs a static data shape')
        shape = operands["signal"].type.shape
        if len(shape) != 2:
            raise _fail(call, 'mode="ring" needs a rank-2 signal [2*(NR-1)+1, NR]')
        rows, ranks = const_value(shape[0]), const_value(shape[1])
        known = count if count is not None else ranks
        if known is None:
            return
        if known > _MAX_RING_RANKS:
            raise _fail(call, f'mode="ring" supports {_MAX_RING_RANKS} or fewer ranks, got {known}')
        if size % known:
            raise _fail(call, f"the element count ({size}) must be an exact multiple of the rank count ({known})")
        if ranks is not None and count is not None and ranks != count:
            raise _fail(call, f"signal shape[1] ({ranks}) must equal the rank count ({count})")
        if rows is not None and rows < 2 * (known - 1) + 1:
            raise _fail(call, f"signal shape[0] ({rows}) must be at least 2*(NR-1)+1 = {2 * (known - 1) + 1}")


def _data(call: Call) -> Expr:
    """The operand that the collective's result is."""
    names = COLLECTIVES[call.op.name]
    return call.args[names.index("target") if "target" in names else 0]


def _takes(builtin: str, attr: str) -> bool:
    definition = find_op(builtin)
    return definition is None or attr in definition.attrs


def _direction(builtin: str, index: int) -> ArgDirection:
    definition = find_op(builtin)
    effect = definition.arg_effect(index) if definition is not None else ArgEffect.ReadWrite
    return ArgDirection.Input if effect is ArgEffect.Read else ArgDirection.InOut


@function_pass(
    "LowerHostTensorCollectives",
    required=(P.CommDomainScopesMaterialized,),
    produced=(P.CommDomainScopesMaterialized,),
)
def lower_host_tensor_collectives(function: Function) -> Function:
    """Check the operands of host collectives and dispatch ``builtin.tensor.*`` to every device of their domain."""
    if not is_host(function):
        return function
    if not any(_has_collective(s) for s in iter_stmts(function.body)):
        return function
    return with_body(function, rebuild_lists(function.body, _Lowering(function).edit))


def _has_collective(stmt: Stmt) -> bool:
    if isinstance(stmt, AssignStmt):
        return collective(stmt.value) is not None
    if isinstance(stmt, EvalStmt):
        return collective(stmt.expr) is not None
    return isinstance(stmt, ReturnStmt) and any(collective(v) for v in stmt.value)
