"""Gathers: by position, by column pattern, by comparison, by byte offset, by row."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, MemorySpace, WriteChannel
from pypto.ir.expr import const_index
from pypto.ir.types import ScalarType, TensorType, TileType, TupleType, Type
from pypto.ops import masks as M
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Element, Shape, Tensor, Tile, Tuple
from pypto.ops.memory_specs import BOTH, VEC_SCALAR_VEC, row_major, vec
from pypto.ops.movement import box
from pypto.ops.pto_text import CMP_MODES
from pypto.ops.pto_text import mask_pattern as mask_pattern_text
from pypto.ops.regions import check_offsets, check_requested
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import (
    elements,
    fresh_tensor,
    fresh_tile,
    normalized_axis,
    require,
    require_dtype,
    require_rank,
    static_shape,
    valid_region,
)
from pypto.ops.scalars import as_datatype

GATHER_DTYPES = (DataType.FP16, DataType.FP32, DataType.INT16, DataType.INT32)
COUNT_DTYPES = (DataType.INT32, DataType.UINT32)


def check_index(name: str, source: Any, index: Any, what: str) -> None:
    """INT32 positions, or INT16 ones next to a 16-bit source."""
    dtype = source.type.dtype
    require(dtype in GATHER_DTYPES, f"{name} requires {what} dtype FP16, FP32, INT16, or INT32, but got {dtype}")
    kind = index.type.dtype
    if kind == DataType.INT16:
        require(dtype.get_bit() == 16, f"{name} accepts an INT16 index only with a 16-bit {what}, got {dtype}")
        return
    require(kind == DataType.INT32, f"{name} requires index dtype INT32 (or INT16 with a 16-bit {what}), got {kind}")


# --- by position -------------------------------------------------------------------------------------------------


@op(
    "tile.gather", family="gather_scatter", memory=vec(3), inplace_safe=False, backends=BOTH, pto="pto.tgather",
    torch=lambda src, indices, tmp: src.reshape(-1)[indices.long()],
)  # fmt: skip
def tile_gather(src: Tile, indices: Tile, tmp: Tile) -> Type:
    """``src.reshape(-1)[indices]``: flat row-major positions in the physical source; ``tmp`` is scratch."""
    check_index("tile.gather", src, indices, "src")
    return fresh_tile(indices.type.shape, src.type.dtype)


def _tensor_gather_front(
    input: Any,
    dim: int | None = None,
    index: Any = None,
    *,
    mask_pattern: int | None = None,
    output_dtype: Any = None,
    kvalue: Any = None,
    cmp_mode: str | int | None = None,
    out_cols: int | None = None,
    offset: int = 0,
    count_dtype: Any = None,
) -> tuple:
    """One of three operators, told apart by the keywords."""
    by_index = index is not None or dim is not None
    by_compare = any(v is not None for v in (kvalue, cmp_mode, out_cols, count_dtype)) or offset != 0
    by_mask = mask_pattern is not None or output_dtype is not None
    if by_index + by_compare + by_mask > 1:
        raise ValueError("tensor.gather: the index, mask_pattern and kvalue forms are mutually exclusive")
    if by_mask:
        if mask_pattern is None:
            raise ValueError("tensor.gather takes output_dtype only together with mask_pattern")
        return _masked(input, mask_pattern, output_dtype)
    if by_compare:
        if kvalue is None or cmp_mode is None or out_cols is None:
            raise ValueError("tensor.gather by comparison requires all of kvalue, cmp_mode and out_cols")
        kwargs = _compare_attrs(cmp_mode, offset, out_cols, count_dtype)
        return "tensor.gather_compare", (input, kvalue), kwargs
    if index is None:
        raise ValueError("tensor.gather requires index, mask_pattern or kvalue")
    if dim is None:
        raise ValueError("tensor.gather requires dim together with index")
    return "tensor.gather", (input, index), {"dim": dim}


def _masked(input: Any, mask_pattern: int, output_dtype: Any) -> tuple:
    kwargs: dict[str, Any] = {"mask_pattern": mask_pattern}
    if output_dtype is not None:
        kwargs["output_dtype"] = as_datatype(output_dtype)
    return "tensor.gather_mask", (input,), kwargs


def _axis_gather_value(input: Any, index: Any, dim: int) -> Any:
    return T.call("gather")(input, dim, index.long())


@op(
    "tensor.gather", family="gather_scatter", front=_tensor_gather_front, converts_to="custom",
    torch=_axis_gather_value,
)  # fmt: skip
def tensor_gather(input: Tensor, index: Tensor, *, dim: Attr[int]) -> Type:
    """``torch.gather(input, dim, index)`` of rank 2 to 4."""
    name = "tensor.gather"
    check_index(name, input, index, "input")
    shape, picked = input.type.shape, index.type.shape
    require(2 <= len(shape) <= 4, f"{name} requires an input of rank 2 to 4, got {S.shape_text(shape)}")
    require(
        len(picked) == len(shape), f"{name} requires index of rank {len(shape)} like input, got {S.shape_text(picked)}"
    )
    require(-len(shape) <= dim < len(shape), f"{name}: dim {dim} is out of range for rank {len(shape)}")
    axis = normalized_axis(name, dim, len(shape))
    for other, (have, want) in enumerate(zip(shape, picked)):
        if other != axis and S.provably_lt(have, want):
            raise ValueError(
                f"{name}: on non-gather axes index must not exceed input, but axis {other} has {S.dim_text(want)} > "
                f"{S.dim_text(have)}"
            )
    return fresh_tensor(picked, input.type.dtype, valid_region(index))


# --- by column pattern -------------------------------------------------------------------------------------------


def _tile_mask_front(src: Any, mask_pattern: int, *, output_dtype: Any = None) -> tuple:
    kwargs: dict[str, Any] = {"mask_pattern": mask_pattern}
    if output_dtype is not None:
        kwargs["output_dtype"] = as_datatype(output_dtype)
    return (src,), kwargs


def _masked_shape(name: str, source: Any, mask_pattern: int, output_dtype: DataType | None) -> tuple[tuple, DataType]:
    step = M.stride(name, mask_pattern)
    *lead, cols = source.type.shape
    if S.const(cols) is not None and S.const(cols) % step:
        raise ValueError(f"{name} requires the last dimension {S.dim_text(cols)} to be divisible by {step}")
    dtype = source.type.dtype
    if output_dtype is not None and output_dtype.get_bit() != dtype.get_bit():
        raise ValueError(f"{name} requires output_dtype of the same bit width as {dtype}, got {output_dtype}")
    return (*lead, S.floor_div(cols, step)), output_dtype or dtype


def _mask_value(src: Any, mask_pattern: int, output_dtype: DataType | None = None) -> Any:
    out = src[..., M.columns(mask_pattern)].contiguous()
    return out if output_dtype is None else out.view(T.torch_dtype(output_dtype))


@op(
    "tile.gather_mask", family="gather_scatter", front=_tile_mask_front, memory=vec(1), inplace_safe=False,
    backends=BOTH, pto="pto.tgather", pto_attrs=mask_pattern_text, torch=_mask_value,
)  # fmt: skip
def tile_gather_mask(src: Tile, *, mask_pattern: Attr[int], output_dtype: Attr[DataType] = None) -> Type:
    """The marked columns of each row, compacted to the left; ``output_dtype`` reinterprets the bits."""
    shape, dtype = _masked_shape("tile.gather_mask", src, mask_pattern, output_dtype)
    return fresh_tile(shape, dtype)


@op(
    "tensor.gather_mask", family="gather_scatter", converts_to="tile.gather_mask", python_name="", torch=_mask_value,
)  # fmt: skip
def tensor_gather_mask(input: Tensor, *, mask_pattern: Attr[int], output_dtype: Attr[DataType] = None) -> Type:
    """The marked columns of each row, compacted to the left; ``output_dtype`` reinterprets the bits."""
    shape, dtype = _masked_shape("tensor.gather_mask", input, mask_pattern, output_dtype)
    return fresh_tensor(shape, dtype)


# --- by comparison -----------------------------------------------------------------------------------------------


def compare_mode(mode: str | int) -> int:
    """Code of a comparison given by name or code.

    Raises:
        ValueError: no such comparison.
    """
    code = CMP_MODES.index(mode) if mode in CMP_MODES else mode
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < len(CMP_MODES):
        raise ValueError(f"cmp_mode must be one of {', '.join(CMP_MODES)} or 0 to 5, got {mode!r}")
    return code


def _compare_attrs(cmp_mode: str | int, offset: int, out_cols: int, count_dtype: Any) -> dict[str, Any]:
    kwargs: dict[str, Any] = {"cmp_mode": compare_mode(cmp_mode), "offset": offset, "out_cols": out_cols}
    if count_dtype is not None:
        kwargs["count_dtype"] = as_datatype(count_dtype)
    return kwargs


def _tile_compare_front(
    src: Any,
    kvalue: Any,
    tmp: Any,
    *,
    cmp_mode: str | int = "eq",
    offset: int = 0,
    out_cols: int,
    count_dtype: Any = None,
) -> tuple:
    return (src, kvalue, tmp), _compare_attrs(cmp_mode, offset, out_cols, count_dtype)


def _check_compare(name: str, source: Any, kvalue: Any, cmp_mode: int, out_cols: int, count_dtype: DataType) -> None:
    require_rank(name, source, 2, "src")
    require_dtype(name, source.type.dtype, GATHER_DTYPES, "src dtype")
    require(
        kvalue.type.dtype == source.type.dtype,
        f"{name} requires kvalue dtype {source.type.dtype} like src, but got {kvalue.type.dtype}",
    )
    require_dtype(name, count_dtype, COUNT_DTYPES, "count_dtype")
    compare_mode(cmp_mode)
    require(out_cols > 0, f"{name} requires out_cols > 0, got {out_cols}")


def _matches(
    src: Any, kvalue: Any, *rest: Any, cmp_mode: int, offset: int, out_cols: int, count_dtype: DataType
) -> Any:
    """(positions, counts) of the matching columns of each row."""
    import torch

    hits = T.COMPARE[cmp_mode](src, kvalue)
    positions = torch.zeros(src.shape[0], out_cols, dtype=torch.int32)
    for row, line in enumerate(hits):
        found = line.nonzero().reshape(-1)[:out_cols] + offset
        positions[row, : len(found)] = found.to(torch.int32)
    counts = hits.sum(1).to(T.torch_dtype(count_dtype)).reshape(1, -1)
    return positions, counts


@op(
    "tile.gather_compare", family="gather_scatter", level="extended", front=_tile_compare_front, memory=VEC_SCALAR_VEC,
    inplace_safe=False, backends=BOTH, pto="pto.tgather", outputs=2, torch=_matches,
    pto_attrs=lambda call: (
        f"{{cmpMode = #pto<cmp {CMP_MODES[call.kwargs.get('cmp_mode', 0)]}>, offset = {call.kwargs.get('offset', 0)} "
        ": i32}"
    ),
)  # fmt: skip
def tile_gather_compare(
    src: Tile,
    kvalue: Element,
    tmp: Tile,
    *,
    cmp_mode: Attr[int] = 0,
    offset: Attr[int] = 0,
    out_cols: Attr[int],
    count_dtype: Attr[DataType] = DataType.INT32,
) -> Type:
    """Per row the columns (plus ``offset``) that satisfy the comparison, and how many do."""
    _check_compare("tile.gather_compare", src, kvalue, cmp_mode, out_cols, count_dtype)
    rows = src.type.shape[0]
    positions = fresh_tile((rows, const_index(out_cols)), DataType.INT32)
    return TupleType((positions, fresh_tile((const_index(1), rows), count_dtype)))


@op(
    "tensor.gather_compare", family="gather_scatter", level="extended", converts_to="custom", python_name="",
    outputs=2, torch=_matches,
)  # fmt: skip
def tensor_gather_compare(
    input: Tensor,
    kvalue: Element,
    *,
    cmp_mode: Attr[int],
    offset: Attr[int] = 0,
    out_cols: Attr[int],
    count_dtype: Attr[DataType] = DataType.INT32,
) -> Type:
    """Per row the columns (plus ``offset``) that satisfy the comparison, and how many do."""
    _check_compare("tensor.gather_compare", input, kvalue, cmp_mode, out_cols, count_dtype)
    rows = input.type.shape[0]
    positions = fresh_tensor((rows, const_index(out_cols)), DataType.INT32)
    return TupleType((positions, fresh_tensor((const_index(1), rows), count_dtype)))


# --- by byte offset ----------------------------------------------------------------------------------------------


def _blocks(src: Any, offset: Any, output_dtype: DataType | None = None) -> Any:
    import torch

    octets = src.contiguous().view(torch.uint8).reshape(-1)
    lanes = offset.to(torch.int64).unsqueeze(-1) + torch.arange(32)
    dtype = src.dtype if output_dtype is None else T.torch_dtype(output_dtype)
    return octets[lanes].reshape(offset.shape[0], -1).contiguous().view(dtype)


@op(
    "tile.gatherb", family="gather_scatter", level="extended", memory=vec(2), layouts=row_major(2), backends=BOTH,
    inplace_safe=False, pto="pto.tgatherb", torch=_blocks,
)  # fmt: skip
def tile_gatherb(src: Tile, offset: Tile, *, output_dtype: Attr[DataType] = None) -> Type:
    """For every UINT32 byte offset, the 32-byte block of the source that starts there."""
    name = "tile.gatherb"
    require_rank(name, src, 2, "src")
    require_rank(name, offset, 2, "offset")
    require_dtype(name, offset.type.dtype, (DataType.UINT32,), "offset dtype")
    cols = S.const(offset.type.shape[1])
    if cols is None or cols <= 0 or cols % 8:
        raise ValueError(
            f"{name} requires the columns of offset to be a static positive multiple of 8, got "
            f"{S.dim_text(offset.type.shape[1])}"
        )
    dtype = output_dtype or src.type.dtype
    lanes = 32 // dtype.get_byte()
    rows, valid_cols = valid_region(offset)
    shape = (offset.type.shape[0], const_index(cols * lanes))
    return fresh_tile(shape, dtype, (rows, S.mul(valid_cols, lanes)))


# --- by row ------------------------------------------------------------------------------------------------------


def _row_operands(
    dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: bool, valid_shape: Any
) -> tuple:
    operands = (dst, src, dst_offset, src_offset, shapes, *([] if valid_shape is None else [valid_shape]))
    return operands, {"transpose": bool(transpose)}


def _tile_row_front(
    dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: bool = False, *,
    valid_shape: Any = None,
) -> tuple:  # fmt: skip
    return _row_operands(dst, src, dst_offset, src_offset, shapes, transpose, valid_shape)


def _tensor_row_front(
    acc: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: bool = False, *,
    valid_shape: Any = None,
) -> tuple:  # fmt: skip
    return _row_operands(acc, src, dst_offset, src_offset, shapes, transpose, valid_shape)


def _check_row(
    name: str, dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: bool, valid_shape: Any
) -> None:
    window = elements(shapes)
    if any(S.const(d) is None for d in window):
        raise ValueError(
            f"{name} requires compile-time shapes, got {S.shape_text(window)}. Pass a dynamic row count through "
            "valid_shape instead"
        )
    static_shape(name, shapes, "shapes")
    copied = window if valid_shape is None else elements(valid_shape)
    target = elements(dst_offset)
    require(
        dst.type.dtype == src.type.dtype,
        f"{name} requires dst and src to share dtype, got {dst.type.dtype} and {src.type.dtype}",
    )
    require(len(target) == len(dst.type.shape), f"{name} requires dst_offset of rank {len(dst.type.shape)}")
    require(
        len(elements(src_offset)) == len(src.type.shape), f"{name} requires src_offset of rank {len(src.type.shape)}"
    )
    require(len(copied) == len(window), f"{name} requires valid_shape to have the same rank as shapes")
    for axis, count in enumerate(copied):
        integer = isinstance(count.type, ScalarType) and count.type.dtype.is_int()
        require(integer, f"{name} requires valid_shape[{axis}] to be an integer extent, got {count.type}")
    for axis, (count, size) in enumerate(zip(copied, window)):
        require(not S.provably_negative(count), f"{name}: valid_shape of dimension {axis} must be >= 0")
        require(
            not S.provably_lt(size, count),
            f"{name}: valid_shape {S.dim_text(count)} of dimension {axis} provably exceeds physical shape extent "
            f"{S.dim_text(size)}",
        )
    check_offsets(f"{name} dst", target)
    check_offsets(f"{name} src", elements(src_offset))
    if transpose:
        dynamic = "dynamic " if any(S.const(d) is None for d in copied) else ""
        require(valid_shape is None, f"{name} does not support a {dynamic}valid_shape together with transpose")
    if isinstance(dst.type, TileType):
        space = dst.type.memory_space
        allowed = (MemorySpace.Mat, None) if transpose else (MemorySpace.Vec, MemorySpace.Mat, None)
        what = "transpose requires a Mat destination" if transpose else "the destination must be in Vec or Mat"
        require(space in allowed, f"{name}: {what}, got {getattr(space, 'name', space)}")


def _row_value(
    dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, valid_shape: Any = None, transpose: bool = False
) -> Any:
    out = dst.clone()
    copied = shapes if valid_shape is None else valid_shape
    value = src[box(src_offset, copied)]
    value = value.mT if transpose else value
    out[box(dst_offset, value.shape)] = value
    return out


@op(
    "tile.gather_row", family="gather_scatter", front=_tile_row_front, effects={0: ArgEffect.ReadWrite},
    result_is_arg=0, backends=BOTH, keep=("transpose",), torch=_row_value,
)  # fmt: skip
def tile_gather_row(
    dst: Tile, src: Tensor, dst_offset: Shape, src_offset: Shape, shapes: Shape, valid_shape: Tuple = None, *,
    transpose: Attr[bool] = False,
) -> Type:  # fmt: skip
    """Copy a window of a global tensor into a tile, in place; ``transpose`` writes a row as a column."""
    _check_row("tile.gather_row", dst, src, dst_offset, src_offset, shapes, transpose, valid_shape)
    return dst.type


@op(
    "tensor.gather_row", family="gather_scatter", level="extended", front=_tensor_row_front, converts_to="custom",
    keep=("transpose",), torch=_row_value,
)  # fmt: skip
def tensor_gather_row(
    acc: Tensor, src: Tensor, dst_offset: Shape, src_offset: Shape, shapes: Shape, valid_shape: Tuple = None, *,
    transpose: Attr[bool] = False,
) -> Type:  # fmt: skip
    """Copy a window of a global tensor into an L1 accumulator, in place."""
    _check_row("tensor.gather_row", acc, src, dst_offset, src_offset, shapes, transpose, valid_shape)
    return acc.type


def _paged_value(
    src: Any, indices: Any, block_table: Any, block_size: int, size: int, max_indices: int, space: Any = None,
    col_off: int = 0, is_trans: bool = False, is_b_matrix: bool = False,
) -> Any:  # fmt: skip
    import torch

    flat = indices.reshape(-1).long()
    rows = block_table.reshape(-1).long()[flat // block_size] * block_size + flat % block_size
    out = torch.zeros(max_indices, size, dtype=src.dtype)
    out[: len(flat)] = src[rows, col_off : col_off + size]
    return out.mT.contiguous() if is_trans else out


@op(
    "tensor.paged_gather", family="gather_scatter", level="extended", converts_to="custom", torch=_paged_value,
    keep=("space", "col_off", "is_trans", "is_b_matrix"),
)  # fmt: skip
def tensor_paged_gather(
    src: Tensor,
    indices: Tensor,
    block_table: Tensor,
    block_size: Attr[int],
    size: Attr[int],
    max_indices: Attr[int],
    *,
    space: Attr[MemorySpace] = MemorySpace.Mat,
    col_off: Attr[int] = 0,
    is_trans: Attr[bool] = False,
    is_b_matrix: Attr[bool] = False,
) -> Type:
    """Row i is the physical row that a block table gives for logical row ``indices[i]``."""
    name = "tensor.paged_gather"
    require(len(src.type.shape) == 2, f"{name} requires a 2D src, got {S.shape_text(src.type.shape)}")
    require_dtype(name, src.type.dtype, (DataType.FP16, DataType.BF16, DataType.FP32, DataType.INT8), "src dtype")
    require_dtype(name, indices.type.dtype, (DataType.INT32,), "indices dtype")
    require_dtype(name, block_table.type.dtype, (DataType.INT32,), "block_table dtype")
    dims = indices.type.shape
    require(
        len(dims) == 1 or (len(dims) == 2 and S.const(dims[0]) == 1),
        f"{name} requires indices of shape [n] or [1, n], got {S.shape_text(dims)}",
    )
    require(block_size > 0 and size > 0 and max_indices > 0, f"{name} requires positive sizes")
    require(
        col_off >= 0 and not S.past_end(const_index(col_off), const_index(size), src.type.shape[1]),
        f"{name}: columns {col_off} to {col_off + size} lie outside src {S.shape_text(src.type.shape)}",
    )
    require(
        not S.provably_lt(const_index(max_indices), dims[-1]),
        f"{name} requires max_indices of at least the {S.dim_text(dims[-1])} indices, got {max_indices}",
    )
    require(space in (MemorySpace.Mat, MemorySpace.Vec), f"{name} supports space Mat or Vec, got {space.name}")
    require(not is_trans or space is MemorySpace.Mat, f"{name}: is_trans requires space Mat")
    shape = (size, max_indices) if is_trans else (max_indices, size)
    return fresh_tensor(tuple(const_index(d) for d in shape), src.type.dtype)


# --- from global memory ------------------------------------------------------------------------------------------

_COALESCE = ("row", "elem")
_OOB = ("undefined", "clamp", "wrap", "zero")
MGATHER_DTYPES = (
    DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32, DataType.UINT32, DataType.FP16,
    DataType.BF16, DataType.FP32, DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.HF8,
)  # fmt: skip


def _code(name: str, what: str, value: str | int, names: tuple[str, ...]) -> int:
    code = names.index(value) if value in names else value
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < len(names):
        raise ValueError(f"{name}: {what} must be one of {', '.join(names)} or 0 to {len(names) - 1}, got {value!r}")
    return code


def _mgather_front(
    mem: Any,
    idx: Any,
    coalesce: str | int = "row",
    *,
    gather_oob: str | int = "undefined",
    target_memory: MemorySpace = MemorySpace.Vec,
    scratch: Any = None,
    valid_shape: Any = None,
) -> tuple:
    name = "tile.mgather"
    kwargs: dict[str, Any] = {"coalesce": _code(name, "coalesce", coalesce, _COALESCE)}
    policy = _code(name, "gather_oob", gather_oob, _OOB)
    if policy:
        kwargs["gather_oob"] = policy
    if target_memory is not MemorySpace.Vec:
        kwargs["target_memory"] = target_memory
    return (mem, idx, *(e for e in (scratch, valid_shape) if e is not None)), kwargs


def _mgather_effect(kwargs: dict) -> ArgEffect:
    staged = kwargs.get("target_memory") is MemorySpace.Mat and kwargs.get("coalesce") == 1
    return ArgEffect.Write if staged else ArgEffect.Read


def _mgather_value(
    mem: Any, idx: Any, *rest: Any, coalesce: int, gather_oob: int = 0, target_memory: Any = None
) -> Any:
    import torch

    table = mem.reshape(-1) if coalesce else mem
    where, size = idx.long(), table.shape[0]
    inside = (where >= 0) & (where < size)
    where = where % size if gather_oob == 2 else where.clamp(0, size - 1)
    out = table[where] if coalesce else table[where.reshape(-1)]
    if gather_oob == 3:
        keep = inside if coalesce else inside.reshape(-1, *[1] * (out.dim() - 1))
        out = torch.where(keep, out, torch.zeros_like(out))
    return out


@op(
    "tile.mgather", family="gather_scatter", level="extended", front=_mgather_front, inplace_safe=False,
    memory=MemorySpec((), MemorySpace.Vec), effects={2: _mgather_effect}, write_channel=WriteChannel.Dma,
    backends=BOTH, pto="pto.mgather", torch=_mgather_value,
    pto_attrs=lambda call: _mgather_attrs(call),
)  # fmt: skip
def tile_mgather(
    mem: Tensor,
    idx: Tile | Tensor,
    *rest: Tensor | Shape,
    coalesce: Attr[int],
    gather_oob: Attr[int] = 0,
    target_memory: Attr[MemorySpace] = MemorySpace.Vec,
) -> Type:
    """Rows (``coalesce`` row) or elements (elem) of a global tensor at run-time positions."""
    name = "tile.mgather"
    source, index = mem.type, idx.type
    require_dtype(name, source.dtype, MGATHER_DTYPES, "mem dtype")
    require(index.dtype == DataType.INT32, f"{name} requires idx dtype INT32, but got {index.dtype}")
    require(len(index.shape) == 2, f"{name} requires a 2D idx, got {S.shape_text(index.shape)}")
    require(coalesce in (0, 1), f"{name}: coalesce must be row (0) or elem (1), got {coalesce}")
    require(0 <= gather_oob < len(_OOB), f"{name}: gather_oob must be 0 to 3, got {gather_oob}")
    scratch = next((r for r in rest if isinstance(r.type, TensorType)), None)
    region = next((r for r in rest if not isinstance(r.type, TensorType)), None)
    mat = target_memory is MemorySpace.Mat
    require(target_memory in (MemorySpace.Vec, MemorySpace.Mat), f"{name} supports target_memory Vec or Mat")
    if mat:
        require(isinstance(index, TensorType), f"{name} to Mat requires idx to be a global INT32 tensor [1, R]")
    else:
        require(isinstance(index, TileType), f"{name} to Vec requires idx to be a tile")
    if mat and coalesce:
        require(scratch is not None, f"{name} of elements to Mat requires scratch")
        require(scratch.type.dtype == source.dtype, f"{name} requires scratch of dtype {source.dtype}")
    else:
        require(scratch is None, f"{name} takes scratch only for elements gathered to Mat")
    for what, dims in (("mem", source.shape), ("idx", index.shape)):
        require(S.consts(dims) is not None, f"{name} requires a static shape of {what}, got {S.shape_text(dims)}")
    shape = tuple(index.shape) if coalesce else _gathered_rows(name, source.shape, index.shape, mat)
    lanes = 32 // source.dtype.get_byte()
    physical = shape
    if mat:
        physical = (S.mul(S.ceil_div(shape[0], 16), 16), S.mul(S.ceil_div(shape[1], lanes), lanes))
    if scratch is not None:
        _check_gather_scratch(name, scratch, mem, idx, physical)
    valid = shape
    if region is not None:
        valid = elements(region)
        require(len(valid) == 2, f"{name} requires a 2D valid_shape, got {S.shape_text(valid)}")
        check_requested(name, valid, physical)
    return fresh_tile(physical, source.dtype, valid, target_memory)


def _gathered_rows(name: str, table: tuple, index: tuple, mat: bool) -> tuple:
    """Shape of the rows picked by a ``[1, R]`` index (on Vec also ``[R, 1]``)."""
    require(len(table) >= 2, f"{name} of rows requires mem of rank >= 2, got {S.shape_text(table)}")
    flat = 1 in (S.const(d) for d in index[: 1 if mat else 2])
    require(flat, f"{name} of rows requires idx of shape [1, R], got {S.shape_text(index)}")
    return index[1] if S.const(index[0]) == 1 else index[0], table[-1]


def _check_gather_scratch(name: str, scratch: Any, mem: Any, idx: Any, physical: tuple) -> None:
    """Global scratch of the elements of the result, apart from the operands."""
    require(scratch is not mem and scratch is not idx, f"{name}: scratch must not overlap mem or idx")
    have, need = S.product(scratch.type.shape), S.product(physical)
    require(
        not S.provably_lt(have, need),
        f"{name} requires scratch of at least {S.dim_text(need)} elements, got {S.shape_text(scratch.type.shape)}",
    )


def _mgather_attrs(call: Any) -> str:
    text = f"coalesce = #pto<coalesce {_COALESCE[call.kwargs.get('coalesce', 0)]}>"
    policy = call.kwargs.get("gather_oob", 0)
    return f"{{{text}, gatherOob = #pto<gather_oob {_OOB[policy]}>}}" if policy else f"{{{text}}}"
