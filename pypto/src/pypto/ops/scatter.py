"""Scatters: by position, by column pattern, by row, into global memory."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, WriteChannel
from pypto.ir.expr import ConstInt
from pypto.ir.types import Type
from pypto.ops import masks as M
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Tensor, Tile
from pypto.ops.memory_specs import BOTH, VEC, row_major, vec
from pypto.ops.pto_text import mask_pattern as mask_pattern_text
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import fresh_tensor, require, require_dtype, require_same_dtype, require_same_shape, valid_region

SCATTER_DTYPES = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32, DataType.BF16,
)  # fmt: skip


def check_positions(name: str, target: DataType, index: DataType) -> None:
    """INT32 positions for 4-byte elements, INT16 ones for narrower elements."""
    wanted = DataType.INT32 if target.get_bit() == 32 else DataType.INT16
    require(index == wanted, f"{name} requires index dtype {wanted} for {target} elements, but got {index}")


# --- by position -------------------------------------------------------------------------------------------------


def _flat_value(dst: Any, src: Any, indexes: Any) -> Any:
    out = dst.clone()
    out.view(-1)[indexes.long().reshape(-1)] = src.reshape(-1)
    return out


@op(
    "tile.scatter", family="gather_scatter", memory=vec(3), backends=BOTH, effects={0: ArgEffect.ReadWrite},
    result_is_arg=0, pto="pto.tscatter", pto_operands=lambda call: list(call.args[1:]), torch=_flat_value,
)  # fmt: skip
def tile_scatter(dst: Tile, src: Tile, indexes: Tile) -> Type:
    """``dst.reshape(-1)[indexes] = src`` in place; untouched cells keep ``dst``."""
    name = "tile.scatter"
    require_dtype(name, dst.type.dtype, SCATTER_DTYPES, "dst dtype")
    require_same_dtype(name, dst, src, "dst", "src")
    require_same_shape(name, src, indexes, "src", "indexes")
    check_positions(name, dst.type.dtype, indexes.type.dtype)
    return dst.type


def _tensor_scatter_front(
    input: Any,
    dim: int | None = None,
    index: Any = None,
    src: Any = None,
    *,
    mask_pattern: int | None = None,
    dst: Any = None,
) -> tuple:
    by_index = dim is not None or index is not None or src is not None
    by_mask = mask_pattern is not None or dst is not None
    if by_index and by_mask:
        raise ValueError("tensor.scatter: the index form and the mask_pattern form are mutually exclusive")
    if by_mask:
        if mask_pattern is None or dst is None:
            raise ValueError("tensor.scatter by pattern requires both mask_pattern and dst")
        return "tensor.scatter_mask", (input, dst), {"mask_pattern": mask_pattern}
    if dim is None or index is None or src is None:
        raise ValueError("tensor.scatter requires dim, index and src, or mask_pattern and dst")
    return "tensor.scatter", (input, index, src), {"dim": dim}


@op(
    "tensor.scatter", family="gather_scatter", front=_tensor_scatter_front, converts_to="custom",
    torch=lambda input, index, src, dim: input.scatter(1, index.long(), src),
)  # fmt: skip
def tensor_scatter(input: Tensor, index: Tensor, src: Tensor, *, dim: Attr[int]) -> Type:
    """A copy of ``input`` with ``src`` written along the last axis at ``index``."""
    name = "tensor.scatter"
    rank = len(input.type.shape)
    require(rank == 2, f"{name} requires a rank-2 input, got {S.shape_text(input.type.shape)}")
    require(dim in (-1, 1), f"{name} supports only dim=-1 (the last axis), got {dim}")
    require_dtype(name, input.type.dtype, SCATTER_DTYPES, "input dtype")
    require(
        src.type.dtype == input.type.dtype,
        f"{name} requires src dtype {input.type.dtype} like input, but got {src.type.dtype}",
    )
    require_same_shape(name, index, src, "index", "src")
    check_positions(name, input.type.dtype, index.type.dtype)
    if S.provably_lt(input.type.shape[0], src.type.shape[0]):
        raise ValueError(f"{name} requires src to have at most the {S.dim_text(input.type.shape[0])} rows of input")
    if S.provably_lt(input.type.shape[1], src.type.shape[1]):
        raise ValueError(f"{name} requires src to have at most the {S.dim_text(input.type.shape[1])} columns of input")
    return fresh_tensor(input.type.shape, input.type.dtype)


# --- by column pattern -------------------------------------------------------------------------------------------


def _check_mask(name: str, source: Any, target: Any, mask_pattern: int) -> None:
    step = M.stride(name, mask_pattern, "mask_pattern in [1, 7]")
    require_same_dtype(name, source, target, "src", "dst")
    *rows, cols = source.type.shape
    *target_rows, target_cols = target.type.shape
    if len(rows) != len(target_rows) or any(S.provably_different(a, b) for a, b in zip(rows, target_rows)):
        raise ValueError(f"{name} requires src and dst to have the same rows")
    if S.provably_different(target_cols, S.mul(cols, step)):
        raise ValueError(
            f"{name} with mask_pattern={mask_pattern} requires dst columns to be {step} times the src columns, but got "
            f"{S.dim_text(target_cols)} and {S.dim_text(cols)}"
        )


def _spread(target: Any, source: Any, mask_pattern: int) -> Any:
    out = target.clone()
    out[..., M.columns(mask_pattern)] = source
    return out


def _tile_mask_front(dst: Any, src: Any, mask_pattern: int) -> tuple:
    return (dst, src), {"mask_pattern": mask_pattern}


@op(
    "tile.scatter_mask", family="gather_scatter", level="extended", front=_tile_mask_front, memory=vec(2),
    backends=BOTH, effects={0: ArgEffect.ReadWrite}, result_is_arg=0, pto="pto.tscatter",
    pto_operands=lambda call: [call.args[1]], pto_attrs=mask_pattern_text, torch=_spread,
)  # fmt: skip
def tile_scatter_mask(dst: Tile, src: Tile, *, mask_pattern: Attr[int]) -> Type:
    """``src`` spread over the marked columns of ``dst``, in place; the other columns keep ``dst``."""
    _check_mask("tile.scatter_mask", src, dst, mask_pattern)
    return dst.type


@op(
    "tensor.scatter_mask", family="gather_scatter", level="extended", converts_to="custom", python_name="",
    torch=lambda input, dst, mask_pattern: _spread(dst, input, mask_pattern),
)  # fmt: skip
def tensor_scatter_mask(input: Tensor, dst: Tensor, *, mask_pattern: Attr[int]) -> Type:
    """A copy of ``dst`` with ``input`` spread over the marked columns."""
    _check_mask("tensor.scatter_mask", input, dst, mask_pattern)
    return fresh_tensor(dst.type.shape, dst.type.dtype)


# --- by row ------------------------------------------------------------------------------------------------------


def _update_front(input: Any, *args: Any, **kwargs: Any) -> tuple:
    """``(input, dim, index, src)``, ``(input, index, src, dim=-2)`` or ``(input, dim, index=, src=)``."""
    rest = list(args)
    unknown = set(kwargs) - {"dim", "index", "src"}
    if unknown:
        raise TypeError(f"scatter_update got unexpected keyword arguments {', '.join(sorted(unknown))}")
    dim = kwargs.get("dim")
    if rest and (isinstance(rest[0], (int, ConstInt))):
        if dim is not None:
            raise TypeError("scatter_update got two values for dim")
        dim = rest.pop(0)
    dim = -2 if dim is None else dim.value if isinstance(dim, ConstInt) else dim
    index = kwargs["index"] if "index" in kwargs else rest.pop(0) if rest else None
    src = kwargs["src"] if "src" in kwargs else rest.pop(0) if rest else None
    if rest or index is None or src is None:
        raise TypeError("scatter_update takes (input, dim, index, src) or (input, index, src, dim=-2)")
    return (input, index, src), {"dim": dim}


def _check_update(name: str, input: Any, index: Any, src: Any, dim: int) -> None:
    require(dim == -2, f"{name} supports only dim=-2, got {dim}")
    shape, rank = input.type.shape, len(input.type.shape)
    require(rank in (2, 4), f"{name} requires an input of rank 2 or 4, got {S.shape_text(shape)}")
    require(
        len(src.type.shape) == rank,
        f"{name} requires src of rank {rank} like input, got {S.shape_text(src.type.shape)}",
    )
    require(len(index.type.shape) == 2, f"{name} requires a 2D index, got {S.shape_text(index.type.shape)}")
    require(index.type.dtype.is_int(), f"{name} requires an integer index dtype, got {index.type.dtype}")
    require(
        src.type.dtype == input.type.dtype,
        f"{name} requires src dtype {input.type.dtype} like input, but got {src.type.dtype}",
    )
    if S.provably_different(shape[-1], src.type.shape[-1]):
        raise ValueError(f"{name} requires src rows of {S.dim_text(shape[-1])} elements like input")
    if rank == 4:
        wanted = (*index.type.shape, S.product(()), shape[-1])
        if any(S.provably_different(a, b) for a, b in zip(src.type.shape, wanted)) or S.const(shape[2]) not in (
            1,
            None,
        ):
            raise ValueError(
                f"{name} of rank 4 requires input [blocks, block size, 1, d] and src {S.shape_text(wanted)}, got "
                f"{S.shape_text(shape)} and {S.shape_text(src.type.shape)}"
            )
    if rank == 2 and S.provably_different(S.product(index.type.shape), src.type.shape[0]):
        raise ValueError(
            f"{name} requires one src row per index ({S.dim_text(S.product(index.type.shape))}), got "
            f"{S.dim_text(src.type.shape[0])}"
        )


def _update_value(input: Any, index: Any, src: Any, dim: int = -2) -> Any:
    width = input.shape[-1]
    rows = input.reshape(-1, width).clone()
    rows[index.reshape(-1).long()] = src.reshape(-1, width)
    return rows.reshape(input.shape)


@op(
    "tile.scatter_update", family="gather_scatter", front=_update_front, memory=vec(3),
    effects={0: ArgEffect.ReadWrite}, result_is_arg=0, converts_to="custom", keep=("dim",), torch=_update_value,
)  # fmt: skip
def tile_scatter_update(input: Tile, index: Tile, src: Tile, *, dim: Attr[int] = -2) -> Type:
    """Rows of ``input`` replaced by rows of ``src``, in place."""
    _check_update("tile.scatter_update", input, index, src, dim)
    return input.type


@op(
    "tensor.scatter_update", family="gather_scatter", front=_update_front, converts_to="custom", keep=("dim",),
    torch=_update_value,
)  # fmt: skip
def tensor_scatter_update(input: Tensor, index: Tensor, src: Tensor, *, dim: Attr[int] = -2) -> Type:
    """Rows of ``input`` replaced by rows of ``src``."""
    _check_update("tensor.scatter_update", input, index, src, dim)
    return fresh_tensor(input.type.shape, input.type.dtype, valid_region(input))


# --- into global memory ------------------------------------------------------------------------------------------


@op(
    "tile.mscatter", family="gather_scatter", level="extended", memory=MemorySpec((VEC, VEC), None),
    layouts=row_major(2, output=False), backends=BOTH, effects={2: ArgEffect.Write}, write_channel=WriteChannel.Dma,
    result_is_arg=2, pto="pto.mscatter", torch=lambda src, idx, out: _flat_value(out, src, idx),
)  # fmt: skip
def tile_mscatter(src: Tile, idx: Tile, output_tensor: Tensor) -> Type:
    """``output.reshape(-1)[idx] = src``; the result is the updated tensor."""
    name = "tile.mscatter"
    require_dtype(name, src.type.dtype, (DataType.FP16, DataType.FP32, DataType.INT16, DataType.INT32), "src dtype")
    require(idx.type.dtype == DataType.INT32, f"{name} requires idx dtype INT32, but got {idx.type.dtype}")
    require_same_shape(name, src, idx, "src", "idx")
    require_same_dtype(name, src, output_tensor, "src", "output_tensor")
    require(len(output_tensor.type.shape) >= 1, f"{name} requires an output tensor of rank >= 1")
    return output_tensor.type
