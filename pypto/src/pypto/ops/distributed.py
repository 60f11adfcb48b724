"""Window memory and one-sided operators between ranks: queries, windows, remote access, signals."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    ArgEffect,
    AtomicType,
    MemorySpace,
    NotifyOp,
    TensorLayout,
    TileLayout,
    WaitCmp,
    WriteChannel,
)
from pypto.ir.expr import ConstInt, Expr, MakeTuple, as_expr
from pypto.ir.scalar_ops import cast, mul
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import (
    CommCtxType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    Type,
    scalar_type,
)
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Handle, MemRefOperand, Scalar, Shape, Tensor, Tuple
from pypto.ops.memory_specs import BOTH
from pypto.ops.movement import ATOMIC_DTYPES, MX_LAYOUTS, atomic_effect, tensor_layout
from pypto.ops.regions import check_offsets, check_requested, window_region
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import NOTHING, elements, fresh_tile, require, valid_region
from pypto.ops.scalars import as_datatype


def require_window(name: str, operand: Any, what: str) -> DistributedTensorType:
    """The type of a window-bound operand.

    Raises:
        ValueError: a plain tensor.
    """
    kind = operand.type
    require(
        isinstance(kind, DistributedTensorType),
        f"{name} requires {what} to be a window-bound DistributedTensor, but got {type(kind).__name__}",
    )
    return kind


def i32(value: Any) -> Expr:
    """Python ints as INT32 constants; expressions are kept."""
    if isinstance(value, int) and not isinstance(value, bool):
        return ConstInt(value, DataType.INT32, UNKNOWN_SPAN)
    expr = as_expr(value)
    index = isinstance(expr, ConstInt) and expr.dtype == DataType.INDEX
    return ConstInt(expr.value, DataType.INT32, expr.span) if index else expr


def _require_scalar(name: str, operand: Any, what: str) -> None:
    require(isinstance(operand.type, ScalarType), f"{name}: {what} must be a scalar")


def _require_tuple(name: str, operand: Any, rank: int, what: str) -> tuple[Expr, ...]:
    require(isinstance(operand, MakeTuple), f"{name}: {what} must be a tuple")
    members = elements(operand)
    require(len(members) == rank, f"{name}: {what} rank {len(members)} does not match the rank {rank} of the tensor")
    return members


# --- queries -----------------------------------------------------------------------------------------------------

_SYSTEM: dict[str, Any] = {"family": "dist_system"}


@op("pld.system.world_size", no_kwargs=True, **_SYSTEM)
def world_size() -> Type:
    """Number of ranks of the job; host orchestrator only."""
    return scalar_type(DataType.INT64)


@op("pld.system.get_comm_ctx", no_kwargs=True, backends=BOTH, **_SYSTEM)
def get_comm_ctx(dist_tensor: Tensor) -> Type:
    """The communication context of a window."""
    require_window("pld.system.get_comm_ctx", dist_tensor, "its argument")
    return CommCtxType.get()


def _context_query(leaf: str, doc: str) -> None:
    name = f"pld.system.{leaf}"

    def rule(ctx: Handle) -> Type:
        require(
            isinstance(ctx.type, CommCtxType), f"{name} requires a CommCtx argument, but got {type(ctx.type).__name__}"
        )
        return scalar_type(DataType.INT32)

    rule.__doc__ = doc
    op(name, backends=BOTH, **_SYSTEM)(rule)


_context_query("rank", "This rank of the communication group.")
_context_query("nranks", "Ranks of the communication group.")


# --- signals -----------------------------------------------------------------------------------------------------


def _notify_front(target: Any, peer: Any, offsets: Any, value: Any, *, op: NotifyOp) -> tuple:
    return (target, i32(peer), offsets, i32(value)), {"op": int(op)}


def _notify_effect(kwargs: dict) -> ArgEffect:
    return ArgEffect.Write if kwargs.get("op", 0) == NotifyOp.Set else ArgEffect.ReadWrite


@op(
    "pld.system.notify",
    front=_notify_front,
    keep=("op",),
    effects={0: _notify_effect},
    no_duplicate=True,
    backends=BOTH,
    **_SYSTEM,
)
def notify(target: Tensor, peer: Scalar, offsets: Shape, value: Scalar, *, op: Attr[int] = NotifyOp.AtomicAdd) -> Type:
    """Add to, or set, a signal cell at a peer."""
    name = "pld.system.notify"
    kind = require_window(name, target, "target")
    _require_scalar(name, peer, "peer")
    _require_scalar(name, value, "value")
    _require_tuple(name, offsets, len(kind.shape), "offsets")
    require(op in tuple(NotifyOp), f"{name}: op must be NotifyOp.AtomicAdd (0) or NotifyOp.Set (1), got {op}")
    return NOTHING


def _wait_front(signal: Any, offsets: Any, expected: Any, *, cmp: WaitCmp) -> tuple:
    return (signal, offsets, i32(expected)), {"cmp": int(cmp)}


@op("pld.system.wait", front=_wait_front, effects={}, positional_attrs=True, backends=BOTH, **_SYSTEM)
def wait(signal: Tensor, offsets: Shape, expected: Scalar, *, cmp: Attr[int]) -> Type:
    """Block until the rank's own signal cell compares true with a value."""
    name = "pld.system.wait"
    kind = require_window(name, signal, "signal")
    _require_tuple(name, offsets, len(kind.shape), "offsets")
    _require_scalar(name, expected, "expected")
    require(cmp in tuple(WaitCmp), f"{name}: cmp must be WaitCmp.Eq (0) or WaitCmp.Ge (1), got {cmp}")
    return NOTHING


