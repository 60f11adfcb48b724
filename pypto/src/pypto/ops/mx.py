"""Block-scaled (MX) products and their scale tiles, quantisation, image columns. Ascend950 only."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, MemorySpace, TileLayout
from pypto.ir.expr import const_index
from pypto.ir.types import TupleType, Type
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Scalar, Shape, Tensor, Tile
from pypto.ops.memory_specs import A5_ONLY, ACC, BIAS, INHERIT, LEFT, LEFT_SCALE, RIGHT, RIGHT_SCALE, acc
from pypto.ops.registry import op
from pypto.ops.rules import (
    elements,
    fresh_tensor,
    fresh_tile,
    product_tile,
    require,
    require_dtype,
    require_rank,
    static_shape,
    valid_region,
)
from pypto.ops.scalars import as_datatype

GROUP = 32  #: elements of K that share one scale
_NEWER = "newer than the August snapshot"


# --- products ----------------------------------------------------------------------------------------------------


def _require_aligned(name: str, what: str, extent: Any, step: int, suffix: str = "") -> None:
    value = S.const(extent)
    if value is not None and (value <= 0 or value % step):
        raise ValueError(f"{name} requires {what} divisible by {step}{suffix}, got {value}")


def _require_equal(name: str, what: str, have: Any, want: Any) -> None:
    if S.provably_different(have, want):
        raise ValueError(f"{name} requires {what}={S.dim_text(want)}, but got {S.dim_text(have)}")


def _check_data(name: str, operand: Any, side: str) -> None:
    require_rank(name, operand, 2, side)
    dtype = operand.type.dtype
    if dtype == DataType.FP4:
        raise ValueError(
            f"{name} requires {side} dtype FP8E4M3FN; native FP4 is not available, convert it with pl.cast first"
        )
    require(dtype == DataType.FP8E4M3FN, f"{name} requires {side} dtype FP8E4M3FN, but got {dtype}")


def _check_scale(name: str, operand: Any, side: str) -> None:
    require_rank(name, operand, 2, side)
    require(
        operand.type.dtype in (DataType.FP8E8M0, DataType.UINT8),
        f"{name} requires {side} dtype FP8E8M0 (or raw UINT8), but got {operand.type.dtype}",
    )


def _mx_product(name: str, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> tuple[tuple, tuple]:
    """(shape, valid region) of a block-scaled product."""
    _check_data(name, lhs, "lhs")
    _check_data(name, rhs, "rhs")
    _check_scale(name, lhs_scale, "lhs_scale")
    _check_scale(name, rhs_scale, "rhs_scale")
    (m, lhs_k), (rhs_k, n) = lhs.type.shape, rhs.type.shape
    _require_aligned(name, "lhs M", m, 16)
    _require_aligned(name, "lhs K", lhs_k, 64)
    _require_aligned(name, "rhs K", rhs_k, 64)
    _require_aligned(name, "physical N", n, 32, " for fp8e4m3fn")
    require(
        not S.provably_different(lhs_k, rhs_k),
        f"{name} requires matching physical inner dimensions, got {S.dim_text(lhs_k)} and {S.dim_text(rhs_k)}",
    )
    _require_equal(name, "lhs_scale physical rows", lhs_scale.type.shape[0], m)
    _require_equal(name, "lhs_scale physical cols", lhs_scale.type.shape[1], S.ceil_div(lhs_k, GROUP))
    _require_equal(name, "rhs_scale physical rows", rhs_scale.type.shape[0], S.ceil_div(rhs_k, GROUP))
    _require_equal(name, "rhs_scale physical cols", rhs_scale.type.shape[1], n)
    (valid_m, valid_k), (rhs_valid_k, valid_n) = valid_region(lhs), valid_region(rhs)
    (scale_m, scale_k), (rhs_scale_k, scale_n) = valid_region(lhs_scale), valid_region(rhs_scale)
    require(
        not S.provably_different(valid_k, rhs_valid_k),
        f"{name} requires matching valid K, got {S.dim_text(valid_k)} and {S.dim_text(rhs_valid_k)}",
    )
    require(S.const(valid_k) != 0, f"{name} requires a positive valid K")
    groups = S.ceil_div(valid_k, GROUP)
    if S.provably_different(groups, S.ceil_div(lhs_k, GROUP)):
        raise ValueError(
            f"{name} requires the scale-group count of valid K ({S.dim_text(groups)}) to equal that of the physical K"
        )
    _require_equal(name, "lhs_scale valid rows", scale_m, valid_m)
    _require_equal(name, "lhs_scale valid cols", scale_k, groups)
    _require_equal(name, "rhs_scale valid rows", rhs_scale_k, groups)
    _require_equal(name, "rhs_scale valid cols", scale_n, valid_n)
    return (m, n), (valid_m, valid_n)


def scaled(data: Any, codes: Any, axis: int) -> Any:
    """Data times ``2 ** (code - 127)`` with one code per 32 elements of ``axis``; FP32."""
    import torch

    octets = codes.contiguous().view(torch.uint8).float()
    factors = torch.where(octets == 255, torch.nan, torch.exp2(octets - 127))
    return data.float() * factors.repeat_interleave(GROUP, axis)


def _mx_value(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any) -> Any:
    return scaled(lhs, lhs_scale, 1) @ scaled(rhs, rhs_scale, 0)


_MX: dict[str, Any] = {"family": "mx", "level": "extended", "backends": A5_ONLY}


@op("tile.matmul_mx", memory=acc(LEFT, LEFT_SCALE, RIGHT, RIGHT_SCALE), pto="pto.tmatmul.mx", torch=_mx_value, **_MX)
def tile_matmul_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile) -> Type:
    """Product of block-scaled FP8 operands, accumulated in FP32."""
    shape, valid = _mx_product("tile.matmul_mx", lhs, lhs_scale, rhs, rhs_scale)
    return product_tile(shape, DataType.FP32, valid)


@op(
    "tile.matmul_mx_acc", memory=acc(ACC, LEFT, LEFT_SCALE, RIGHT, RIGHT_SCALE), effects={0: ArgEffect.ReadWrite},
    result_is_arg=0, pto="pto.tmatmul.mx.acc", torch=lambda target, *mx: target + _mx_value(*mx), **_MX,
)  # fmt: skip
def tile_matmul_mx_acc(acc: Tile, lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile) -> Type:
    """``acc`` plus a block-scaled product, in place."""
    name = "tile.matmul_mx_acc"
    shape, valid = _mx_product(name, lhs, lhs_scale, rhs, rhs_scale)
    require_rank(name, acc, 2, "acc")
    require(acc.type.dtype == DataType.FP32, f"{name} requires accumulator dtype fp32, but got {acc.type.dtype}")
    for what, have, want in zip(("rows", "cols"), acc.type.shape, shape):
        _require_equal(name, f"acc physical {what}", have, want)
    for what, have, want in zip(("rows", "cols"), valid_region(acc), valid):
        _require_equal(name, f"acc valid {what}", have, want)
    return acc.type


@op(
    "tile.matmul_mx_bias", memory=acc(LEFT, LEFT_SCALE, RIGHT, RIGHT_SCALE, BIAS), pto="pto.tmatmul.mx.bias",
    torch=lambda lhs, ls, rhs, rs, bias: _mx_value(lhs, ls, rhs, rs) + bias, **_MX,
)  # fmt: skip
def tile_matmul_mx_bias(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, bias: Tile) -> Type:
    """A block-scaled product plus a ``[1, N]`` bias."""
    name = "tile.matmul_mx_bias"
    shape, valid = _mx_product(name, lhs, lhs_scale, rhs, rhs_scale)
    require_rank(name, bias, 2, "bias")
    require(bias.type.dtype == DataType.FP32, f"{name} requires bias dtype fp32, but got {bias.type.dtype}")
    _require_equal(name, "bias physical rows", bias.type.shape[0], const_index(1))
    _require_equal(name, "bias physical cols", bias.type.shape[1], shape[1])
    _require_equal(name, "bias valid cols", valid_region(bias)[1], valid[1])
    return product_tile(shape, DataType.FP32, valid)


_PAIRS = {MemorySpace.LeftScale: MemorySpace.Left, MemorySpace.RightScale: MemorySpace.Right}


@op(
    "tile.tget_scale_addr", memory=INHERIT, effects={0: ArgEffect.Write}, result_is_arg=0, pto="pto.tget_scale_addr",
    pto_operands=lambda call: [call.args[1]], **_MX,
)  # fmt: skip
def tile_tget_scale_addr(dst_scale: Tile, src: Tile) -> Type:
    """Bind a scale tile to the address that belongs to its data tile; inserted by the compiler."""
    name = "tile.tget_scale_addr"
    space, data = dst_scale.type.memory_space, src.type.memory_space
    require(space is not None and data is not None, f"{name} requires resolved dst_scale and src memory spaces")
    require(
        _PAIRS.get(space) is data,
        f"{name} requires LeftScale↔Left or RightScale↔Right, got {space.name} and {data.name}",
    )
    require_rank(name, src, 2, "src")
    require(src.type.dtype == DataType.FP8E4M3FN, f"{name} requires src dtype FP8E4M3FN, but got {src.type.dtype}")
    require_rank(name, dst_scale, 2, "dst_scale")
    have = dst_scale.type.dtype
    require(have == DataType.FP8E8M0, f"{name} requires dst_scale dtype FP8E8M0, but got {have}")
    valid_region(dst_scale)
    valid_region(src)
    rows, cols = src.type.shape
    left = space is MemorySpace.LeftScale
    wanted = (rows, S.ceil_div(cols, GROUP)) if left else (S.ceil_div(rows, GROUP), cols)
    for what, have, want in zip(("rows", "cols"), dst_scale.type.shape, wanted):
        _require_equal(name, f"dst_scale physical {what}", have, want)
    return dst_scale.type


# --- quantisation ------------------------------------------------------------------------------------------------


def _quant_front(src: Any, *, dtype: Any = DataType.FP8E4M3FN, group_axis: int = 1) -> tuple:
    return (src,), {"dtype": as_datatype(dtype), "group_axis": group_axis}


def _quantised(src: Any, dtype: DataType = DataType.FP8E4M3FN, group_axis: int = 1) -> Any:
    """(payload, scale codes): per group of 32 the exponent of the largest magnitude, minus 8."""
    import torch

    x = src.float()
    groups = x.reshape(x.shape[0], -1, GROUP)
    peak = groups.abs().amax(-1)
    exponent = torch.frexp(peak)[1] - 1 + 127
    codes = torch.where(peak > 0, exponent - 8, torch.zeros_like(exponent)).clamp(0, 254)
    payload = (groups * torch.exp2(127.0 - codes)[..., None]).clamp(-448, 448).reshape(x.shape)
    payload, codes = payload.to(torch.float8_e4m3fn), codes.to(torch.uint8)
    if group_axis == 0:
        payload, codes = payload.view(torch.uint8).mT.contiguous().view(torch.float8_e4m3fn), codes.mT.contiguous()
    return payload, codes.view(torch.float8_e8m0fnu)


@op(
    "tile.tquant_mx", front=_quant_front, python_name="quant_mx", outputs=2, keep=("dtype", "group_axis"),
    status=_NEWER, torch=_quantised, **_MX,
)  # fmt: skip
def tile_tquant_mx(src: Tile, *, dtype: Attr[DataType] = DataType.FP8E4M3FN, group_axis: Attr[int] = 1) -> Type:
    """Block-32 quantisation: payload and E8M0 scales; ``group_axis=0`` transposes ``[N, K]`` to ``[K, N]``."""
    name = "tile.tquant_mx"
    require_rank(name, src, 2, "src")
    require_dtype(name, src.type.dtype, (DataType.FP16, DataType.BF16, DataType.FP32), "src dtype")
    require_dtype(name, dtype, (DataType.FP8E4M3FN,), "dtype")
    require(group_axis in (0, 1), f"{name} requires group_axis 0 or 1, got {group_axis}")
    rows, k = src.type.shape
    _require_aligned(name, "K", k, 64)
    _require_aligned(name, "M" if group_axis else "N", rows, 16 if group_axis else 32)
    require(S.all_equal(valid_region(src), src.type.shape), f"{name} requires a fully valid src")
    groups = S.ceil_div(k, GROUP)
    data, scale = ((rows, k), (rows, groups)) if group_axis else ((k, rows), (groups, rows))
    return TupleType((fresh_tile(data, dtype), fresh_tile(scale, DataType.FP8E8M0)))


@op("tile.tquant_mx_raw", python_name="", outputs=2, status=_NEWER, **_MX)
def tile_tquant_mx_raw(src: Tile) -> Type:
    """Raw form of the quantisation: INT8 payload and UINT8 exponents; inserted by the compiler."""
    rows, k = src.type.shape
    exponents = fresh_tile((rows, S.ceil_div(k, GROUP)), DataType.UINT8)
    return TupleType((fresh_tile((rows, k), DataType.INT8), exponents))


@op("tile.tmov_x2zz", python_name="", status=_NEWER, **_MX)
def tile_tmov_x2zz(src: Tile) -> Type:
    """Exponents reordered into the layout of a left scale tile; inserted by the compiler."""
    layout = (TileLayout.row_major, TileLayout.row_major, 32)
    return fresh_tile(src.type.shape, DataType.UINT8, layout=layout)


# --- image columns -----------------------------------------------------------------------------------------------

IMG2COL_DTYPES = (DataType.FP16, DataType.BF16, DataType.FP32, DataType.INT8)


def _check_geometry(
    name: str, src: Any, pos_m: Any, pos_k: Any, shape: Any, image_shape: tuple, kernel_size: tuple, stride: tuple,
    padding: tuple, dilation: tuple,
) -> None:  # fmt: skip
    require_rank(name, src, 2, "src")
    require_dtype(name, src.type.dtype, IMG2COL_DTYPES, "src dtype")
    static_shape(name, shape)
    require(S.all_equal(valid_region(src), src.type.shape), f"{name} requires a fully valid src")
    require(len(image_shape) == 2, f"{name} requires image_shape (H, W), got {image_shape}")
    require(all(0 < k < 512 for k in kernel_size), f"{name} requires kernel_size in 1 to 511, got {kernel_size}")
    require(all(s >= 1 for s in stride), f"{name} requires stride >= 1, got {stride}")
    require(all(0 <= p < 256 for p in padding), f"{name} requires padding in 0 to 255, got {padding}")
    require(all(0 < d < 256 for d in dilation), f"{name} requires dilation in 1 to 255, got {dilation}")
    height, width = image_shape
    rows = S.const(src.type.shape[0])
    require(rows in (None, height * width), f"{name} requires src rows to be H * W = {height * width}, got {rows}")
    lanes = 32 // src.type.dtype.get_byte()
    for what, value, step in (("pos_m", pos_m, 16), ("pos_k", pos_k, lanes)):
        number = S.const(value)
        require(
            number is None or (number >= 0 and number % step == 0),
            f"{name} requires {what} to be a non-negative multiple of {step}, got {number}",
        )


def _unfolded(
    src: Any, pos_m: Any, pos_k: Any, shape: Any, image_shape: tuple, kernel_size: tuple, stride: tuple = (1, 1),
    padding: tuple = (0, 0, 0, 0), dilation: tuple = (1, 1),
) -> Any:  # fmt: skip
    import torch
    from torch.nn import functional as F

    channels = src.shape[1]
    image = src.reshape(1, *image_shape, channels).permute(0, 3, 1, 2).float()
    top, bottom, left, right = padding
    columns = F.unfold(F.pad(image, (left, right, top, bottom)), kernel_size, dilation, 0, stride)
    taps = kernel_size[0] * kernel_size[1]
    matrix = columns.reshape(channels, taps, -1).permute(2, 1, 0).reshape(-1, taps * channels).to(src.dtype)
    out = torch.zeros(tuple(shape), dtype=src.dtype)
    part = matrix[int(pos_m) : int(pos_m) + shape[0], int(pos_k) : int(pos_k) + shape[1]]
    out[: part.shape[0], : part.shape[1]] = part
    return out


@op("tile.img2col", family="conv", level="extended", status=_NEWER, torch=_unfolded)
def tile_img2col(
    src: Tile, pos_m: Scalar, pos_k: Scalar, shape: Shape, *, image_shape: Attr[tuple], kernel_size: Attr[tuple],
    stride: Attr[tuple] = (1, 1), padding: Attr[tuple] = (0, 0, 0, 0), dilation: Attr[tuple] = (1, 1),
) -> Type:  # fmt: skip
    """A window of the unfolded matrix of an image stored ``[H * W, C]`` in Mat."""
    _check_geometry("tile.img2col", src, pos_m, pos_k, shape, image_shape, kernel_size, stride, padding, dilation)
    layout = (TileLayout.row_major, TileLayout.row_major, 512)
    return fresh_tile(elements(shape), src.type.dtype, (), MemorySpace.Left, layout=layout)


@op("tensor.img2col", family="conv", level="extended", status=_NEWER, converts_to="tile.img2col", torch=_unfolded)
def tensor_img2col(
    src: Tensor, pos_m: Scalar, pos_k: Scalar, shape: Shape, *, image_shape: Attr[tuple], kernel_size: Attr[tuple],
    stride: Attr[tuple] = (1, 1), padding: Attr[tuple] = (0, 0, 0, 0), dilation: Attr[tuple] = (1, 1),
) -> Type:  # fmt: skip
    """A window of the unfolded matrix of an image stored ``[H * W, C]``."""
    _check_geometry("tensor.img2col", src, pos_m, pos_k, shape, image_shape, kernel_size, stride, padding, dilation)
    return fresh_tensor(elements(shape), src.type.dtype)
