"""Operators between the cube and the vector cores: lane regions, pipes, reserved buffers; block identity."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import const_index
from pypto.ir.types import DistributedTensorType, TileType, Type, scalar_type
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Scalar, Tensor, Tile
from pypto.ops.memory_specs import BOTH
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import NOTHING, fresh_tensor, fresh_tile, require, valid_region
from pypto.ops.scalars import as_datatype

AUTO = -1  #: base of a reserved buffer that the compiler places

# --- lane regions ------------------------------------------------------------------------------------------------


def _lane_front(x: Any, *, split: int | None = None, lane_stride: int | None = None) -> tuple:
    if split is None:
        raise RuntimeError("aiv_shard and aic_gather exist only inside `for lane in pl.split_aiv(...)`")
    return (x,), {"split": int(split), **({} if lane_stride is None else {"lane_stride": lane_stride})}


def _gather_front(x: Any, *, split: int | None = None) -> tuple:
    return _lane_front(x, split=split)


def _check_lane(name: str, operand: Any, split: int) -> None:
    require(split in (0, 1, 2), f"{name}: split must be 0, 1 or 2, got {split}")
    rank = len(operand.type.shape)
    what = "tile" if isinstance(operand.type, TileType) else "tensor"
    require(not split or rank == 2, f"{name} requires a 2D {what}, got rank {rank}. Reshape the operand to 2D first")


def _check_sharded(name: str, operand: Any, split: int) -> None:
    """What a lane boundary can carry: a per-lane row extent, or a static narrowing of the columns, not both."""
    (rows, cols), (valid_rows, valid_cols) = operand.type.shape, valid_region(operand)
    if split == 2:
        odd = S.const(cols) is not None and S.const(cols) % 2
        require(not odd, f"{name} cannot split an odd number of columns ({S.dim_text(cols)})")
        require(
            S.provably_equal(cols, valid_cols),
            f"{name}: LEFT_RIGHT splits the column axis, so all columns must be valid, got {S.dim_text(valid_cols)} of "
            f"{S.dim_text(cols)}",
        )
        return
    if S.provably_equal(cols, valid_cols):
        return
    require(
        S.const(valid_cols) is not None,
        f"{name}: the valid column extent {S.dim_text(valid_cols)} is a runtime value narrower than the physical box",
    )
    require(
        S.provably_equal(rows, valid_rows),
        f"{name}: a per-lane row extent ({S.dim_text(valid_rows)} of {S.dim_text(rows)}) and narrowed columns cannot "
        "cross the boundary together",
    )


def _halved(values: tuple, split: int) -> tuple:
    """The larger half: which lane has it is not known here."""
    out = list(values)
    out[split - 1] = S.ceil_div(out[split - 1], 2)
    return tuple(out)


def _doubled(values: tuple, split: int) -> tuple:
    out = list(values)
    out[split - 1] = S.mul(out[split - 1], 2)
    return tuple(out)


@op(
    "tile.aiv_shard", family="cross_core", level="extended", front=_lane_front, hidden=("split", "lane_stride"),
    memory=MemorySpec((), MemorySpace.Vec), torch=lambda x, split, lane_stride=None, lane=0: (
        x.chunk(2, split - 1)[lane] if split else x
    ),
)  # fmt: skip
def tile_aiv_shard(x: Tile, *, split: Attr[int], lane_stride: Attr[int] = None) -> Type:
    """A cube result handed to the vector lanes: each gets its half of the rows (1) or columns (2), or all (0)."""
    name = "tile.aiv_shard"
    _check_lane(name, x, split)
    shape, valid = x.type.shape, valid_region(x)
    if split:
        _check_sharded(name, x, split)
        shape, valid = _halved(shape, split), _halved(valid, split)
    return fresh_tile(shape, x.type.dtype, valid)


@op(
    "tile.aic_gather", family="cross_core", level="extended", front=_gather_front, hidden=("split",),
    memory=MemorySpec((), MemorySpace.Mat),
)  # fmt: skip
def tile_aic_gather(x: Tile, *, split: Attr[int]) -> Type:
    """Two lane halves rejoined for the cube."""
    _check_lane("tile.aic_gather", x, split)
    shape, valid = x.type.shape, valid_region(x)
    if split:
        shape, valid = _doubled(shape, split), _doubled(valid, split)
    return fresh_tile(shape, x.type.dtype, valid, MemorySpace.Mat)


def _check_lane_tensor(name: str, operand: Any, split: int) -> None:
    require(not isinstance(operand.type, DistributedTensorType), f"{name} requires a plain, non-distributed tensor")
    _check_lane(name, operand, split)


@op(
    "tensor.aiv_shard", family="cross_core", level="extended", front=_gather_front, hidden=("split",),
    converts_to="custom",
)  # fmt: skip
def tensor_aiv_shard(x: Tensor, *, split: Attr[int]) -> Type:
    """A cube result handed to the vector lanes, at tensor level."""
    name = "tensor.aiv_shard"
    _check_lane_tensor(name, x, split)
    shape, valid = x.type.shape, valid_region(x)
    if split:
        _check_sharded(name, x, split)
        shape, valid = _halved(shape, split), _halved(valid, split)
    return fresh_tensor(shape, x.type.dtype, valid)


@op(
    "tensor.aic_gather", family="cross_core", level="extended", front=_gather_front, hidden=("split",),
    converts_to="custom",
)  # fmt: skip
def tensor_aic_gather(x: Tensor, *, split: Attr[int]) -> Type:
    """Two lane halves rejoined for the cube, at tensor level."""
    _check_lane_tensor("tensor.aic_gather", x, split)
    shape, valid = x.type.shape, valid_region(x)
    if split:
        shape, valid = _doubled(shape, split), _doubled(valid, split)
    return fresh_tensor(shape, x.type.dtype, valid)


# --- pipes -------------------------------------------------------------------------------------------------------

_PIPE: dict[str, Any] = {"family": "cross_core", "level": "extended", "backends": BOTH}


def _check_split(name: str, split: int, last: int) -> None:
    require(0 <= split <= last, f"{name} requires split in 0 to {last}, got {split}")


@op("tile.tpush_to_aiv", core_affinity="cube", cross_core_role="TPush", **_PIPE)
def tpush_to_aiv(tile: Tile, *, split: Attr[int], lane_stride: Attr[int] = None, id: Attr[int] = None) -> Type:
    """Push a tile from the cube to the vector cores; blocks while the ring is full."""
    _check_split("tile.tpush_to_aiv", split, 4)
    return NOTHING


@op("tile.tpush_to_aic", core_affinity="vector", cross_core_role="TPush", **_PIPE)
def tpush_to_aic(tile: Tile, *, split: Attr[int], id: Attr[int] = None) -> Type:
    """Push a tile from a vector core to the cube; blocks while the ring is full."""
    _check_split("tile.tpush_to_aic", split, 2)
    return NOTHING


def _popped(shape: Any, dtype: Any, result_type: Any, kwargs: dict[str, Any]) -> tuple:
    """Operands and attributes of a pop; its type comes from ``shape``/``dtype``, ``result_type`` or the annotation."""
    if (shape is None) != (dtype is None):
        raise ValueError("tpop requires shape and dtype together, or neither (the annotation gives the type)")
    attrs = {k: v for k, v in kwargs.items() if v is not None}
    if result_type is not None:
        if shape is not None:
            raise ValueError("tpop takes either result_type or shape and dtype, not both")
        return (), attrs, result_type
    if shape is None:
        return (), attrs
    return (), attrs, fresh_tile(tuple(const_index(d) for d in shape), as_datatype(dtype), (), None)


def _pop_aic_front(
    *, shape: list[int] | None = None, dtype: DataType | None = None, split: int = 0, lane_stride: int | None = None,
    id: int | None = None, result_type: Type | None = None,
) -> tuple:  # fmt: skip
    return _popped(shape, dtype, result_type, {"split": int(split), "lane_stride": lane_stride, "id": id})


def _pop_aiv_front(
    *, shape: list[int] | None = None, dtype: DataType | None = None, split: int = 0, id: int | None = None,
    result_type: Type | None = None,
) -> tuple:  # fmt: skip
    return _popped(shape, dtype, result_type, {"split": int(split), "id": id})


@op(
    "tile.tpop_from_aic", core_affinity="vector", cross_core_role="TPop", front=_pop_aic_front, keep=("split",),
    hidden=("result_type",), **_PIPE
)  # fmt: skip
def tpop_from_aic(*, split: Attr[int] = 0, lane_stride: Attr[int] = None, id: Attr[int] = None) -> Type:
    """The next tile the cube pushed; blocks while the ring is empty. The caller states the type."""
    _check_split("tile.tpop_from_aic", split, 4)
    return NOTHING


@op(
    "tile.tpop_from_aiv", core_affinity="cube", cross_core_role="TPop", front=_pop_aiv_front, keep=("split",),
    hidden=("result_type",), **_PIPE
)  # fmt: skip
def tpop_from_aiv(*, split: Attr[int] = 0, id: Attr[int] = None) -> Type:
    """The next tile the vector cores pushed; blocks while the ring is empty. The caller states the type."""
    _check_split("tile.tpop_from_aiv", split, 2)
    return NOTHING


@op("system.tfree_to_aic", core_affinity="vector", cross_core_role="TFree", **_PIPE)
def tfree_to_aic(tile: Tile, *, split: Attr[int] = None, id: Attr[int] = None) -> Type:
    """Release the ring slot of a tile popped from the cube."""
    return NOTHING


@op("system.tfree_to_aiv", core_affinity="cube", cross_core_role="TFree", **_PIPE)
def tfree_to_aiv(tile: Tile, *, split: Attr[int] = None, id: Attr[int] = None) -> Type:
    """Release the ring slot of a tile popped from the vector cores."""
    return NOTHING


def _initialize_pipe(name: str, side: str) -> None:
    def front(
        c2v_consumer_buf: Any = 0,
        v2c_consumer_buf: Any = 0,
        *,
        dir_mask: int,
        slot_size: int,
        slot_num: int | None = None,
        local_slot_num: int | None = None,
        id: int | None = None,
    ) -> tuple:
        named = {"dir_mask": dir_mask, "slot_size": slot_size, "slot_num": slot_num, "local_slot_num": local_slot_num}
        kwargs = {k: v for k, v in {**named, "id": id}.items() if v is not None}
        return (_buffer(c2v_consumer_buf), _buffer(v2c_consumer_buf)), kwargs

    def rule(
        c2v_consumer_buf: Scalar,
        v2c_consumer_buf: Scalar,
        *,
        dir_mask: Attr[int],
        slot_size: Attr[int],
        slot_num: Attr[int] = None,
        local_slot_num: Attr[int] = None,
        id: Attr[int] = None,
    ) -> Type:
        require(dir_mask in (1, 2, 3), f"{name} requires dir_mask 1 (C2V), 2 (V2C) or 3 (both), got {dir_mask}")
        require(slot_size > 0, f"{name} requires slot_size > 0, got {slot_size}")
        require(slot_num is None or slot_num > 0, f"{name} requires slot_num > 0, got {slot_num}")
        if local_slot_num is not None:
            limit = 8 if slot_num is None else slot_num
            require(
                0 < local_slot_num <= limit, f"{name} requires 0 < local_slot_num <= slot_num, got {local_slot_num}"
            )
        return NOTHING

    rule.__doc__ = f"Declare the {side} side of the pipe between the cube and its vector cores."
    affinity = "cube" if side == "cube" else "vector"
    op(name, front=front, core_affinity=affinity, cross_core_role="InitializePipe", **_PIPE)(rule)


def _buffer(value: Any) -> Any:
    """An inactive direction is written as 0: an INT32 constant."""
    from pypto.ir.expr import ConstInt

    return ConstInt(value, DataType.INT32) if isinstance(value, int) else value


_initialize_pipe("system.aic_initialize_pipe", "cube")
_initialize_pipe("system.aiv_initialize_pipe", "vector")


@op("system.reserve_buffer", keep=("base",), **_PIPE)
def reserve_buffer(*, name: Attr[str], size: Attr[int], base: Attr[int] = AUTO) -> Type:
    """A named local ring buffer on the consumer side; the value is its address."""
    require(bool(name), "system.reserve_buffer requires a name")
    require(size > 0, f"system.reserve_buffer requires size > 0, got {size}")
    return scalar_type(DataType.INT32)


@op("system.import_peer_buffer", **_PIPE)
def import_peer_buffer(*, name: Attr[str], peer_func: Attr[str]) -> Type:
    """The address of a buffer that the peer function reserved."""
    require(bool(name) and bool(peer_func), "system.import_peer_buffer requires name and peer_func")
    return scalar_type(DataType.INT32)


# --- identity ----------------------------------------------------------------------------------------------------


def _identity(leaf: str, affinity: str, doc: str) -> None:
    def tile_rule() -> Type:
        return scalar_type(DataType.INDEX)

    def tensor_rule() -> Type:
        return scalar_type(DataType.INDEX)

    tile_rule.__doc__ = tensor_rule.__doc__ = doc
    op(f"tile.{leaf}", family="block_identity", core_affinity=affinity, backends=BOTH)(tile_rule)
    op(f"tensor.{leaf}", family="block_identity", converts_to=f"tile.{leaf}")(tensor_rule)


_identity("get_block_idx", "shared", "Index of this block in the grid of the task.")
_identity("get_block_num", "shared", "Number of blocks of the task.")
_identity("get_subblock_idx", "vector", "Vector lane (0 or 1) within the cluster.")