@op(
    "pld.system.defer_wait", level="extended", front=_wait_front, effects={}, positional_attrs=True, backends=BOTH,
    **_SYSTEM,
)  # fmt: skip
def defer_wait(signal: Tensor, offsets: Tuple, expected: Scalar, *, cmp: Attr[int]) -> Type:
    """Make a signal cell a completion condition of the enclosing task."""
    name = "pld.system.defer_wait"
    kind = require_window(name, signal, "signal")
    require(len(kind.shape) >= 1, f"{name}: signal rank must be at least 1")
    require(kind.dtype == DataType.INT32, f"{name}: signal dtype must be INT32, got {kind.dtype}")
    require(tensor_layout(signal) in (TensorLayout.ND, TensorLayout.DN), f"{name}: signal layout must be ND or DN")
    require(cmp == WaitCmp.Ge, f"{name} only supports WaitCmp.Ge")
    for axis, member in enumerate(_require_tuple(name, offsets, len(kind.shape), "offsets")):
        integer = isinstance(member.type, ScalarType) and member.type.dtype.is_int()
        require(integer, f"{name}: offset {axis} must be an integer or index scalar")
    integer = isinstance(expected.type, ScalarType) and expected.type.dtype.is_int()
    require(integer, f"{name}: expected must be an integer or index scalar")
    value = S.const(expected)
    require(value is None or 0 <= value < 2**31, f"{name}: expected must be in [0, INT32_MAX], got {value}")
    return NOTHING


# --- windows -----------------------------------------------------------------------------------------------------

_RMA: dict[str, Any] = {"family": "dist_rma"}


def _alloc_front(size: Any, *, dtype: Any = None, name: str = "") -> tuple:
    if not name:
        raise ValueError("pld.tensor.alloc_window_buffer must appear as the RHS of a simple assignment")
    sequence = isinstance(size, (list, tuple, MakeTuple))
    if sequence and dtype is None:
        raise ValueError("pld.tensor.alloc_window_buffer of a shape requires dtype=")
    if not sequence:
        if dtype is not None:
            raise ValueError("pld.tensor.alloc_window_buffer: dtype= is only valid when the first argument is a shape")
        return (_bytes([size], 1),), {"name": name}
    members = list(size.elements) if isinstance(size, MakeTuple) else list(size)
    if not members:
        raise ValueError("pld.tensor.alloc_window_buffer: shape must be non-empty")
    return (_bytes(members, as_datatype(dtype).get_byte()),), {"name": name}


