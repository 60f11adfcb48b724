"""Types of annotation objects that were built by Python, such as an alias ``T = pl.Tensor[[8], pl.FP32]``."""

from __future__ import annotations

from typing import Any

from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    Type,
)
from pypto.language.typing import values as V
from pypto.language.typing.dynamic import DynVar


def type_of_annotation_object(value: Any) -> Type | None:
    """The IR type of a finished annotation object, None for anything else."""
    if isinstance(value, Type):
        return value
    if not isinstance(value, V._Value):
        return None
    if isinstance(value, V.Tensor) and value.dtype is not None:
        cls = DistributedTensorType if isinstance(value, V.DistributedTensor) else TensorType
        view = value.tensor_view
        if view is None and value.layout is not None:
            view = TensorView(layout=value.layout)
        return cls(_dims(value.shape), value.dtype, value.memref, view)
    if isinstance(value, V.Tile) and value.dtype is not None:
        return TileType(_dims(value.shape), value.dtype, value.memref, value.tile_view, value.memory_space)
    if isinstance(value, V.Scalar) and value.dtype is not None:
        return ScalarType(value.dtype)
    if isinstance(value, V.Array) and value.dtype is not None:
        return ArrayType(value.dtype, value.extent)
    if isinstance(value, V.Tuple):
        members = [type_of_annotation_object(t) for t in value.types]
        return None if any(m is None for m in members) else TupleType(tuple(members))
    return None


def _dims(shape: Any) -> list[Any]:
    return [d.var if isinstance(d, DynVar) else d for d in shape]
