"""Buffers that a worker owns and tensors that name a part of one.

All memory of the simulated chips is memory of this process, so a tensor can be turned into an address anywhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
from collections.abc import Sequence
from enum import IntFlag
from typing import Any

from simpler_runtime.callables import TensorArgType
from simpler_runtime.data_types import DataType, get_element_size
from simpler_runtime.tensors import ChipTensor, check_shape, make_chip_tensor_arg, row_major_strides

_buffer_ids = itertools.count(1)


class Access(IntFlag):
    READ = 1
    WRITE = 2
    READWRITE = 3


_NEEDED = {
    TensorArgType.INPUT: Access.READ,
    TensorArgType.OUTPUT: Access.WRITE,
    TensorArgType.OUTPUT_EXISTING: Access.WRITE,
    TensorArgType.INOUT: Access.READWRITE,
    TensorArgType.NO_DEP: Access(0),
}


class _SharedMemory:
    """The mapping behind a buffer; ``buf`` is its writable memory view."""

    def __init__(self, nbytes: int) -> None:
        # Shared and anonymous: no name that could leak, zero pages, and children of a fork see the same bytes.
        try:
            self._map = mmap.mmap(-1, nbytes)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"cannot allocate {nbytes} bytes: {error}") from None
        self.buf = memoryview(self._map)
        self.size = nbytes

    @property
    def address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def close(self) -> None:
        self.buf.release()
        # While somebody still holds a view, the mapping stays and goes with the last one.
        with contextlib.suppress(BufferError):
            self._map.close()


class Buffer:
    """A range of memory with an owner. ``chip`` is the worker index for device memory, None for host memory."""

    def __init__(
        self,
        address: int,
        nbytes: int,
        *,
        owner: Any,
        chip: int | None = None,
        access: Access = Access.READWRITE,
        shm: _SharedMemory | None = None,
        keep_alive: Any = None,
    ) -> None:
        self.base = address
        self.nbytes = nbytes
        self.owner = owner
        self.chip = chip
        self.access = access
        self.shm = shm
        self.keep_alive = keep_alive
        self.buffer_id = next(_buffer_ids)
        self.closed = False

    @classmethod
    def allocate(cls, nbytes: int, *, owner: Any, chip: int | None = None) -> Buffer:
        """Fresh zeroed memory. ValueError unless ``nbytes`` is a positive int."""
        if not isinstance(nbytes, int) or isinstance(nbytes, bool) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        shm = _SharedMemory(nbytes)
        return cls(shm.address, nbytes, owner=owner, chip=chip, shm=shm)

    def tensor(
        self,
        shapes: Sequence[int],
        dtype: DataType,
        *,
        byte_offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> Tensor:
        """A view of this buffer. ValueError when it does not fit."""
        return Tensor(self, byte_offset, check_shape(shapes), strides, DataType(dtype))

    def close(self) -> None:
        """Gives the memory back; using the buffer afterwards is an error."""
        if self.closed:
            return
        self.closed = True
        if self.shm is not None:
            self.shm.close()
        self.keep_alive = None

    def require_open(self) -> None:
        if self.closed:
            raise ValueError(f"buffer {self.buffer_id} has been freed")

    def __repr__(self) -> str:
        place = "host" if self.chip is None else f"chip {self.chip}"
        return f"Buffer(id={self.buffer_id}, nbytes={self.nbytes}, {place})"


class Tensor:
    """A typed, strided view of a Buffer. Immutable; it holds no address of its own."""

    __slots__ = ("buffer", "byte_offset", "dtype", "shapes", "strides")

    def __init__(
        self, buffer: Buffer, byte_offset: int, shapes: tuple[int, ...], strides: Sequence[int] | None, dtype: DataType
    ) -> None:
        buffer.require_open()
        layout = tuple(strides) if strides is not None else row_major_strides(shapes)
        if len(layout) != len(shapes) or any(stride <= 0 for stride in layout):
            raise ValueError(f"strides {layout} do not belong to shape {shapes}: one positive stride per dimension")
        extent = 0 if 0 in shapes else 1 + sum((n - 1) * s for n, s in zip(shapes, layout))
        nbytes = extent * get_element_size(dtype)
        if byte_offset < 0 or byte_offset + nbytes > buffer.nbytes:
            raise ValueError(
                f"a tensor of {nbytes} bytes at byte offset {byte_offset} does not fit in {buffer.nbytes} bytes"
            )
        for name, value in (
            ("buffer", buffer),
            ("byte_offset", byte_offset),
            ("shapes", shapes),
            ("strides", layout),
            ("dtype", dtype),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Tensor is immutable")

    @property
    def ndims(self) -> int:
        return len(self.shapes)

    @property
    def address(self) -> int:
        self.buffer.require_open()
        return self.buffer.base + self.byte_offset

    def nbytes(self) -> int:
        count = get_element_size(self.dtype)
        for extent in self.shapes:
            count *= extent
        return count

    def check_access(self, tag: TensorArgType) -> None:
        """ValueError when the buffer does not allow what the tag does."""
        needed = _NEEDED[tag]
        if needed & ~self.buffer.access:
            raise ValueError(f"{tag.name} needs {needed.name} access, {self.buffer!r} allows {self.buffer.access.name}")

    def chip_tensor(self) -> ChipTensor:
        """The record a chip sees."""
        return ChipTensor._make(self.address, self.shapes, self.strides, self.dtype, self.buffer.chip is not None, self)

    def __repr__(self) -> str:
        return f"Tensor({self.buffer!r}, byte_offset={self.byte_offset}, shapes={self.shapes}, dtype={self.dtype.name})"


def host_memory(data: Any) -> tuple[int, int]:
    """Address and byte count of host data: a Buffer, a contiguous torch or numpy tensor, or a writable buffer object.

    TypeError for anything else, ValueError when it is not contiguous.
    """
    if isinstance(data, Buffer):
        data.require_open()
        return data.base, data.nbytes
    if hasattr(data, "data_ptr") or hasattr(data, "__array_interface__"):
        record = make_chip_tensor_arg(data)
        if not record.is_contiguous:
            raise ValueError("the host tensor must be contiguous")
        return record.data, record.nbytes()
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"expected a Buffer, a tensor or a buffer object, got {type(data).__name__}") from None
    if not view.contiguous:
        raise ValueError("the host buffer must be contiguous")
    if view.readonly:
        raise TypeError("the host buffer must be writable (bytes objects are not)")
    return ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view)), view.nbytes


def wrap_host_tensor(tensor: Any, owner: Any, shapes: Any = None, dtype: Any = None, strides: Any = None) -> Tensor:
    """A Tensor over the memory of a torch or numpy tensor, optionally with another layout of the same storage."""
    record = make_chip_tensor_arg(tensor)
    shape = check_shape(shapes) if shapes is not None else record.shapes
    layout = tuple(strides) if strides is not None else (record.strides if shapes is None else None)
    extent = 0 if 0 in record.shapes else 1 + sum((n - 1) * s for n, s in zip(record.shapes, record.strides))
    backing = Buffer(record.data, extent * get_element_size(record.dtype), owner=owner, keep_alive=tensor)
    return Tensor(backing, 0, shape, layout, record.dtype if dtype is None else DataType(dtype))
