"""Packing of groups into shared buffers, first fit by size, with the pipeline depth that the space affords."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from pypto.ir.enums import MemorySpace
from pypto.passes.lib.scalars import align
from pypto.passes.memory.addresses import STEP, footprint
from pypto.passes.memory.groups import Group

_L0 = (MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias)
_MAX_REPACKS = 256

Separates = Callable[[Group, Group], bool]


class Depth:
    """Double-buffering depth of one pipelined loop in one space."""

    __slots__ = ("group", "ordinal", "requested", "slot", "value")

    def __init__(self, group: int, members: list[Group], capacity: int | None) -> None:
        self.group = group
        stages = sorted(set().union(*(m.stages[group] for m in members)))
        self.ordinal = {stage: index for index, stage in enumerate(stages)}
        self.requested = len(stages)
        self.slot = max(align(m.size, STEP) for m in members)
        self.value = self.requested if capacity is None else max(1, min(self.requested, capacity // self.slot))

    def separates(self, a: Group, b: Group) -> bool:
        """Some tile of ``a`` and some of ``b`` are in stages that keep their own buffers."""
        left = {self.ordinal[s] % self.value for s in a.stages.get(self.group, ())}
        right = {self.ordinal[s] % self.value for s in b.stages.get(self.group, ())}
        return bool(left and right and any(x != y for x in left for y in right))


class Packing:
    """Result for one space: buffers as lists of groups (the first is the host) and the depths that were kept."""

    def __init__(self, buffers: list[list[Group]], depths: list[Depth], fell_back: bool, total: int) -> None:
        self.buffers, self.depths, self.fell_back, self.total = buffers, depths, fell_back, total


def pack_space(groups: list[Group], capacity: int | None, floor: int) -> Packing:
    """Pack the groups of one space.

    Args:
        groups: allocations of the space in collection order.
        capacity: bytes of the space, None when unknown.
        floor: bytes taken by reserved buffers.
    """
    packing = _pack(groups, capacity, floor, _strict)
    hazards = any(g.hazards for g in groups)
    if hazards and capacity is not None and packing.total > capacity:
        packing = _pack(groups, capacity, floor, _relaxed)
    return packing


Refusals = Callable[[Group], "set[Group]"]


def _strict(group: Group) -> set[Group]:
    return group.conflicts | group.hazards if group.hazards else group.conflicts


def _relaxed(group: Group) -> set[Group]:
    return group.conflicts


def _pack(groups: list[Group], capacity: int | None, floor: int, refusals: Refusals) -> Packing:
    numbers = sorted({n for g in groups for n in g.stages})
    if not numbers:
        buffers = _first_fit(groups, lambda a, b: False, refusals)
        return Packing(buffers, [], False, _total(buffers, floor))
    if capacity is None:
        buffers = _first_fit(groups, _legacy, refusals)
        return Packing(buffers, [], False, _total(buffers, floor))
    depths = [Depth(n, [g for g in groups if n in g.stages], capacity) for n in numbers]
    for _ in range(_MAX_REPACKS):
        buffers = _first_fit(groups, lambda a, b: any(d.separates(a, b) for d in depths), refusals)
        total = _total(buffers, floor)
        if total <= capacity:
            return Packing(buffers, depths, False, total)
        reducible = [d for d in depths if d.value > 1]
        if not reducible:
            break
        min(reducible, key=lambda d: (-d.slot, d.group)).value -= 1
    buffers = _first_fit(groups, _legacy, refusals)
    return Packing(buffers, depths, True, _total(buffers, floor))


class _Buffer:
    """Groups that share memory, with their lifetimes in order: they never overlap, so a look at the neighbours of a
    new one is enough."""

    __slots__ = ("_ends", "_starts", "groups", "staged")

    def __init__(self, group: Group) -> None:
        self.groups = [group]
        self.staged = [group] if group.stages else []
        self._starts, self._ends = [group.first], [group.last]

    def has_room(self, group: Group) -> bool:
        """The lifetime of ``group`` fits between those inside."""
        at = bisect_left(self._starts, group.first)
        if at < len(self._starts) and self._starts[at] < group.last:
            return False
        return at == 0 or self._ends[at - 1] <= group.first

    def add(self, group: Group) -> None:
        at = bisect_left(self._starts, group.first)
        self._starts.insert(at, group.first)
        self._ends.insert(at, group.last)
        self.groups.append(group)
        if group.stages:
            self.staged.append(group)


def _first_fit(groups: list[Group], separates: Separates, refusals: Refusals) -> list[list[Group]]:
    buffers: list[_Buffer] = []
    open_buffers: list[_Buffer] = []
    home: dict[Group, _Buffer] = {}
    for group in sorted(groups, key=lambda g: (-g.size, g.first, g.order)):
        pinned = group.allocation.pinned
        refused = {id(home[c]) for c in refusals(group) if c in home}
        found = None
        for buffer in () if pinned else open_buffers:
            if id(buffer) in refused or not buffer.has_room(group):
                continue
            if group.stages and any(separates(group, other) for other in buffer.staged):
                continue
            found = buffer
            break
        if found is None:
            found = _Buffer(group)
            buffers.append(found)
            if not pinned:
                open_buffers.append(found)
        else:
            found.add(group)
        home[group] = found
    return [b.groups for b in buffers]


def _legacy(a: Group, b: Group) -> bool:
    """Without a known affordable depth only loads keep the stages of one loop apart, and never in L0."""
    if a.space in _L0 or not (a.has_load or b.has_load):
        return False
    for number, stages in a.stages.items():
        others = b.stages.get(number)
        if others and any(x != y for x in stages for y in others):
            return True
    return False


def _total(buffers: list[list[Group]], floor: int) -> int:
    return footprint((b[0].size for b in buffers), floor)
