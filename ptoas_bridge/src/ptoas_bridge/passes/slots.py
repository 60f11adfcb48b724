"""Multi-buffered loops: multi tiles of which one iteration touches exactly one slot, chosen by an index."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Function, Operation, Region, Value, constant_of
from .storage import SlotRef


def slot_loops(fn: Function) -> dict[SlotRef, Operation]:
    """For each multi tile that a single loop uses through a single index of its own body: the slot and that loop.

    Two iterations of such a loop meet only in the same slot, so one event per slot orders them.
    """
    gets: dict[Value, list[tuple[Operation, Operation | None]]] = {}

    def visit(region: Region, loop: Operation | None) -> None:
        for op in region.ops:
            if op.name == "pto.multi_tile_get":
                gets.setdefault(op.ins[0], []).append((op, loop))
            for inner in op.regions:
                visit(inner, op if op.name in ("scf.for", "scf.while") else loop)

    visit(fn.body, None)
    found = {}
    for tiles, uses in gets.items():
        indices = {op.ins[1] for op, _ in uses}
        loops = {loop for _, loop in uses}
        if len(indices) != 1 or len(loops) != 1 or not isinstance(tiles.type, T.MultiTileType):
            continue
        index, loop = indices.pop(), loops.pop()
        if loop is None or loop.name != "scf.for" or constant_of(index) is not None:
            continue
        body = loop.regions[0]
        if index is body.args[0] or any(index.owner is op for op in body.ops):
            found[SlotRef(tiles, index)] = loop
    return found
