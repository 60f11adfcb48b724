"""Tiles of allocations with several slots, when the assembler places memory.

Such an allocation is one ``pto.alloc_multi_tile`` at the head of the function and a ``pto.multi_tile_get`` per tile.
"""

from __future__ import annotations

import msgspec

from pypto.codegen.pto.types import tile_buf_text
from pypto.errors import user_error
from pypto.ir import Expr, MemorySpace, Span, TileType, Var
from pypto.ir.expr import ConstInt

#: How many slots the assembler takes.
SLOTS = range(2, 17)
_SPACES = (MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc)


class SlottedAllocation(msgspec.Struct, eq=False):
    """One ``alloc_multi_tile``: its name, its type text and the text of each slot."""

    name: str
    kind: str
    slot: str
    valid: tuple[int, ...]


def is_slotted(tile: TileType) -> bool:
    """Whether the tile lives in one of several slots of its allocation."""
    return tile.memref is not None and tile.memref.slot_count_ > 1


def slot_of(tile: TileType, var: Var, span: Span) -> Expr:
    """The slot index of a tile. Raises ValueError when the tile selects none, or its space has no slots."""
    memref = tile.memref
    if tile.memory_space not in _SPACES:
        raise _refused(memref, f"tiles in {tile.memory_space.name} have no slots (Vec, Mat and Acc have)", span)
    if memref.slot_index_ is None:
        raise _refused(memref, f"'{var.name_hint}' uses it without selecting a slot", span)
    return memref.slot_index_


def describe(tile: TileType, known: SlottedAllocation | None, name: str, span: Span) -> SlottedAllocation:
    """The allocation that holds ``tile``, checked against what earlier tiles made of it.

    Raises:
        ValueError: a number of slots the assembler does not take, or slots that are not all alike.
    """
    memref = tile.memref
    if memref.slot_count_ not in SLOTS:
        raise _refused(memref, f"{memref.slot_count_} slots; the assembler takes {SLOTS[0]} to {SLOTS[-1]}", span)
    if not all(isinstance(v, ConstInt) for v in tile.valid_shape):
        raise _refused(memref, "a slot with a runtime valid shape", span)
    slot = tile_buf_text(tile)
    valid = tuple(v.value for v in tile.valid_shape)
    kind = f"!pto.multi_tile_buf<{slot}, count={memref.slot_count_}>"
    if known is None:
        return SlottedAllocation(name, kind, slot, valid)
    if known.slot != slot:
        raise _refused(memref, "its slots hold differently shaped tiles", span)
    if known.valid != valid:
        raise _refused(memref, "its slots have different valid shapes", span)
    return known


def _refused(memref, why: str, span: Span) -> ValueError:
    return user_error(f"allocation '{memref.base_.name_hint}' cannot be placed by the assembler: {why}", span=span)
