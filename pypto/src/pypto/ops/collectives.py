"""Collectives over the ranks of a communication domain, and the compiler's builtin dispatches of them."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, ReduceOp
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops.distributed import require_window
from pypto.ops.kinds import Attr, Tensor
from pypto.ops.registry import op
from pypto.ops.rules import require

RW, W = ArgEffect.ReadWrite, ArgEffect.Write
_OMITTED: Any = ...
_COLLECTIVE: dict[str, Any] = {"family": "dist_collective"}


def _check_signal(name: str, signal: Any, rows: Any = None) -> None:
    kind = require_window(name, signal, "signal")
    require(kind.dtype == DataType.INT32, f"{name}: signal must have INT32 element type, got {kind.dtype}")
    if rows is None:
        return
    column = len(kind.shape) == 1 or (len(kind.shape) == 2 and S.const(kind.shape[1]) in (1, None))
    require(column, f"{name}: signal must have shape [NR] or [NR, 1], got {S.shape_text(kind.shape)}")
    require(
        not S.provably_different(kind.shape[0], rows),
        f"{name}: signal dim 0 ({S.dim_text(kind.shape[0])}) must equal target dim 0 ({S.dim_text(rows)})",
    )


def _allreduce_front(
    target: Any, signal: Any = _OMITTED, *, op: ReduceOp = ReduceOp.Sum, mode: str = "mesh", core_num: int = 1
) -> tuple:
    name = "pld.tensor.allreduce"
    if signal is None:
        raise TypeError(f"{name}: signal cannot be None; leave it out or pass a window")
    if isinstance(core_num, bool) or not isinstance(core_num, int):
        raise TypeError(f"{name}: core_num must be a compile-time int, got {type(core_num).__name__}")
    require(core_num >= 1, f"{name}: core_num must be positive, got {core_num}")
    if signal is _OMITTED:
        require(mode != "ring", f"{name} in ring mode requires an explicit signal")
    operands = (target,) if signal is _OMITTED else (target, signal)
    return operands, {"op": int(op), "mode": mode, "core_num": core_num}


@op(
    "pld.tensor.allreduce",
    front=_allreduce_front,
    keep=("op", "mode", "core_num"),
    effects={0: RW, 1: RW},
    **_COLLECTIVE,
)
def allreduce(
    target: Tensor,
    signal: Tensor = None,
    *,
    op: Attr[int] = ReduceOp.Sum,
    mode: Attr[str] = "mesh",
    core_num: Attr[int] = 1,
) -> Type:
    """Every rank's target becomes the reduction of all ranks' targets."""
    name = "pld.tensor.allreduce"
    kind = require_window(name, target, "target")
    require(
        kind.dtype in (DataType.FP16, DataType.FP32),
        f"{name}: target dtype must be FP16 or FP32, got {kind.dtype}",
    )
    require(op in tuple(ReduceOp), f"{name}: op must be ReduceOp.Sum, Max, Min, or Prod, got {op}")
    require(core_num >= 1, f"{name}: core_num must be positive, got {core_num}")
    if signal is None:
        require(mode != "ring", f"{name} in ring mode requires an explicit signal")
    else:
        _check_signal(name, signal)
    return kind


@op("pld.tensor.barrier", effects={0: RW}, **_COLLECTIVE)
def barrier(signal: Tensor) -> Type:
    """All ranks arrive before any leaves."""
    _check_signal("pld.tensor.barrier", signal)
    return signal.type


@op("pld.tensor.broadcast", effects={0: RW, 1: RW}, **_COLLECTIVE)
def broadcast(target: Tensor, signal: Tensor, *, root: Attr[int]) -> Type:
    """The root's target on every rank."""
    name = "pld.tensor.broadcast"
    kind = require_window(name, target, "target")
    _check_signal(name, signal)
    require(root >= 0, f"{name}: root rank must be non-negative, got {root}")
    return kind


def _check_matrix(name: str, operand: Any, what: str) -> tuple:
    shape = operand.type.shape
    require(len(shape) == 2, f"{name}: {what} must be 2D, got {S.shape_text(shape)}")
    return shape


@op("pld.tensor.allgather", effects={1: W, 2: RW}, **_COLLECTIVE)
def allgather(local_data: Tensor, target: Tensor, signal: Tensor) -> Type:
    """Row ``r`` of target becomes rank r's row of data."""
    name = "pld.tensor.allgather"
    kind = require_window(name, target, "target")
    require(local_data is not target, f"{name}: local_data and target must be different buffers")
    rows, size = _check_matrix(name, local_data, "local_data")
    target_rows, target_size = _check_matrix(name, target, "target")
    require(S.const(rows) in (1, None), f"{name}: local_data must have one row, got {S.dim_text(rows)}")
    require(
        local_data.type.dtype == kind.dtype,
        f"{name} requires local_data and target of one dtype, but got {local_data.type.dtype} and {kind.dtype}",
    )
    require(not S.provably_different(size, target_size), f"{name}: local_data and target must have rows of one size")
    _check_signal(name, signal, target_rows)
    return kind


@op("pld.tensor.reduce_scatter", keep=("op",), effects={0: RW, 1: RW}, **_COLLECTIVE)
def reduce_scatter(target: Tensor, signal: Tensor, *, op: Attr[int] = ReduceOp.Sum) -> Type:
    """Each rank's own row of target becomes the sum of that row over the ranks."""
    name = "pld.tensor.reduce_scatter"
    kind = require_window(name, target, "target")
    _check_matrix(name, target, "target")
    _check_signal(name, signal)
    require(op == ReduceOp.Sum, f"{name}: op must be ReduceOp.Sum, got {op}")
    return kind


