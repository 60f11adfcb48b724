"""Where values live: address ranges of tiles, roots of global-memory accesses."""

from __future__ import annotations

from typing import NamedTuple

from ..dialect import types as T
from ..dialect.ir import Operation, Value, constant_of

EVERYWHERE = 1 << 62
SPACE_ALIGNMENT = {"vec": 256, "mat": 256, "left": 4096, "right": 4096, "acc": 4096, "bias": 256, "scaling": 256}


class SlotRef(NamedTuple):
    """One slot of a multi tile, chosen by an index known only at run time."""

    tiles: Value
    index: Value


class Range(NamedTuple):
    """Bytes [low, high) of a memory; `space` is a tile location, or `gm` with the root pointer in `root`.

    A multi-tile slot chosen at run time spans all slots and names the choice in `root`.
    """

    space: str
    low: int
    high: int
    root: object = None


def overlaps(a: Range, b: Range) -> bool:
    """Whether two ranges may share a byte. Global accesses are compared by root; an unknown root meets every root."""
    if a.space != b.space:
        return False
    if a.space == "gm":
        return a.root is None or b.root is None or a.root is b.root
    return a.low < b.high and b.low < a.high


def slot_bytes(slot: T.TileType) -> int:
    """Distance between two slots of a multi tile."""
    alignment = SPACE_ALIGNMENT[slot.loc]
    return -(-slot.bytes // alignment) * alignment


def base_address(value: Value) -> int | None:
    """Byte address of a tile when its allocation says so (an `addr` constant, or a planned address)."""
    owner = value.owner
    while owner is not None and owner.name in ("pto.treshape", "pto.bitcast"):
        owner = owner.ins[0].owner
    if owner is None or owner.name not in ("pto.alloc_tile", "pto.alloc_multi_tile"):
        return None
    return _address_of(owner)


def _address_of(allocation: Operation) -> int | None:
    address = allocation.named.get("addr")
    if address is not None:
        constant = constant_of(address)
        return None if constant is None else int(constant)
    return allocation.attrs.get("planned_address")


def tile_range(value: Value) -> Range:
    """The bytes a tile may touch. Without a known address it is the whole memory of its location."""
    type_ = value.type
    owner = value.owner
    if isinstance(type_, T.MultiTileType):
        base = base_address(value)
        whole = Range(type_.slot.loc, 0, EVERYWHERE)
        return whole if base is None else Range(type_.slot.loc, base, base + type_.count * slot_bytes(type_.slot))
    if owner is None:
        return Range(type_.loc, 0, EVERYWHERE)
    if owner.name == "pto.alloc_tile":
        base = _address_of(owner)
        return Range(type_.loc, 0, EVERYWHERE) if base is None else Range(type_.loc, base, base + type_.bytes)
    if owner.name in ("pto.treshape", "pto.bitcast"):
        return tile_range(owner.ins[0])
    if owner.name == "pto.subview":
        return _window_range(owner)
    if owner.name == "pto.multi_tile_get":
        multi, index = owner.ins
        whole = tile_range(multi)
        slot = constant_of(index)
        if whole.high == EVERYWHERE:
            return whole
        if slot is None:
            return whole._replace(root=SlotRef(multi, index))
        low = whole.low + int(slot) * slot_bytes(multi.type.slot)
        return Range(whole.space, low, low + multi.type.slot.bytes)
    if owner.name.startswith("pto.tpop_from_"):
        reserved = popped_buffer(owner)
        return reserved if reserved is not None else Range(type_.loc, 0, EVERYWHERE)
    return Range(type_.loc, 0, EVERYWHERE)


def _window_range(op: Operation) -> Range:
    """Whole rows of the parent for a plain row-major window with a constant row offset; else the parent."""
    parent = op.ins[0]
    whole = tile_range(parent)
    row, col = (constant_of(v) for v in op.named["offsets"])
    t = parent.type
    if whole.high == EVERYWHERE or whole.root is not None or None in (row, col) or t.boxed:
        return whole
    rows, cols = op.attrs["sizes"]
    size = t.dtype.bytes
    if t.blayout == "row_major":
        first, last = row * t.cols + col, (row + rows - 1) * t.cols + col + cols
    else:
        first, last = col * t.rows + row, (col + cols - 1) * t.rows + row + rows
    return Range(whole.space, whole.low + first * size, whole.low + last * size)


def popped_buffer(op: Operation) -> Range | None:
    """The reserved buffer behind a pop, found through the pipe's initialise operation."""
    initialise = op.attrs.get("initialise")
    if initialise is None:
        return None
    key = "c2v_consumer_buf" if op.name.endswith("from_aic") else "v2c_consumer_buf"
    value = initialise.named.get(key)
    owner = value.owner if value is not None else None
    if owner is None or owner.name != "pto.reserve_buffer":
        return None
    base = owner.attrs.get("resolved_base", 0)
    return Range(owner.attrs["location"].value, base, base + owner.attrs["size"])


def pointer_root(value: Value) -> object:
    """The parameter a pointer was derived from; None when it comes from memory or an integer."""
    while True:
        owner = value.owner
        if owner is None:
            return value
        if owner.name in ("pto.addptr", "pto.castptr", "pto.make_tensor_view", "pto.partition_view"):
            value = owner.ins[0]
            continue
        return None


def global_range(value: Value) -> Range:
    """The global memory behind a pointer, view or partition."""
    return Range("gm", 0, EVERYWHERE, pointer_root(value))
