"""Filling the cells outside the valid region."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import ArgEffect, PadValue
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Shape, Tensor, Tile
from pypto.ops.memory_specs import BOTH, vec
from pypto.ops.padding import pad_policy
from pypto.ops.registry import op
from pypto.ops.rules import elements, fresh_tensor, fresh_tile, require


def _tile_front(tile: Any, pad_value: Any = PadValue.zero) -> tuple:
    return (tile,), {"pad_value": pad_policy(pad_value)}


def _tensor_front(tensor: Any, pad_value: Any = PadValue.zero) -> tuple:
    return (tensor,), {"pad_value": pad_policy(pad_value)}


def _tile_expand_front(tile: Any, shape: Any, pad_value: Any = PadValue.zero) -> tuple:
    return (tile, shape), {"pad_value": pad_policy(pad_value)}


def _tensor_expand_front(tensor: Any, shape: Any, pad_value: Any = PadValue.zero) -> tuple:
    return (tensor, shape), {"pad_value": pad_policy(pad_value)}


def _unchanged(x: Any, **_: Any) -> Any:
    """On dense data every cell is valid, so nothing is filled; callers with a region apply ``fill``."""
    return x.clone()


def fill(x: Any, valid_shape: Any, pad_value: PadValue) -> Any:
    """``x`` with every cell outside ``valid_shape`` set to the number of ``pad_value``."""
    import torch

    out = torch.full_like(x, T.pad_number(pad_value, x.dtype))
    box = tuple(slice(0, int(v)) for v in valid_shape)
    out[box] = x[box]
    return out


def _expanded(x: Any, shape: Any, pad_value: PadValue = PadValue.zero) -> Any:
    import torch

    out = torch.full(tuple(shape), T.pad_number(pad_value, x.dtype), dtype=x.dtype)
    out[tuple(slice(0, n) for n in x.shape)] = x
    return out


@op(
    "tile.fillpad", family="fillpad", front=_tile_front, memory=vec(1), backends=BOTH, pto="pto.tfillpad",
    keep=("pad_value",), torch=_unchanged,
)  # fmt: skip
def tile_fillpad(tile: Tile, pad_value: Attr[PadValue] = PadValue.zero) -> Type:
    """A fully valid copy whose cells outside the valid region hold the pad value."""
    return fresh_tile(tile.type.shape, tile.type.dtype, pad=pad_policy(pad_value), **_space(tile))


@op(
    "tile.fillpad_inplace", family="fillpad", front=_tile_front, memory=vec(1), backends=BOTH, pto="pto.tfillpad",
    keep=("pad_value",), effects={0: ArgEffect.ReadWrite}, result_is_arg=0, torch=_unchanged,
)  # fmt: skip
def tile_fillpad_inplace(tile: Tile, pad_value: Attr[PadValue] = PadValue.zero) -> Type:
    """As fillpad, in the buffer of the operand."""
    return fresh_tile(tile.type.shape, tile.type.dtype, pad=pad_policy(pad_value), **_space(tile))


def _space(tile: Any) -> dict:
    """Mat tiles are padded in place of Vec ones when the operand already lives there."""
    from pypto.ir.enums import MemorySpace

    return {"memory_space": MemorySpace.Mat} if tile.type.memory_space is MemorySpace.Mat else {}


@op(
    "tile.fillpad_expand", family="fillpad", level="extended", front=_tile_expand_front, memory=vec(1),
    inplace_safe=False, backends=BOTH, pto="pto.tfillpad_expand", keep=("pad_value",),
    pto_operands=lambda call: [call.args[0]], torch=_expanded,
)  # fmt: skip
def tile_fillpad_expand(tile: Tile, shape: Shape, pad_value: Attr[PadValue] = PadValue.zero) -> Type:
    """A larger, fully valid tile: the valid data in the top-left corner, the pad value elsewhere."""
    _check_larger("tile.fillpad_expand", tile, shape)
    return fresh_tile(elements(shape), tile.type.dtype, pad=pad_policy(pad_value))


@op(
    "tensor.fillpad", family="fillpad", front=_tensor_front, converts_to="custom", keep=("pad_value",),
    torch=_unchanged,
)  # fmt: skip
def tensor_fillpad(tensor: Tensor, pad_value: Attr[PadValue] = PadValue.zero) -> Type:
    """A fully valid copy whose cells outside the valid region hold the pad value."""
    pad_policy(pad_value)
    return fresh_tensor(tensor.type.shape, tensor.type.dtype)


@op(
    "tensor.fillpad_expand", family="fillpad", level="extended", front=_tensor_expand_front, converts_to="custom",
    keep=("pad_value",), torch=_expanded,
)  # fmt: skip
def tensor_fillpad_expand(tensor: Tensor, shape: Shape, pad_value: Attr[PadValue] = PadValue.zero) -> Type:
    """A larger, fully valid tensor: the valid data in the top-left corner, the pad value elsewhere."""
    _check_larger("tensor.fillpad_expand", tensor, shape)
    return fresh_tensor(elements(shape), tensor.type.dtype, pad=pad_policy(pad_value))


def _check_larger(name: str, source: Any, shape: Any) -> None:
    have, want = source.type.shape, elements(shape)
    require(len(have) == len(want), f"{name} requires a shape of rank {len(have)}, got {S.shape_text(want)}")
    for axis, (size, extent) in enumerate(zip(have, want)):
        if S.provably_lt(extent, size):
            raise ValueError(
                f"{name}: dimension {axis} ({S.dim_text(extent)}) must be >= source dimension {S.dim_text(size)}"
            )
