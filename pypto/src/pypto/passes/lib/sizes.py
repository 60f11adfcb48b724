"""Bytes of tiles and tensors."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import const_value
from pypto.ir.types import ShapedType, TileType
from pypto.passes.lib.scalars import align, product


def element_bytes(count: int, dtype: DataType) -> int:
    """Bytes of ``count`` elements; sub-byte elements are packed."""
    bits = dtype.get_bit()
    return count * (bits // 8) if bits % 8 == 0 else -(-count * max(bits, 1) // 8) if bits != 1 else count


def shaped_bytes(kind: ShapedType, acc_row_alignment: int = 16) -> int | None:
    """Bytes of a packed tensor or tile, None with a symbolic extent.

    Rows of an Acc tile are rounded up to the accumulator's row alignment; every other space is sized exactly.
    """
    count = product(kind.shape)
    if count is None:
        return None
    if isinstance(kind, TileType) and kind.memory_space is MemorySpace.Acc and kind.shape:
        rows = const_value(kind.shape[0]) if len(kind.shape) == 2 else None
        if rows:
            count = count // rows * align(rows, acc_row_alignment)
    return element_bytes(count, kind.dtype)
