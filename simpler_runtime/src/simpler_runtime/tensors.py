"""Tensor arguments of a run: ChipTensor (an address with a layout) and how torch and numpy tensors become one."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from simpler_runtime.data_types import MAX_TENSOR_DIMS, DataType, get_element_size, torch_dtype_to_datatype

_RECORD = struct.Struct("<QQQQiIBBBB5IQ5I36x")  # the ChipTensor of tensor.h
RECORD_BYTES = _RECORD.size
_NO_OWNER = 0xFFFFFFFFFFFFFFFF


def whole_number(what: str, value: Any) -> int:
    """The value as an int. TypeError for anything that is no integer, such as 1.5 or "3"."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, got {value!r}") from None


def check_shape(shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape as a tuple; ValueError unless it has 1 to 5 non-negative dimensions, TypeError unless they are ints."""
    if not isinstance(shapes, Iterable) or isinstance(shapes, (str, bytes)):
        raise TypeError(f"a shape is a sequence of ints, got {type(shapes).__name__}")
    shape = tuple(whole_number("an extent", extent) for extent in shapes)
    if not 1 <= len(shape) <= MAX_TENSOR_DIMS:
        raise ValueError(f"a tensor has 1 to {MAX_TENSOR_DIMS} dimensions, got shape {shape}")
    if any(extent < 0 or extent > 0xFFFFFFFF for extent in shape):
        raise ValueError(f"every extent must be in [0, 2**32), got shape {shape}")
    return shape


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(max(stride, 1))
        stride *= extent
    return tuple(reversed(strides))


class ChipTensor:
    """Memory of the simulated chip (which is host memory) with a shape and an element type.

    ``data`` is the address of the first element. ``strides`` and ``start_offset`` are in elements.
    """

    __slots__ = ("_record", "_shape", "_strides", "child_memory", "data", "dtype", "keep_alive")

    def __init__(self) -> None:
        raise TypeError("use ChipTensor.make(data, shapes, dtype)")

    @classmethod
    def make(cls, data: int, shapes: Sequence[int], dtype: DataType, child_memory: bool = False) -> ChipTensor:
        """A contiguous tensor at address ``data``. ``child_memory`` marks memory of the chip itself."""
        return cls._make(
            whole_number("an address", data), check_shape(shapes), None, DataType(dtype), bool(child_memory), None
        )

    @classmethod
    def _make(
        cls,
        data: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        dtype: DataType,
        child_memory: bool,
        keep_alive: Any,
    ) -> ChipTensor:
        self = object.__new__(cls)
        self.data = data
        self._shape = shape
        self._strides = strides if strides is not None else row_major_strides(shape)
        self.dtype = dtype
        self.child_memory = child_memory
        self.keep_alive = keep_alive
        return self

    @property
    def shapes(self) -> tuple[int, ...]:
        return self._shape

    @shapes.setter
    def shapes(self, value: Sequence[int]) -> None:
        self._shape = check_shape(value)
        self._strides = row_major_strides(self._shape)

    @property
    def ndims(self) -> int:
        return len(self._shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return self._strides

    @property
    def start_offset(self) -> int:
        return 0

    @property
    def is_contiguous(self) -> bool:
        expected = row_major_strides(self._shape)
        return all(n == 1 or s == e for n, s, e in zip(self._shape, self._strides, expected)) or 0 in self._shape

    def nbytes(self) -> int:
        count = 1
        for extent in self._shape:
            count *= extent
        return count * get_element_size(self.dtype)

    def pack(self) -> bytes:
        """The 128-byte record that orchestration code and kernels see."""
        shape, strides = self._shape, self._strides
        extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        fill = (1,) * (MAX_TENSOR_DIMS - len(shape))
        return _RECORD.pack(
            self.data, extent * get_element_size(self.dtype), _NO_OWNER, 0, 0, len(shape),
            self.dtype, 0, self.is_contiguous, self.child_memory, *shape, *fill, extent, *strides, *fill,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"ChipTensor(data=0x{self.data:x}, shapes={self._shape}, dtype={self.dtype.name})"


def make_chip_tensor_arg(tensor: Any) -> ChipTensor:
    """A ChipTensor on the storage of a CPU torch tensor or numpy array, without a copy.

    Raises TypeError for other objects and for tensors that are not in CPU memory, ValueError for a layout the runtime
    cannot name (rank above 5, zero or negative strides), KeyError for an unknown element type. A rank-0 tensor
    becomes shape (1,).
    """
    if isinstance(tensor, ChipTensor):
        return tensor
    if hasattr(tensor, "data_ptr"):
        if getattr(tensor, "device", None) is not None and tensor.device.type != "cpu":
            raise TypeError(f"the tensor is on device {tensor.device}; the simulated chip needs CPU memory")
        address, shape, strides = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())
    elif hasattr(tensor, "__array_interface__"):
        itemsize = tensor.dtype.itemsize
        address, shape = tensor.__array_interface__["data"][0], tuple(tensor.shape)
        if any(stride % itemsize for stride in tensor.strides):
            raise ValueError(f"byte strides {tensor.strides} are not whole elements of {itemsize} bytes")
        strides = tuple(stride // itemsize for stride in tensor.strides)
    else:
        raise TypeError(f"expected a torch tensor, a numpy array or a ChipTensor, got {type(tensor).__name__}")
    if not shape:
        shape, strides = (1,), (1,)
    shape = check_shape(shape)
    if address == 0 and 0 not in shape:
        raise ValueError(f"the {type(tensor).__name__} of shape {shape} has no memory")
    strides = tuple(1 if n == 1 and s <= 0 else s for n, s in zip(shape, strides))
    if 0 in shape:
        strides = row_major_strides(shape)
    if any(stride <= 0 for stride in strides):
        raise ValueError(
            f"strides {strides} of shape {shape} must be positive: expanded or flipped tensors need a copy"
        )
    return ChipTensor._make(address, shape, strides, torch_dtype_to_datatype(tensor.dtype), False, tensor)