def _check_exchange(name: str, data: Any, target: Any) -> tuple:
    kind = require_window(name, target, "target")
    require(data is not target, f"{name}: input and target must be different buffers")
    shape = _check_matrix(name, data, "input")
    target_shape = _check_matrix(name, target, "target")
    require(
        data.type.dtype == kind.dtype,
        f"{name} requires input and target of one dtype, but got {data.type.dtype} and {kind.dtype}",
    )
    if any(S.provably_different(a, b) for a, b in zip(shape, target_shape)):
        raise ValueError(
            f"{name} requires input and target of one shape, but got {S.shape_text(shape)} and "
            f"{S.shape_text(target_shape)}"
        )
    return target_shape


@op("pld.tensor.all_to_all", effects={1: W, 2: RW}, **_COLLECTIVE)
def all_to_all(input: Tensor, target: Tensor, signal: Tensor) -> Type:
    """Row ``r`` of target becomes the row that rank r holds for this rank."""
    shape = _check_exchange("pld.tensor.all_to_all", input, target)
    _check_signal("pld.tensor.all_to_all", signal, shape[0])
    return target.type


@op("pld.tensor.all_to_all_v", level="extended", effects={1: W, 2: RW, 4: W}, **_COLLECTIVE)
def all_to_all_v(input: Tensor, target: Tensor, signal: Tensor, send_counts: Tensor, recv_counts: Tensor) -> Type:
    """Blocks of up to MAX_RECV rows exchanged between all ranks, with their counts."""
    name = "pld.tensor.all_to_all_v"
    rows = S.const(_check_exchange(name, input, target)[0])
    _check_signal(name, signal)
    shape = signal.type.shape
    require(len(shape) == 2 and S.const(shape[1]) == 1, f"{name}: signal must be 2D with second dimension 1")
    ranks = S.const(shape[0])
    require(
        rows is not None and ranks is not None, f"{name}: target rows and signal rows must be compile-time constants"
    )
    require(ranks > 0 and rows % ranks == 0, f"{name}: signal dim 0 ({ranks}) must divide target dim 0 ({rows})")
    counts = send_counts.type
    require(counts.dtype == DataType.INT32, f"{name}: send_counts must have INT32 element type, got {counts.dtype}")
    vector = len(counts.shape) == 1 or (len(counts.shape) == 2 and S.const(counts.shape[1]) in (1, None))
    require(vector, f"{name}: send_counts must be 1D [NR] or 2D [NR, 1], got {S.shape_text(counts.shape)}")
    require(
        not S.provably_different(counts.shape[0], shape[0]),
        f"{name}: send_counts dim 0 ({S.dim_text(counts.shape[0])}) must equal signal dim 0 ({ranks})",
    )
    received = require_window(name, recv_counts, "recv_counts")
    require(received.dtype == DataType.INT32, f"{name}: recv_counts must have INT32 element type, got {received.dtype}")
    require(
        len(received.shape) == 2 and S.const(received.shape[1]) == 1, f"{name}: recv_counts second dimension must be 1"
    )
    require(
        not S.provably_different(received.shape[0], shape[0]),
        f"{name}: recv_counts dim 0 ({S.dim_text(received.shape[0])}) must equal signal dim 0 ({ranks})",
    )
    return target.type


# --- builtin dispatches ------------------------------------------------------------------------------------------

_BUILTIN: dict[str, Any] = {"family": "dist_builtin", "level": "extended", "internal_only": True, "python_name": ""}


@op("builtin.tensor.allreduce", effects={0: RW, 1: RW}, **_BUILTIN)
def builtin_allreduce(
    src: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None, op: Attr[int] = 0, core_num: Attr[int] = 1
) -> Type:
    """Device dispatch of a mesh allreduce."""
    return src.type


@op("builtin.tensor.allreduce_ring", effects={0: RW, 1: RW}, **_BUILTIN)
def builtin_allreduce_ring(src: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None, op: Attr[int] = 0) -> Type:
    """Device dispatch of a ring allreduce."""
    return src.type


@op("builtin.tensor.barrier", effects={0: RW}, **_BUILTIN)
def builtin_barrier(signal: Tensor) -> Type:
    """Device dispatch of a barrier."""
    return signal.type


@op("builtin.tensor.broadcast", effects={0: RW, 1: RW}, **_BUILTIN)
def builtin_broadcast(target: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None, root: Attr[int] = 0) -> Type:
    """Device dispatch of a broadcast."""
    return target.type


@op("builtin.tensor.allgather", effects={1: W, 2: RW}, **_BUILTIN)
def builtin_allgather(input: Tensor, target: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None) -> Type:
    """Device dispatch of an allgather."""
    return target.type


@op("builtin.tensor.reduce_scatter", effects={0: RW, 1: RW}, **_BUILTIN)
def builtin_reduce_scatter(target: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None, op: Attr[int] = 0) -> Type:
    """Device dispatch of a reduce_scatter."""
    return target.type


@op("builtin.tensor.all_to_all", effects={1: W, 2: RW}, **_BUILTIN)
def builtin_all_to_all(input: Tensor, target: Tensor, signal: Tensor, *, dtype: Attr[DataType] = None) -> Type:
    """Device dispatch of an all_to_all."""
    return target.type


@op("builtin.tensor.all_to_all_v", effects={1: W, 2: RW, 4: W}, **_BUILTIN)
def builtin_all_to_all_v(
    input: Tensor, target: Tensor, signal: Tensor, send_counts: Tensor, recv_counts: Tensor, *,
    dtype: Attr[DataType] = None,
) -> Type:  # fmt: skip
    """Device dispatch of an all_to_all_v."""
    return target.type
