"""Live intervals of tile buffers over program positions, through views, branches and loops."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialect import types as T
from ..dialect.ir import Function, Operation, Region, Value
from .storage import slot_bytes

_ALLOCATIONS = ("pto.alloc_tile", "pto.alloc_multi_tile")
_VIEWS = ("pto.subview", "pto.treshape", "pto.bitcast", "pto.multi_tile_get", "pto.tassign")


@dataclass(slots=True, eq=False)
class Buffer:
    """One allocation: its memory, size in bytes, and the positions of its first and last use (-1 when unused)."""

    op: Operation
    space: str
    size: int
    first: int = -1
    last: int = -1
    address: int = 0
    first_use: Operation | None = None

    def touch(self, op: Operation, first: int, last: int) -> None:
        """Extend the interval by the use in `op`."""
        if self.first < 0 or first < self.first:
            self.first, self.first_use = first, op
        self.last = max(self.last, last)


def buffers_of(fn: Function) -> list[Buffer]:
    """All allocations of a function with their live intervals, in program order."""
    return _Liveness(fn).buffers()


class _Liveness:
    def __init__(self, fn: Function):
        self.fn = fn
        self.roots: dict[Value, frozenset[Operation]] = {}
        self.start: dict[Operation, int] = {}
        self.end: dict[Operation, int] = {}
        self.parents: dict[Operation, tuple[Operation, ...]] = {}

    def buffers(self) -> list[Buffer]:
        self.number(self.fn.body, 0, ())
        while self.propagate(self.fn.body):
            pass
        found = {op: _buffer(op) for op in self.fn.body.walk() if op.name in _ALLOCATIONS}
        for op in self.fn.body.walk():
            if op.name in _ALLOCATIONS:
                continue
            for value in [*op.operands(), *op.results]:
                for root in self.roots.get(value, ()):
                    found[root].touch(op, *self.interval(op, root))
        return list(found.values())

    def number(self, region: Region, position: int, parents: tuple[Operation, ...]) -> int:
        for op in region.ops:
            position += 1
            self.start[op] = position
            self.parents[op] = parents
            for inner in op.regions:
                position = self.number(inner, position, (*parents, op))
            if op.regions:
                position += 1
            self.end[op] = position
        return position

    def interval(self, op: Operation, root: Operation) -> tuple[int, int]:
        """Positions a use keeps the buffer alive: the whole of every loop between the use and the allocation."""
        for parent in self.parents[op]:
            outside = parent not in self.parents[root]
            if outside and parent.name in ("scf.for", "scf.while"):
                return self.start[parent], self.end[parent]
        return self.start[op], self.end[op] if op.regions else self.start[op]

    def propagate(self, region: Region) -> bool:
        """One round of flowing allocations through views, yields and loop arguments; whether anything changed."""
        changed = False
        for op in region.ops:
            if op.name in _ALLOCATIONS:
                changed |= self.add(op.result, frozenset((op,)))
            elif op.name in _VIEWS:
                changed |= self.add(op.result, self.of(op.ins[0]))
            elif op.name == "arith.select" and isinstance(op.result.type, T.TileType):
                changed |= self.add(op.result, self.of(op.ins[1]) | self.of(op.ins[2]))
            for inner in op.regions:
                changed |= self.propagate(inner)
            if op.regions:
                changed |= self.flow(op)
        return changed

    def flow(self, op: Operation) -> bool:
        changed = False
        inits = op.named.get("inits") or []
        ends = [inner.ops[-1].ins if inner.ops and inner.ops[-1].name == "scf.yield" else [] for inner in op.regions]
        if op.name == "scf.for":
            args = op.regions[0].args[1:]
            for arg, init, result in zip(args, inits, op.results):
                changed |= self.add(arg, self.of(init))
                changed |= self.add(result, self.of(arg))
            for arg, value in zip(args, ends[0]):
                changed |= self.add(arg, self.of(value))
        elif op.name == "scf.while":
            before, after = op.regions
            passed = before.ops[-1].ins[1:]
            for arg, init in zip(before.args, inits):
                changed |= self.add(arg, self.of(init))
            for arg, result, value in zip(after.args, op.results, passed):
                changed |= self.add(arg, self.of(value)) | self.add(result, self.of(value))
            for arg, value in zip(before.args, ends[1]):
                changed |= self.add(arg, self.of(value))
        else:
            for yielded in ends:
                for result, value in zip(op.results, yielded):
                    changed |= self.add(result, self.of(value))
        return changed

    def of(self, value: Value) -> frozenset[Operation]:
        return self.roots.get(value, frozenset())

    def add(self, value: Value, roots: frozenset[Operation]) -> bool:
        known = self.of(value)
        if roots <= known:
            return False
        self.roots[value] = known | roots
        return True


def _buffer(op: Operation) -> Buffer:
    type_ = op.result.type
    if isinstance(type_, T.MultiTileType):
        return Buffer(op, type_.slot.loc, type_.count * slot_bytes(type_.slot))
    return Buffer(op, type_.loc, type_.bytes)
