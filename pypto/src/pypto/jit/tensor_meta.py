"""Shapes and element types of sample tensors, read without importing torch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import TensorLayout

#: ``str(tensor.dtype)`` -> element type.
TORCH_DTYPES: dict[str, DataType] = {
    "torch.float16": DataType.FP16,
    "torch.float32": DataType.FP32,
    "torch.bfloat16": DataType.BF16,
    "torch.int8": DataType.INT8,
    "torch.int16": DataType.INT16,
    "torch.int32": DataType.INT32,
    "torch.int64": DataType.INT64,
    "torch.uint8": DataType.UINT8,
    "torch.bool": DataType.BOOL,
    "torch.float8_e4m3fn": DataType.FP8E4M3FN,
    "torch.float8_e5m2": DataType.FP8E5M2,
    "torch.float8_e8m0fnu": DataType.FP8E8M0,
    "torch.float4_e2m1fn_x2": DataType.FP4,
}


@dataclass(frozen=True)
class TensorMeta:
    """What specialisation knows about one tensor argument; symbolic extents are None once an entry has bound it."""

    shape: tuple
    dtype: DataType
    layout: TensorLayout | None = None

    def static_shape(self) -> tuple:
        """The extents, None where they are symbolic."""
        return self.shape

    def dynamic_dim_indices(self) -> set[int]:
        """The axes with a symbolic extent."""
        return {axis for axis, extent in enumerate(self.shape) if extent is None}

    def with_dynamic(self, axes: Collection[int]) -> TensorMeta:
        """The same with symbolic extents on these axes."""
        shape = tuple(None if axis in axes else extent for axis, extent in enumerate(self.shape))
        return TensorMeta(shape, self.dtype, self.layout)


def is_tensor(value: Any) -> bool:
    """True for torch tensors and device tensors: objects with a shape and a torch dtype."""
    return hasattr(value, "shape") and str(getattr(value, "dtype", "")).startswith("torch.")


def meta_of(value: Any) -> TensorMeta:
    """Shape and dtype of a tensor argument.

    Raises:
        TypeError: an element type without a counterpart, or a packed FP4 tensor without elements.
    """
    dtype = TORCH_DTYPES.get(str(value.dtype))
    if dtype is None:
        raise TypeError(
            f"Unsupported torch dtype {value.dtype}. Supported: float16, float32, bfloat16, int8/16/32/64, uint8, "
            "bool, float8_e4m3fn/e5m2/e8m0fnu, float4_e2m1fn_x2 (where torch supports them)."
        )
    shape = tuple(int(d) for d in value.shape)
    if dtype == DataType.FP4:
        if not shape or shape[-1] < 1:
            raise TypeError(
                "a float4_e2m1fn_x2 tensor needs rank >= 1 and a positive runtime x2 carrier last dimension"
            )
        shape = (*shape[:-1], shape[-1] * 2)
    return TensorMeta(shape, dtype)