def _bytes(dims: list, width: int) -> Expr:
    """Product of extents and element width: one INT64 constant, or a chain of INT64 products."""
    exprs = []
    for dim in dims:
        if isinstance(dim, (bool, float)):
            raise TypeError(f"pld.tensor.alloc_window_buffer: sizes must be integers, got {dim}")
        exprs.append(ConstInt(dim, DataType.INT64) if isinstance(dim, int) else as_expr(dim))
    for expr in exprs:
        require(
            isinstance(expr.type, ScalarType) and expr.type.dtype.is_int(),
            "pld.tensor.alloc_window_buffer: sizes must be integer scalars",
        )
        require(
            S.const(expr) is None or S.const(expr) > 0,
            "pld.tensor.alloc_window_buffer: all dimensions must be positive",
        )
    static = 1
    dynamic: Expr | None = None
    for expr in exprs:
        value = S.const(expr)
        if value is not None:
            static *= value
            continue
        wide = expr if expr.type.dtype in (DataType.INT64, DataType.INDEX) else cast(expr, DataType.INT64, UNKNOWN_SPAN)
        dynamic = wide if dynamic is None else mul(dynamic, wide, UNKNOWN_SPAN)
    constant = ConstInt(static * width, DataType.INT64)
    if dynamic is None:
        return constant
    return dynamic if constant.value == 1 else mul(dynamic, constant, UNKNOWN_SPAN)


@op("pld.tensor.alloc_window_buffer", front=_alloc_front, **_RMA)
def alloc_window_buffer(size: Scalar, *, name: Attr[str]) -> Type:
    """A window of ``size`` bytes on every rank; host orchestrator only."""
    require(bool(name), "pld.tensor.alloc_window_buffer requires a non-empty 'name'")
    return PtrType.get()


@op("pld.tensor.window", **_RMA)
def window(buf: MemRefOperand, shape: Shape, *, dtype: Attr[DataType]) -> Type:
    """A typed view of a window: the local slice of a rank."""
    require(
        isinstance(buf.type, PtrType),
        f"pld.tensor.window requires buf to be a Ptr handle, but got {type(buf.type).__name__}",
    )
    require(isinstance(shape, MakeTuple), "pld.tensor.window requires a shape tuple")
    return DistributedTensorType(elements(shape), dtype)


# --- remote tiles ------------------------------------------------------------------------------------------------


def _remote_load_front(target: Any, peer: Any, offsets: Any, shape: Any, valid_shape: Any = None) -> tuple:
    return (target, i32(peer), offsets, shape, *([] if valid_shape is None else [valid_shape])), {}


@op("pld.tile.remote_load", front=_remote_load_front, effects={}, backends=BOTH, **_RMA)
def remote_load(
    target: Tensor,
    peer: Scalar,
    offsets: Shape,
    shape: Shape,
    valid_shape: Shape = None,
    *,
    allow_physical_tail_padding: Attr[bool] = False,
) -> Type:
    """Copy a window of a peer's slice into a tile."""
    name = "pld.tile.remote_load"
    kind = require_window(name, target, "target")
    _require_scalar(name, peer, "peer")
    rank = len(kind.shape)
    start = _require_tuple(name, offsets, rank, "offsets")
    extent = _require_tuple(name, shape, rank, "shape")
    requested = extent if valid_shape is None else _require_tuple(name, valid_shape, rank, "valid_shape")
    require(tensor_layout(target) not in MX_LAYOUTS, f"{name} does not support MX-layout tensors")
    for axis, value in enumerate(requested):
        integer = isinstance(value.type, ScalarType) and value.type.dtype.is_int()
        require(integer, f"{name}: valid_shape {axis} must be an integer scalar")
        require(not S.provably_negative(value), f"{name}: valid_shape {axis} is provably negative")
    check_requested(name, requested, extent)
    check_offsets(name, start)
    if not allow_physical_tail_padding:
        for axis, (size, begin, count) in enumerate(zip(kind.shape, start, requested)):
            if S.past_end(begin, count, size):
                raise ValueError(
                    f"{name} reads past the end of dimension {axis}: offset {S.dim_text(begin)} + extent "
                    f"{S.dim_text(count)} exceeds {S.dim_text(size)}"
                )
    region = window_region(kind.shape, valid_region(target), start, extent, requested)
    explicit_nd = kind.tensor_view is not None and kind.tensor_view.layout is TensorLayout.ND
    layout = (TileLayout.row_major, TileLayout.none_box, 512) if explicit_nd else None
    return fresh_tile(extent, kind.dtype, region, layout=layout)


