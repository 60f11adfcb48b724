"""Moving data: load, store, move, extract, assemble, concat, element access, padding."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    ArgEffect,
    AtomicType,
    CompactMode,
    MemorySpace,
    PadValue,
    TensorLayout,
    TileLayout,
    WriteChannel,
)
from pypto.ir.node import make, replace
from pypto.ir.types import ScalarType, TensorType, TensorView, TileType, Type, implicit_layout, scalar_type
from pypto.ops import regions as R
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Element, Indices, Scalar, Shape, Tensor, Tile
from pypto.ops.memory_specs import BOTH, DEFERRED, INHERIT, VEC, vec
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import (
    elements,
    fresh_tensor,
    fresh_tile,
    require,
    require_dtype,
    require_rank,
    require_same_dtype,
    static_shape,
    valid_region,
)

ATOMIC_DTYPES = (
    DataType.FP32, DataType.BF16, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8,
)  # fmt: skip
MX_LAYOUTS = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
FP4_FAMILY = (DataType.FP4,)  #: two elements share a byte
MX_SCALE_DTYPES = (DataType.FP8E8M0, DataType.UINT8)
_SCALES = (MemorySpace.LeftScale, MemorySpace.RightScale)


def tensor_layout(tensor: Any) -> TensorLayout:
    """Layout tag of a tensor operand."""
    view = tensor.type.tensor_view
    return view.layout if view is not None else TensorLayout.ND


def atomic_effect(kwargs: dict) -> ArgEffect:
    """Write, or ReadWrite for an atomic accumulation."""
    return ArgEffect.ReadWrite if kwargs.get("atomic", 0) == AtomicType.Add else ArgEffect.Write


def check_atomic(name: str, atomic: int, dtype: DataType) -> None:
    """Reject an unknown atomic code, and Add on an element type without it."""
    require(atomic in (AtomicType.None_, AtomicType.Add), f"{name}: atomic must be None_ (0) or Add (1), got {atomic}")
    if atomic == AtomicType.Add:
        require_dtype(name, dtype, ATOMIC_DTYPES, "the element type of an atomic add")


def box(offset: Any, extent: Any) -> tuple:
    """Index of a window in a torch tensor."""
    return tuple(slice(int(o), int(o) + int(e)) for o, e in zip(offset, extent))


def check_whole_bytes(name: str, dtype: DataType, start: Any) -> None:
    """Reject a window of packed FP4 elements that starts at the second nibble of a byte."""
    column = S.const(start[-1]) if start and dtype in FP4_FAMILY else None
    require(
        not (column and column % 2), f"{name}: a window of packed FP4 must start at a whole byte, got column {column}"
    )


# --- load and store ----------------------------------------------------------------------------------------------


def _load_front(
    tensor: Any,
    offsets: Any,
    shapes: Any,
    valid_shape: Any = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
) -> tuple:
    kwargs: dict[str, Any] = {"target_memory": target_memory}
    if clamp:
        kwargs["clamp"] = True
    return (tensor, offsets, shapes, shapes if valid_shape is None else valid_shape), kwargs


def _load_value(tensor: Any, offsets: Any, shapes: Any, valid_shape: Any, **_: Any) -> Any:
    import torch

    out = torch.zeros(tuple(shapes), dtype=tensor.dtype)
    seen = tensor[box(offsets, valid_shape)]
    out[box([0] * seen.dim(), seen.shape)] = seen
    return out


@op(
    "tile.load", family="memory", front=_load_front, memory=DEFERRED, keep=("target_memory",), retargetable=True,
    backends=BOTH, torch=_load_value,
)  # fmt: skip
def tile_load(
    tensor: Tensor,
    offsets: Shape,
    shapes: Shape,
    valid_shape: Shape,
    target_memory: Attr[MemorySpace] = None,
    clamp: Attr[bool] = False,
) -> Type:
    """Copy a window of a global tensor into a Vec or Mat tile; nothing outside the valid region is read."""
    name = "tile.load"
    source, window = tensor.type, elements(shapes)
    offset, requested = elements(offsets), elements(valid_shape)
    require(
        target_memory in (MemorySpace.Vec, MemorySpace.Mat, None),
        f"{name} supports target_memory Vec or Mat, got {getattr(target_memory, 'name', None)}",
    )
    layout = _mx_tile_layout(name, tensor, window, target_memory)
    R.check_same_rank(name, tensor=source.shape, offsets=offset, shapes=window, valid_shape=requested)
    R.check_requested(name, requested, window)
    check_whole_bytes(name, source.dtype, offset)
    R.check_window(
        name, source.shape, offset, requested, clamp=clamp, remedy="; pass clamp=True to cut the window at the edge"
    )
    valid = R.window_region(source.shape, valid_region(tensor), offset, window, requested, clamp=clamp)
    pad = source.tensor_view.pad if source.tensor_view is not None else PadValue.null
    return fresh_tile(window, source.dtype, valid, target_memory, pad, layout)


def _mx_tile_layout(name: str, tensor: Any, window: Any, target_memory: MemorySpace | None) -> tuple | None:
    """Layout of the tile of an MX scale tensor, None for other tensors."""
    if tensor_layout(tensor) not in MX_LAYOUTS:
        return None
    require_dtype(name, tensor.type.dtype, MX_SCALE_DTYPES, "the element type of an MX scale tensor")
    require(len(window) == 2, f"{name} of an MX scale tensor requires a 2D load window")
    shape, stride = tensor.type.shape, tensor.type.tensor_view.stride
    packed = len(shape) == 2 and (not stride or S.all_equal(stride, (shape[1], S.product(()))))
    require(packed, f"{name} requires a packed 2D MX scale tensor")
    given = "explicit " if target_memory is not None else ""
    require(
        target_memory is MemorySpace.Mat,
        f"{name} of an MX scale tensor requires {given}target_memory=MemorySpace.Mat",
    )
    side = MemorySpace.LeftScale if tensor_layout(tensor) is TensorLayout.MX_A_ZZ else MemorySpace.RightScale
    return _HARDWARE_LAYOUTS[side]


def _store_front(
    tile: Any, offsets: Any, output_tensor: Any, shapes: Any = None, *, atomic: AtomicType = AtomicType.None_
) -> tuple:
    operands = (tile, offsets, output_tensor) if shapes is None else (tile, offsets, output_tensor, shapes)
    return operands, ({"atomic": int(atomic)} if atomic else {})


def _store_value(tile: Any, offsets: Any, output_tensor: Any, shapes: Any = None, atomic: int = 0) -> Any:
    out = output_tensor.clone()
    value = tile if shapes is None else tile.reshape(tuple(shapes))
    while value.dim() > out.dim():
        value = value.squeeze(0)
    while value.dim() < out.dim():
        value = value.unsqueeze(0)
    region = box(offsets, value.shape)
    out[region] = out[region] + value.to(out.dtype) if atomic else value.to(out.dtype)
    return out


@op(
    "tile.store", family="memory", front=_store_front, effects={2: atomic_effect}, write_channel=WriteChannel.Dma,
    memory=MemorySpec(((MemorySpace.Vec, MemorySpace.Acc),), None), result_is_arg=2, backends=BOTH, torch=_store_value,
)  # fmt: skip
def tile_store(
    tile: Tile, offsets: Shape, output_tensor: Tensor, shapes: Shape = None, *, atomic: Attr[int] = 0
) -> Type:
    """Copy the valid region of a tile into a global tensor; the result is the updated tensor.

    A tile of lower rank re-reads the storage of the tensor, so its extent is not compared.
    """
    name = "tile.store"
    target, offset = output_tensor.type, elements(offsets)
    require(
        len(offset) == len(target.shape),
        f"{name} requires offsets to have the rank {len(target.shape)} of the tensor, got {len(offset)}",
    )
    check_atomic(name, atomic, target.dtype)
    extent = _store_extent(name, tile, target.shape, shapes)
    if extent is None:
        R.check_offsets(name, offset)
        return target
    region = R.write_region(name, target.shape, valid_region(output_tensor), offset, extent)
    return with_tensor_region(target, region)


def _store_extent(name: str, tile: Any, target_shape: Any, shapes: Any) -> tuple | None:
    """Extent of the transfer in tensor coordinates, None when it cannot be told from the types."""
    if shapes is not None:
        extent = elements(shapes)
        require(len(extent) == len(target_shape), f"{name} requires shapes to have the rank of the tensor")
        return extent
    valid, rank = valid_region(tile), len(target_shape)
    if len(valid) == rank:
        return valid
    extra = len(valid) - rank
    if extra > 0 and all(S.const(v) == 1 for v in valid[:extra]):
        return tuple(valid[extra:])
    return None


def with_tensor_region(target: TensorType, region: Any) -> TensorType:
    """The type of a tensor with another valid region; everything else is kept."""
    if S.all_equal(region, target.valid_shape):
        return target
    view = target.tensor_view or make(TensorView, (), TensorLayout.ND, (), PadValue.null)
    valid = () if S.all_equal(region, target.shape) else tuple(region)
    return replace(target, tensor_view=replace(view, valid_shape=valid))


# --- on-chip movement --------------------------------------------------------------------------------------------

_HARDWARE_LAYOUTS = {
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major, 512),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major, 1024),
    MemorySpace.LeftScale: (TileLayout.row_major, TileLayout.row_major, 32),
    MemorySpace.RightScale: (TileLayout.col_major, TileLayout.col_major, 32),
}


@op(
    "tile.move", family="memory", memory=MemorySpec((), MemorySpace.Vec), inplace_safe=False, backends=BOTH,
    pto="pto.tmov", torch=lambda x, **_: x.clone(),
)  # fmt: skip
def tile_move(
    tile: Tile,
    target_memory: Attr[MemorySpace],
    blayout: Attr[TileLayout] = None,
    slayout: Attr[TileLayout] = None,
) -> Type:
    """Copy a tile to another on-chip memory space.

    The cube spaces impose their layout, Vec and Bias keep the block layout of the source; strides and the start
    offset are dropped, the valid region and the pad policy are kept.
    """
    name = "tile.move"
    source = tile.type
    view = source.get_effective_tile_view()
    if target_memory in _SCALES:
        _check_scale_move(name, source, view, target_memory, blayout is not None or slayout is not None)
    layout = _HARDWARE_LAYOUTS.get(target_memory, (view.blayout, view.slayout, 512))
    layout = (blayout or layout[0], slayout or layout[1], layout[2])
    dtype = DataType.FP8E8M0 if target_memory in _SCALES else source.dtype
    return fresh_tile(source.shape, dtype, valid_region(tile), target_memory, view.pad, layout)


def _check_scale_move(name: str, source: TileType, view: Any, target: MemorySpace, overridden: bool) -> None:
    require(not overridden, f"{name} to {target.name} has a hardware-fixed layout; drop blayout and slayout")
    require(len(source.shape) == 2, f"{name} to {target.name} requires a 2D tile")
    require(source.memory_space in (MemorySpace.Mat, None), f"{name} to {target.name} requires a source in Mat memory")
    require_dtype(name, source.dtype, MX_SCALE_DTYPES, "the element type of a scale tile")
    wanted = _HARDWARE_LAYOUTS[target]
    if (view.blayout, view.slayout, view.fractal) != wanted:
        side = "row/row/32" if target is MemorySpace.LeftScale else "col/col/32"
        raise ValueError(f"{name} to {target.name} requires a source with the matching {side} layout")


_EXTRACT_LAYOUTS = {
    MemorySpace.Left: (TileLayout.row_major, TileLayout.row_major, 512),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major, 512),
}


def _extract_front(src: Any, index_row: Any, index_col: Any, shape: Any, *, target_memory: MemorySpace) -> tuple:
    return (src, index_row, index_col, shape), {"target_memory": target_memory}


def _extract_value(src: Any, index_row: Any, index_col: Any, shape: Any, **_: Any) -> Any:
    return src[box((index_row, index_col), shape)].clone()


@op(
    "tile.extract", family="memory", level="extended", front=_extract_front, inplace_safe=False, backends=BOTH,
    memory=MemorySpec((), MemorySpace.Vec), pto="pto.textract", keep=("target_memory",),
    pto_operands=lambda call: list(call.args[:3]), torch=_extract_value,
)  # fmt: skip
def tile_extract(
    src: Tile,
    index_row: Scalar,
    index_col: Scalar,
    shape: Shape,
    *,
    target_memory: Attr[MemorySpace] = MemorySpace.Vec,
) -> Type:
    """Copy a 2-D window of a tile to another on-chip memory space."""
    name = "tile.extract"
    require_rank(name, src, 2, "src")
    require(len(static_shape(name, shape)) == 2, f"{name} requires a 2D shape")
    window, offset = elements(shape), (index_row, index_col)
    for what, start, count, size in zip(("row", "col"), offset, window, src.type.shape):
        kind = start.type.dtype
        require(
            kind in (DataType.INDEX, DataType.INT64, DataType.UINT64),
            f"{name} requires index_{what} to be an INDEX, INT64 or UINT64 scalar, got {kind}",
        )
        require(not S.provably_negative(start), f"{name}: index_{what} must be >= 0, got {S.dim_text(start)}")
        require(
            not S.past_end(start, count, size),
            f"{name}: index_{what} {S.dim_text(start)} + extent {S.dim_text(count)} exceeds src {what} "
            f"extent {S.dim_text(size)}",
        )
    valid = R.window_region(src.type.shape, valid_region(src), offset, window, window)
    layout = _EXTRACT_LAYOUTS.get(target_memory) or implicit_layout(window, target_memory)
    partial = target_memory in _EXTRACT_LAYOUTS and not S.all_equal(valid, window)
    compact = CompactMode.normal if partial else CompactMode.null
    return fresh_tile(window, src.type.dtype, valid, target_memory, layout=layout, compact=compact)


def _narrows_accumulator(target: TileType, source: TileType) -> bool:
    """An FP32 accumulator goes into a BF16 or FP16 tile of Mat; the write path converts, ties to even."""
    spaces = source.memory_space is MemorySpace.Acc and target.memory_space is MemorySpace.Mat
    return spaces and source.dtype == DataType.FP32 and target.dtype in (DataType.BF16, DataType.FP16)


def _assemble_value(target: Any, source: Any, offset: Any, atomic: int = 0) -> Any:
    return _store_value(source, offset, target, None, atomic)


@op(
    "tile.assemble", family="memory", memory=INHERIT, backends=BOTH, effects={0: ArgEffect.ReadWrite},
    torch=_assemble_value,
)  # fmt: skip
def tile_assemble(target: Tile, source: Tile, offset: Shape) -> Type:
    """``target`` with ``source`` written at ``offset``; operands of different ranks are left to the flattening pass."""
    name = "tile.assemble"
    if not _narrows_accumulator(target.type, source.type):
        require_same_dtype(name, target, source, "target", "source")
    kind, start = target.type, elements(offset)
    if not len(kind.shape) == len(source.type.shape) == len(start):
        R.check_offsets(name, start)
        return kind
    region = R.write_region(
        name, kind.shape, valid_region(target), start, valid_region(source), transferred=source.type.shape,
        detail="; an on-chip write copies the whole source subview",
    )  # fmt: skip
    view = kind.get_effective_tile_view()
    return replace(kind, memref=None, tile_view=replace(view, valid_shape=region))


def _tensor_assemble_front(target: Any, source: Any, offset: Any, *, atomic: AtomicType = AtomicType.None_) -> tuple:
    return (target, source, offset), ({"atomic": int(atomic)} if atomic else {})


@op(
    "tensor.assemble", family="memory", front=_tensor_assemble_front, effects={0: atomic_effect}, result_is_arg=0,
    write_channel=WriteChannel.Dma, converts_to="custom", torch=_assemble_value,
)  # fmt: skip
def tensor_assemble(target: Tensor, source: Tensor, offset: Shape, *, atomic: Attr[int] = 0) -> Type:
    """``target`` with the valid region of ``source`` written at ``offset``; the result is the updated target."""
    name = "tensor.assemble"
    kind, start, extent = target.type, elements(offset), valid_region(source)
    check_atomic(name, atomic, kind.dtype)
    if not len(kind.shape) == len(extent) == len(start):
        R.check_offsets(name, start)
        return kind
    region = R.write_region(name, kind.shape, valid_region(target), start, extent)
    return with_tensor_region(kind, region)


def _concat_value(src0: Any, src1: Any) -> Any:
    return T.call("cat")((src0, src1), -1)


@op(
    "tile.concat", family="memory", memory=vec(2), inplace_safe=False, backends=BOTH, pto="pto.tconcat",
    torch=_concat_value,
)  # fmt: skip
def tile_concat(src0: Tile, src1: Tile) -> Type:
    """Columns of ``src0`` followed by those of ``src1``."""
    shape = _concatenated("tile.concat", src0, src1)
    return fresh_tile(shape, src0.type.dtype)


@op("tensor.concat", family="memory", converts_to="tile.concat", torch=_concat_value)
def tensor_concat(src0: Tensor, src1: Tensor) -> Type:
    """Columns of ``src0`` followed by those of ``src1``."""
    require_rank("tensor.concat", src0, 2, "src0")
    require_rank("tensor.concat", src1, 2, "src1")
    shape = _concatenated("tensor.concat", src0, src1)
    return fresh_tensor(shape, src0.type.dtype)


def _concatenated(name: str, src0: Any, src1: Any) -> tuple:
    require_same_dtype(name, src0, src1, "src0", "src1")
    left, right = src0.type.shape, src1.type.shape
    if len(left) != len(right) or any(S.provably_different(a, b) for a, b in zip(left[:-1], right[:-1])):
        raise ValueError(f"{name}: row count must match, got {S.shape_text(left)} and {S.shape_text(right)}")
    return (*left[:-1], S.add(left[-1], right[-1]))


# --- single elements ---------------------------------------------------------------------------------------------


def _check_indices(name: str, value: Any, indices: Any, *, flat: bool) -> None:
    count, rank = len(elements(indices)), len(value.type.shape)
    if count != rank and not (flat and count == 1):
        also = " (or one flat index)" if flat else ""
        raise ValueError(f"{name} requires {rank} indices{also} for {S.shape_text(value.type.shape)}, got {count}")
    for index in elements(indices):
        kind = index.type
        if not (isinstance(kind, ScalarType) and kind.dtype.is_int()):
            raise ValueError(f"{name} requires integer indices, got {kind}")


def _at(value: Any, indices: Any) -> Any:
    return value.reshape(-1)[int(indices[0])] if len(indices) == 1 else value[tuple(int(i) for i in indices)]


def _write_value(target: Any, indices: Any, value: Any) -> Any:
    out = target.clone()
    if len(indices) == 1:
        out.view(-1)[int(indices[0])] = value
    else:
        out[tuple(int(i) for i in indices)] = value
    return out


@op("tile.read", family="scalar_access", memory=MemorySpec((VEC,), None), backends=BOTH, torch=_at)
def tile_read(tile: Tile, indices: Indices) -> Type:
    """The element at the indices; one index is a flat row-major position."""
    require(
        tile.type.memory_space in (MemorySpace.Vec, None),
        f"tile.read reads Vec tiles only, got {getattr(tile.type.memory_space, 'name', None)}",
    )
    _check_indices("tile.read", tile, indices, flat=True)
    return scalar_type(tile.type.dtype)


@op(
    "tile.write", family="scalar_access", memory=vec(1), backends=BOTH, effects={0: ArgEffect.ReadWrite},
    torch=_write_value,
)  # fmt: skip
def tile_write(tile: Tile, indices: Indices, value: Element) -> Type:
    """Set the element at the indices."""
    _check_indices("tile.write", tile, indices, flat=True)
    _check_written("tile.write", tile, value)
    return tile.type


def _check_written(name: str, target: Any, value: Any) -> None:
    if value.type.dtype != target.type.dtype:
        raise ValueError(f"{name} requires a value of dtype {target.type.dtype}, but got {value.type.dtype}")


@op("tensor.read", family="scalar_access", orchestration=True, backends=BOTH, converts_to="custom", torch=_at)
def tensor_read(tensor: Tensor, indices: Indices) -> Type:
    """The element at the indices, read from global memory."""
    _check_indices("tensor.read", tensor, indices, flat=True)
    return scalar_type(tensor.type.dtype)


@op(
    "tensor.write", family="scalar_access", orchestration=True, backends=BOTH, converts_to="custom",
    effects={0: ArgEffect.Write},
    write_channel=WriteChannel.Scalar, torch=_write_value,
)  # fmt: skip
def tensor_write(tensor: Tensor, indices: Indices, value: Element) -> Type:
    """Set the element at the indices in global memory."""
    _check_indices("tensor.write", tensor, indices, flat=True)
    _check_written("tensor.write", tensor, value)
    return tensor.type
