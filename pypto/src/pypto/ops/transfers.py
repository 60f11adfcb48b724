"""Bulk transfers between ranks: put and get, with and without explicit staging tiles."""

from __future__ import annotations

from typing import Any

from pypto.errors import internal_check
from pypto.ir.enums import ArgEffect, AtomicType, MemorySpace, WriteChannel
from pypto.ir.expr import MakeTuple
from pypto.ir.types import TileType, Type
from pypto.ops import shapes as S
from pypto.ops.distributed import i32, require_window
from pypto.ops.kinds import Attr, Handle, Scalar, Shape, Tensor
from pypto.ops.memory_specs import BOTH
from pypto.ops.movement import ATOMIC_DTYPES, atomic_effect
from pypto.ops.registry import op
from pypto.ops.rules import NOTHING, elements, require

_FACTS: dict[str, Any] = {
    "family": "dist_rma",
    "write_channel": WriteChannel.Dma,
    "core_affinity": "vector",
}


def _region(name: str, parts: tuple) -> list:
    """The three region operands, all or none."""
    given = [p for p in parts if p is not None]
    if given and len(given) != len(parts):
        raise ValueError(f"{name}: dst_offsets, src_offsets and shape must be provided together")
    return given


def _atomic_by_position(value: Any, atomic: Any) -> tuple[Any, Any]:
    """The atomic mode may stand right after the operands, where an optional operand would."""
    return (None, value) if isinstance(value, AtomicType) else (value, atomic)


def _chunks(name: str, chunk_rows: Any, chunk_cols: Any, pipeline: bool) -> dict[str, Any]:
    for what, value in (("chunk_rows", chunk_rows), ("chunk_cols", chunk_cols)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}: {what} must be an int (static), got {type(value).__name__}")
        require(value >= 0, f"{name}: {what} must be non-negative, got {value}")
    if pipeline and not (chunk_rows and chunk_cols):
        raise ValueError(f"{name}: pipeline=True requires both chunk_rows>0 and chunk_cols>0")
    named = {"chunk_rows": chunk_rows, "chunk_cols": chunk_cols, "pipeline": bool(pipeline)}
    return {k: v for k, v in named.items() if v}


def _put_front(
    dst: Any, peer: Any, src: Any, dst_offsets: Any = None, src_offsets: Any = None, shape: Any = None, *,
    atomic: AtomicType = AtomicType.None_, chunk_rows: int = 0, chunk_cols: int = 0, pipeline: bool = False,
) -> tuple:  # fmt: skip
    name = "pld.tensor.put"
    dst_offsets, atomic = _atomic_by_position(dst_offsets, atomic)
    region = _region(name, (dst_offsets, src_offsets, shape))
    return (dst, i32(peer), src, *region), {
        "atomic": int(atomic),
        **_chunks(name, chunk_rows, chunk_cols, pipeline),
    }


def _get_front(
    dst: Any, peer: Any, src: Any, dst_offsets: Any = None, src_offsets: Any = None, shape: Any = None, *,
    chunk_rows: int = 0, chunk_cols: int = 0, pipeline: bool = False,
) -> tuple:  # fmt: skip
    name = "pld.tensor.get"
    region = _region(name, (dst_offsets, src_offsets, shape))
    return (dst, i32(peer), src, *region), _chunks(name, chunk_rows, chunk_cols, pipeline)


def _check_sides(name: str, dst: Any, src: Any, remote: Any, peer: Any) -> None:
    require_window(name, remote, "dst" if remote is dst else "src")
    require(peer.type is not None, f"{name}: peer must be a scalar")
    left, right = dst.type, src.type
    require(left.dtype == right.dtype, f"{name} requires one element type, but got {left.dtype} and {right.dtype}")
    require(
        len(left.shape) == len(right.shape),
        f"{name} requires dst and src of one rank, but got {len(left.shape)} and {len(right.shape)}",
    )
    for what, shape in (("dst", left.shape), ("src", right.shape)):
        for dim in shape:
            value = S.const(dim)
            require(
                value is None or value > 0, f"{name}: {what} dimensions must be positive, got {S.shape_text(shape)}"
            )


