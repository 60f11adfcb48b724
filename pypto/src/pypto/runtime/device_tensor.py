"""Tensors that live in device memory between runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


class DeviceTensor:
    """A tensor in the memory of one worker. Immutable; ``nbytes`` is derived.

    Raises:
        ValueError: a pointer that is no positive int, an empty or non-positive shape, a foreign buffer.
        TypeError: ``dtype`` is no ``torch.dtype``.
    """

    __slots__ = ("_buffer", "_data_ptr", "_dtype", "_shape")

    def __init__(self, data_ptr: int, shape: Any, dtype: Any, *, buffer: Any = None):
        import torch

        if not isinstance(data_ptr, int) or isinstance(data_ptr, bool) or data_ptr <= 0:
            raise ValueError(f"data_ptr must be a positive int, got {data_ptr!r}")
        shape = check_shape(shape)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype must be a torch.dtype, got {type(dtype).__name__}")
        if buffer is not None and getattr(buffer, "base", None) != data_ptr:
            raise ValueError("the buffer does not start at data_ptr")
        for name, value in (("_data_ptr", data_ptr), ("_shape", shape), ("_dtype", dtype), ("_buffer", buffer)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("DeviceTensor is immutable")

    @property
    def data_ptr(self) -> int:
        return self._data_ptr

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def buffer(self) -> Any:
        return self._buffer

    @property
    def nbytes(self) -> int:
        return math.prod(self._shape) * self._dtype.itemsize

    def __repr__(self) -> str:
        return f"DeviceTensor(shape={self._shape}, dtype={self._dtype}, data_ptr={self._data_ptr:#x})"


def check_shape(shape: Any) -> tuple[int, ...]:
    """Positive ints; ``TypeError`` for other dimensions, ``ValueError`` for an empty shape or one <= 0."""
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)):
        raise TypeError(f"shape must be a sequence of ints, got {type(shape).__name__}")
    shape = tuple(shape)
    if not shape:
        raise ValueError("shape must not be empty")
    for dim in shape:
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"shape dimensions must be ints, got {dim!r}")
        if dim <= 0:
            raise ValueError(f"shape dimensions must be positive, got {dim}")
    return shape