def _remote_store_front(src_tile: Any, target: Any, peer: Any, offsets: Any, *, atomic: AtomicType = AtomicType.None_):
    return (src_tile, target, i32(peer), offsets), ({"atomic": int(atomic)} if atomic else {})


def _tensor_remote_store_front(src: Any, target: Any, peer: Any, offsets: Any, *, atomic: Any = AtomicType.None_):
    return (src, target, i32(peer), offsets), ({"atomic": int(atomic)} if atomic else {})


def _check_push(name: str, src: Any, target: Any, peer: Any, offsets: Any, atomic: int) -> None:
    kind = require_window(name, target, "target")
    rank, extent = len(kind.shape), src.type.shape
    require(
        src.type.dtype == kind.dtype,
        f"{name} requires src and target of one dtype, but got {src.type.dtype} and {kind.dtype}",
    )
    require(rank >= 2, f"{name}: target rank must be >= 2, got {rank}")
    _require_scalar(name, peer, "peer")
    start = _require_tuple(name, offsets, rank, "offsets")
    require(len(extent) >= 2, f"{name}: src must be at least 2-D, got {S.shape_text(extent)}")
    for axis, dim in enumerate(extent[:-2]):
        require(S.const(dim) == 1, f"{name}: src leading dimension {axis} must be 1, got {S.dim_text(dim)}")
    require(atomic in (0, 1), f"{name}: atomic must be AtomicType.None_ (0) or AtomicType.Add (1), got {atomic}")
    if atomic:
        require(
            kind.dtype in ATOMIC_DTYPES,
            f"{name} with atomic add requires an fp32/bf16/fp16/int32/int16/int8 dtype, but got {kind.dtype}",
        )
    check_offsets(name, start)
    pushed = (*(S.product(()) for _ in range(rank - 2)), *valid_region(src)[-2:])
    for axis, count in enumerate(pushed):
        if S.past_end(start[axis], count, kind.shape[axis]):
            raise ValueError(
                f"{name}: push exceeds the peer's target region in dimension {axis}: offset {S.dim_text(start[axis])} "
                f"+ extent {S.dim_text(count)} exceeds {S.dim_text(kind.shape[axis])}"
            )


@op(
    "pld.tile.remote_store", front=_remote_store_front, effects={1: atomic_effect}, write_channel=WriteChannel.Dma,
    memory=MemorySpec(((MemorySpace.Vec, MemorySpace.Acc),), None), backends=BOTH, **_RMA,
)  # fmt: skip
def tile_remote_store(src_tile: Handle, target: Tensor, peer: Scalar, offsets: Shape, *, atomic: Attr[int] = 0) -> Type:
    """Copy a tile into a peer's slice."""
    name = "pld.tile.remote_store"
    require(
        isinstance(src_tile.type, TileType),
        f"{name}: src_tile must be a TileType, but got {type(src_tile.type).__name__}; a tensor is pushed with "
        "pld.tensor.remote_store",
    )
    _check_push(name, src_tile, target, peer, offsets, atomic)
    return NOTHING


@op(
    "pld.tensor.remote_store", front=_tensor_remote_store_front, effects={1: atomic_effect},
    write_channel=WriteChannel.Dma, converts_to="pld.tile.remote_store", **_RMA,
)  # fmt: skip
def tensor_remote_store(src: Handle, target: Tensor, peer: Scalar, offsets: Shape, *, atomic: Attr[int] = 0) -> Type:
    """Copy a computed tensor into a peer's slice."""
    name = "pld.tensor.remote_store"
    kind = src.type
    require(not isinstance(kind, TileType), f"{name}: a Tile is pushed with pld.tile.remote_store")
    require(not isinstance(kind, DistributedTensorType), f"{name}: a window is pushed with pld.tensor.put")
    require(isinstance(kind, TensorType), f"{name}: src must be a TensorType, but got {type(kind).__name__}")
    _check_push(name, src, target, peer, offsets, atomic)
    return NOTHING