def _check_extent(name: str, dst: Any, src: Any, dst_offsets: Any, src_offsets: Any, shape: Any) -> tuple:
    """Extent of the transfer."""
    if shape is None:
        if not S.all_equal(dst.type.shape, src.type.shape):
            raise ValueError(
                f"{name}: dst and src must have the same shape (equal static shape or the same dynamic extents) unless "
                f"a region is given, but got "
                f"{S.shape_text(dst.type.shape)} and {S.shape_text(src.type.shape)}"
            )
        return dst.type.shape
    extent = elements(shape)
    rank = len(dst.type.shape)
    require(len(extent) == rank, f"{name}: shape rank {len(extent)} does not match rank {rank}")
    require(
        not any(S.provably_lt(count, 1) for count in extent),
        f"{name}: shape dimensions must be positive, got {S.shape_text(extent)}",
    )
    for what, operand, offsets in (("dst", dst, dst_offsets), ("src", src, src_offsets)):
        start = elements(offsets)
        require(len(start) == rank, f"{name}: {what}_offsets rank {len(start)} does not match rank {rank}")
        for axis, (begin, count, size) in enumerate(zip(start, extent, operand.type.shape)):
            require(not S.provably_negative(begin), f"{name}: {what}_offsets dimension {axis} must be non-negative")
            require(
                not S.past_end(begin, count, size),
                f"{name}: {what} subregion dimension {axis} exceeds {what} shape {S.shape_text(operand.type.shape)}",
            )
    return extent


def _check_chunked(name: str, extent: tuple, chunk_rows: int, chunk_cols: int, pipeline: bool) -> None:
    _chunks(name, chunk_rows, chunk_cols, pipeline)
    if not chunk_rows and any(S.const(d) is None for d in extent[:-1]):
        raise ValueError(f"{name}: a dynamic leading transfer dim needs a static chunk_rows")
    if not chunk_cols and extent and S.const(extent[-1]) is None:
        raise ValueError(f"{name}: a dynamic innermost transfer dim needs a static chunk_cols")


def _check_atomic(name: str, dst: Any, atomic: int) -> None:
    require(atomic in (0, 1), f"{name}: atomic must be AtomicType.None_ (0) or AtomicType.Add (1), got {atomic}")
    require(
        not atomic or dst.type.dtype in ATOMIC_DTYPES,
        f"{name} with atomic add supports the hardware atomic-add dtypes only, not {dst.type.dtype}",
    )


@op(
    "pld.tensor.put", front=_put_front, effects={0: atomic_effect}, converts_to="custom", keep=("atomic",), **_FACTS
)  # fmt: skip
def tensor_put(
    dst: Tensor,
    peer: Scalar,
    src: Tensor,
    dst_offsets: Shape = None,
    src_offsets: Shape = None,
    shape: Shape = None,
    *,
    atomic: Attr[int] = 0,
    chunk_rows: Attr[int] = 0,
    chunk_cols: Attr[int] = 0,
    pipeline: Attr[bool] = False,
) -> Type:
    """Copy a local tensor (or a region of it) into a peer's slice."""
    name = "pld.tensor.put"
    _check_sides(name, dst, src, dst, peer)
    extent = _check_extent(name, dst, src, dst_offsets, src_offsets, shape)
    _check_chunked(name, extent, chunk_rows, chunk_cols, pipeline)
    _check_atomic(name, dst, atomic)
    return NOTHING


@op("pld.tensor.get", front=_get_front, effects={0: ArgEffect.Write}, converts_to="custom", **_FACTS)
def tensor_get(
    dst: Tensor,
    peer: Scalar,
    src: Tensor,
    dst_offsets: Shape = None,
    src_offsets: Shape = None,
    shape: Shape = None,
    *,
    chunk_rows: Attr[int] = 0,
    chunk_cols: Attr[int] = 0,
    pipeline: Attr[bool] = False,
) -> Type:
    """Copy a peer's slice (or a region of it) into a local tensor."""
    name = "pld.tensor.get"
    _check_sides(name, dst, src, src, peer)
    extent = _check_extent(name, dst, src, dst_offsets, src_offsets, shape)
    _check_chunked(name, extent, chunk_rows, chunk_cols, pipeline)
    return NOTHING


