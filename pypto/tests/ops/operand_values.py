"""Variables of the operator tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir import (
    ConstInt,
    DataType,
    DistributedTensorType,
    MakeTuple,
    MemorySpace,
    ScalarType,
    TensorLayout,
    TensorType,
    TensorView,
    TileType,
    TileView,
    Var,
)

FP16, FP32, BF16 = DataType.FP16, DataType.FP32, DataType.BF16
INT8, INT16, INT32, UINT8, INDEX = DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8, DataType.INDEX
INT64, UINT32, BOOL, FP4 = DataType.INT64, DataType.UINT32, DataType.BOOL, DataType.FP4


def tile(
    shape: Sequence[Any],
    dtype: DataType = FP32,
    valid: Sequence[Any] | None = None,
    space: MemorySpace | None = MemorySpace.Vec,
    name: str = "t",
    **view: Any,
) -> Var:
    """A tile variable; ``valid`` narrows it, ``view`` sets other view fields."""
    described = None
    if valid is not None or view:
        base = TileType(shape, dtype, None, None, space).get_effective_tile_view()
        fields = {"blayout": base.blayout, "slayout": base.slayout, "fractal": base.fractal, **view}
        described = TileView(valid_shape=valid if valid is not None else shape, **fields)
    return Var(name, TileType(shape, dtype, None, described, space))


def tensor(shape: Sequence[Any], dtype: DataType = FP32, valid: Sequence[Any] | None = None, name: str = "x") -> Var:
    """A tensor variable; ``valid`` narrows it."""
    view = None if valid is None else TensorView([], TensorLayout.ND, valid_shape=valid)
    return Var(name, TensorType(shape, dtype, None, view))


def scalar(dtype: DataType = INDEX, name: str = "n") -> Var:
    return Var(name, ScalarType(dtype))


def window(shape: Sequence[Any], dtype: DataType = FP32, name: str = "w") -> Var:
    """A window-bound tensor."""
    return Var(name, DistributedTensorType(shape, dtype))


def indices(*values: Any) -> MakeTuple:
    """A shape or offset operand of an IR call."""
    return MakeTuple([ConstInt(v, INDEX) if isinstance(v, int) else v for v in values])


def numbers(dims: Sequence[Any]) -> list[Any]:
    """Constants as numbers, other extents as they are."""
    return [getattr(d, "value", d) for d in dims]


def shape_of(call: Any) -> list[Any]:
    return numbers(call.type.shape)


def valid_of(call: Any) -> list[Any]:
    return numbers(call.type.valid_shape)
