"""Comparison into packed masks, and selection by them."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstFloat, ConstInt, as_expr
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import ScalarType, Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Element, Scalar, Tensor, Tile
from pypto.ops.memory_specs import BOTH, row_major, vec
from pypto.ops.pto_text import cmp_mode
from pypto.ops.registry import op
from pypto.ops.rules import (
    elementwise_tiles,
    fresh_like,
    fresh_tensor,
    fresh_tile,
    require,
    require_dtype,
    valid_region,
)

SELS_DTYPES = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.FP16,
    DataType.FP32,
)  # fmt: skip
MASK_DTYPES = SELS_DTYPES[:6]
_SIGNED = {
    DataType.UINT8: DataType.INT8,
    DataType.UINT16: DataType.INT16,
    DataType.UINT32: DataType.INT32,
}


def mask_type(shape: Any, valid: Any) -> Type:
    """Packed predicate of a source: one bit per column, rows padded to 32 bytes."""
    columns = S.mul(S.ceil_div(S.ceil_div(shape[-1], 8), 32), 32)
    return fresh_tile((*shape[:-1], columns), DataType.UINT8, (*valid[:-1], S.ceil_div(valid[-1], 8)))


def _compare_packed(lhs: Any, rhs: Any, cmp_type: int = 0) -> Any:
    return T.pack_bits(T.COMPARE[cmp_type](lhs, rhs))


@op(
    "tile.cmp", family="compare_select", memory=vec(2), backends=BOTH, pto="pto.tcmp", pto_attrs=cmp_mode,
    torch=_compare_packed, scalar_form="tile.cmps", keep=("cmp_type",),
)  # fmt: skip
def tile_cmp(lhs: Tile, rhs: Tile, cmp_type: Attr[int] = 0) -> Type:
    """Packed mask of ``lhs CMP rhs``: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge."""
    pair = elementwise_tiles("tile.cmp", lhs, rhs)
    return mask_type(pair.shape, pair.valid_shape)


@op(
    "tile.cmps", family="compare_select", memory=vec(1), backends=BOTH, layouts=row_major(1), pto="pto.tcmps",
    pto_attrs=cmp_mode, torch=_compare_packed, keep=("cmp_type",),
)  # fmt: skip
def tile_cmps(lhs: Tile, rhs: Element, cmp_type: Attr[int] = 0) -> Type:
    """Packed mask of ``lhs CMP scalar``: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge."""
    return mask_type(lhs.type.shape, valid_region(lhs))


@op(
    "tensor.cmp", family="compare_select", converts_to="custom", keep=("cmp_type",),
    torch=lambda lhs, rhs, cmp_type=0: T.COMPARE[cmp_type](lhs, rhs).to(lhs.dtype),
)  # fmt: skip
def tensor_cmp(lhs: Tensor, rhs: Tensor | Element, cmp_type: Attr[int] = 0) -> Type:
    """1 where ``lhs CMP rhs`` holds, else 0, in the element type of ``lhs``."""
    if not isinstance(rhs.type, ScalarType):
        S.broadcast(lhs.type.shape, rhs.type.shape, "tensor.cmp")
    return fresh_tensor(lhs.type.shape, lhs.type.dtype)


def _select(mask: Any, lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    import torch

    return torch.where(T.unpack_bits(mask, lhs.shape[-1]), lhs, rhs)


@op(
    "tile.sel", family="compare_select", memory=vec(4), layouts=row_major(4), backends=BOTH, no_alias_args=(0, 3),
    pto="pto.tsel", torch=_select,
)  # fmt: skip
def tile_sel(mask: Tile, lhs: Tile, rhs: Tile, tmp: Tile) -> Type:
    """``lhs`` where the mask bit is 1, else ``rhs``; ``tmp`` is 32 bytes of scratch."""
    return elementwise_tiles("tile.sel", lhs, rhs)


def _sels_front(mask: Any, src: Any, tmp: Any, scalar: Any) -> tuple:
    return (mask, src, tmp, _selected_scalar(scalar, as_expr(src).type)), {}


def _selected_scalar(value: Any, source: Any) -> Any:
    """The scalar of ``sels``: a constant takes the element type, in its signed form for unsigned sources."""
    dtype = getattr(source, "dtype", None)
    if isinstance(value, (bool, int, float)):
        number: Any = int(value) if isinstance(value, bool) else value
    else:
        expr = as_expr(value)
        if not isinstance(expr, (ConstInt, ConstFloat)) or dtype is None:
            return expr
        number = expr.value
    if dtype is None:
        return as_expr(number)
    if dtype.is_float():
        return ConstFloat(float(number), dtype, UNKNOWN_SPAN)
    if number != int(number):
        raise ValueError(f"tile.sels got the non-integral scalar {number} for an integer src dtype {dtype}")
    number = int(number)
    if dtype in _SIGNED:
        bits = dtype.get_bit()
        number &= (1 << bits) - 1
        number -= (number >> (bits - 1)) << bits
    return ConstInt(number, _SIGNED.get(dtype, dtype), UNKNOWN_SPAN)


@op(
    "tile.sels", family="compare_select", front=_sels_front, memory=vec(3), layouts=row_major(4), backends=BOTH,
    no_alias_args=(0,), pto="pto.tsels",
    torch=lambda mask, src, tmp, scalar: _select(mask, src, T.call("full_like")(src, _wrapped(scalar, src))),
)  # fmt: skip
def tile_sels(mask: Tile, src: Tile, tmp: Tile, scalar: Scalar) -> Type:
    """``src`` where the mask bit is 1, else the scalar."""
    name = "tile.sels"
    dtype = src.type.dtype
    require(
        mask.type.dtype in MASK_DTYPES, f"{name} requires an integer mask of 8, 16 or 32 bits, got {mask.type.dtype}"
    )
    require(len(mask.type.shape) == 2, f"{name} requires a rank-2 mask, got {S.shape_text(mask.type.shape)}")
    require(len(src.type.shape) == 2, f"{name} requires a rank-2 src, got {S.shape_text(src.type.shape)}")
    require(len(tmp.type.shape) == 2, f"{name} requires a rank-2 tmp, got {S.shape_text(tmp.type.shape)}")
    require_dtype(name, dtype, SELS_DTYPES, "src dtype")
    expected = _SIGNED.get(dtype, dtype)
    if scalar.type.dtype != expected:
        raise ValueError(f"{name} requires scalar dtype {expected} for src dtype {dtype}, but got {scalar.type.dtype}")
    rows, columns = valid_region(src)
    mask_rows, mask_columns = valid_region(mask)
    carrier = S.mul(mask_columns, mask.type.dtype.get_bit() // 8)
    if not (S.provably_le(rows, mask_rows) and S.provably_le(S.ceil_div(columns, 8), carrier)):
        raise ValueError(
            f"{name}: the mask (valid {S.shape_text(valid_region(mask))} of {mask.type.dtype}) does not provably hold "
            f"one bit for each valid cell {S.shape_text((rows, columns))} of src"
        )
    return fresh_like(src)


def _wrapped(scalar: Any, src: Any) -> Any:
    """A signed bit pattern read as the unsigned element type of ``src``."""
    import torch

    if src.dtype in (torch.uint8, torch.uint16, torch.uint32):
        return int(scalar) % (1 << (8 * src.element_size()))
    return scalar
