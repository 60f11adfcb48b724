"""Argument lists of a run: tensors first, then 64-bit scalars."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from simpler_runtime.callables import TensorArgType
from simpler_runtime.tensors import ChipTensor, make_chip_tensor_arg

CHIP_MAX_TENSOR_ARGS = 256
CHIP_MAX_SCALAR_ARGS = 128


def scalar_to_uint64(value: Any) -> int:
    """The 64-bit slot of a scalar: its object bytes in the low bytes, zeroes above.

    A Python float (and numpy's float64, which is one) travels as float32, an int as its low 64 bits, other ctypes and
    numpy scalars with their own width.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"scalar {value} does not fit in 64 bits")
        return value & 0xFFFFFFFFFFFFFFFF
    if isinstance(value, float):
        return int.from_bytes(bytes(ctypes.c_float(value)), "little")
    if isinstance(value, ctypes._SimpleCData):
        return int.from_bytes(bytes(value).ljust(8, b"\0")[:8], "little")
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        raw = value.tobytes()
        if len(raw) > 8:
            raise ValueError(f"a scalar argument has at most 8 bytes, got {len(raw)}")
        return int.from_bytes(raw.ljust(8, b"\0"), "little")
    if hasattr(value, "item"):
        try:
            return scalar_to_uint64(value.item())
        except RuntimeError as error:
            raise TypeError(f"cannot pass this {type(value).__name__} as a scalar argument: {error}") from None
    raise TypeError(f"cannot pass a {type(value).__name__} as a scalar argument")


class _ArgList:
    """Tensors and scalars with the ordering rule and the limits of the orchestration entry."""

    def __init__(self) -> None:
        self._tensors: list[Any] = []
        self._scalars: list[int] = []

    def _append_tensor(self, tensor: Any) -> None:
        if self._scalars:
            raise RuntimeError("all tensors must be added before any scalars")
        if len(self._tensors) >= CHIP_MAX_TENSOR_ARGS:
            raise RuntimeError(f"Too many tensor args (max {CHIP_MAX_TENSOR_ARGS})")
        self._tensors.append(tensor)

    def add_scalar(self, scalar: Any) -> None:
        if len(self._scalars) >= CHIP_MAX_SCALAR_ARGS:
            raise RuntimeError(f"Too many scalar args (max {CHIP_MAX_SCALAR_ARGS})")
        self._scalars.append(scalar_to_uint64(scalar))

    def tensor(self, index: int) -> Any:
        return self._tensors[self._check(index, len(self._tensors), "tensor")]

    def scalar(self, index: int) -> int:
        return self._scalars[self._check(index, len(self._scalars), "scalar")]

    def tensor_count(self) -> int:
        return len(self._tensors)

    def scalar_count(self) -> int:
        return len(self._scalars)

    def clear(self) -> None:
        self._tensors.clear()
        self._scalars.clear()

    def __len__(self) -> int:
        return len(self._tensors) + len(self._scalars)

    def __getitem__(self, index: int) -> Any:
        """Argument by position: tensors, then scalars."""
        count = len(self._tensors)
        position = self._check(index + len(self) if index < 0 else index, len(self), "argument")
        return self._tensors[position] if position < count else self._scalars[position - count]

    @staticmethod
    def _check(index: int, count: int, kind: str) -> int:
        if not 0 <= index < count:
            raise IndexError(f"{kind} index {index} is out of range: there are {count}")
        return index


class ChipStorageTaskArgs(_ArgList):
    """Arguments of a level-2 run. ``add_tensor`` also takes CPU torch tensors and numpy arrays (no copy)."""

    def add_tensor(self, tensor: Any) -> None:
        self._append_tensor(make_chip_tensor_arg(tensor))


class TaskArgs(_ArgList):
    """Arguments with a direction per tensor."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: list[TensorArgType] = []

    def add_tensor(self, tensor: Any, tag: TensorArgType = TensorArgType.INPUT) -> None:
        tag = TensorArgType(tag)
        check_access = getattr(tensor, "check_access", None)
        if check_access is not None:
            check_access(tag)
        self._append_tensor(tensor if check_access is not None else make_chip_tensor_arg(tensor))
        self._tags.append(tag)

    def tag(self, index: int) -> TensorArgType:
        return self._tags[self._check(index, len(self._tags), "tensor")]

    def set_tag(self, index: int, tag: TensorArgType) -> None:
        self._check(index, len(self._tags), "tensor")
        check_access = getattr(self._tensors[index], "check_access", None)
        if check_access is not None:
            check_access(TensorArgType(tag))
        self._tags[index] = TensorArgType(tag)

    def clear(self) -> None:
        super().clear()
        self._tags.clear()

    def copy(self) -> TaskArgs:
        """An independent list of the same arguments."""
        twin = TaskArgs()
        twin._tensors, twin._scalars, twin._tags = list(self._tensors), list(self._scalars), list(self._tags)
        return twin

    def materialized(self) -> TaskArgs:
        """A copy whose tensors are ChipTensor records, which carry addresses."""
        twin = self.copy()
        twin._tensors = [t if isinstance(t, ChipTensor) else t.chip_tensor() for t in self._tensors]
        return twin


def chip_records(args: _ArgList) -> tuple[bytes, bytes]:
    """The packed tensor records and scalar slots of a level-2 call."""
    tensors = b"".join((t if isinstance(t, ChipTensor) else t.chip_tensor()).pack() for t in args._tensors)
    return tensors, struct.pack(f"<{len(args._scalars)}Q", *args._scalars)