# --- explicit staging --------------------------------------------------------------------------------------------


def _is_tuple(value: Any) -> bool:
    """With one stage the region follows it directly, in the place of a second stage."""
    return isinstance(value, (list, tuple, MakeTuple))


def _tile_put_front(
    dst: Any, peer: Any, src: Any, stage: Any, stage2: Any = None, dst_offsets: Any = None, src_offsets: Any = None,
    shape: Any = None, *, atomic: AtomicType = AtomicType.None_,
) -> tuple:  # fmt: skip
    stage2, atomic = _atomic_by_position(stage2, atomic)
    if _is_tuple(stage2):
        stage2, dst_offsets, src_offsets, shape = None, stage2, dst_offsets, src_offsets
    region = _region("pld.tile.put", (dst_offsets, src_offsets, shape))
    stages = [stage] if stage2 is None else [stage, stage2]
    return (dst, i32(peer), src, *stages, *region), {"atomic": int(atomic)}


def _tile_get_front(
    dst: Any, peer: Any, src: Any, stage: Any, stage2: Any = None, dst_offsets: Any = None, src_offsets: Any = None,
    shape: Any = None,
) -> tuple:  # fmt: skip
    if _is_tuple(stage2):
        stage2, dst_offsets, src_offsets, shape = None, stage2, dst_offsets, src_offsets
    region = _region("pld.tile.get", (dst_offsets, src_offsets, shape))
    stages = [stage] if stage2 is None else [stage, stage2]
    return (dst, i32(peer), src, *stages, *region), {}


def _staged(name: str, dst: Any, peer: Any, src: Any, rest: tuple, remote: Any) -> None:
    """Checks of the staged form: one or two tiles, then nothing or the three region operands."""
    _check_sides(name, dst, src, remote, peer)
    stages = [r for r in rest if isinstance(r.type, TileType)]
    region = [r for r in rest if not isinstance(r.type, TileType)]
    require(1 <= len(stages) <= 2 and len(region) in (0, 3), f"{name} takes one or two staging tiles and a region")
    extent = _check_extent(name, dst, src, *(region or (None, None, None)))
    for what, stage in zip(("stage", "stage2"), stages):
        kind = stage.type
        require(
            len(kind.shape) == 2 and kind.memory_space in (MemorySpace.Vec, None),
            f"{name}: {what} must be a 2D VEC staging tile",
        )
        require(kind.dtype == dst.type.dtype, f"{name}: {what} dtype must match dst dtype {dst.type.dtype}")
    if len(stages) == 2 and not S.all_equal(stages[0].type.shape, stages[1].type.shape):
        raise ValueError(f"{name}: ping/pong staging tiles must have identical shape")
    rows, cols = S.product(extent[:-1]), extent[-1] if extent else S.product(())
    fits = not (S.provably_lt(rows, stages[0].type.shape[0]) or S.provably_lt(cols, stages[0].type.shape[1]))
    internal_check(fits, f"{name}: the staging tile must fit within the flattened transfer")


@op("pld.tile.put", level="extended", front=_tile_put_front, effects={0: atomic_effect}, keep=("atomic",),
    backends=BOTH, **_FACTS)  # fmt: skip
def tile_put(dst: Tensor, peer: Scalar, src: Tensor, *rest: Handle, atomic: Attr[int] = 0) -> Type:
    """Put through explicit staging tiles."""
    _staged("pld.tile.put", dst, peer, src, rest, dst)
    _check_atomic("pld.tile.put", dst, atomic)
    return NOTHING


@op("pld.tile.get", level="extended", front=_tile_get_front, effects={0: ArgEffect.Write}, backends=BOTH, **_FACTS)
def tile_get(dst: Tensor, peer: Scalar, src: Tensor, *rest: Handle) -> Type:
    """Get through explicit staging tiles."""
    _staged("pld.tile.get", dst, peer, src, rest, src)
    return NOTHING
