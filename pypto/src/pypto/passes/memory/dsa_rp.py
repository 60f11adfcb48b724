"""The DSA_RP planner: place buffers by search so that few pipes wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypto.errors import InternalError
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Var
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.passes.context import backend_handler
from pypto.passes.diagnostics import perf_hint
from pypto.passes.lib.pipeline_membership import drop_memberships
from pypto.passes.lib.scalars import align
from pypto.passes.memory.addresses import STEP, addressed, capacity_error, reserve_space
from pypto.passes.memory.groups import Group, Groups, check_same_slot
from pypto.passes.memory.placement import drop_unused_allocations, place
from pypto.passes.memory.reuse_penalties import reuse_penalties
from pypto.passes.memory.storage import memref_of

_UNLIMITED = 1 << 62
Placement = dict[Group, int]
Pairs = dict[Group, set[Group]]


class _Arena:
    """One memory space: what must be apart, what should be, and the bytes there are."""

    def __init__(self, groups: list[Group], hard: Pairs, soft: dict[frozenset[Group], int], floor: int, limit: int):
        self.groups, self.hard, self.soft = groups, hard, soft
        self.floor, self.limit = floor, limit
        self._liked: dict[Group, list[Group]] = {g: [] for g in groups}
        for pair in soft:
            a, b = tuple(pair)
            self._liked[a].append(b)
            self._liked[b].append(a)

    def solve(self) -> Placement | None:
        """The best placement over several orders by (penalty, peak), None when nothing fits."""
        weight = {g: sum(self.soft[frozenset((g, o))] for o in self._liked[g]) for g in self.groups}
        orders: list[Callable[[Group], tuple]] = [
            lambda g: (-g.size, g.first, g.order),
            lambda g: (g.first, -g.size, g.order),
            lambda g: (-weight[g], -g.size, g.order),
        ]
        best: Placement | None = None
        best_key: tuple[int, int] | None = None
        for order in orders:
            for careful in (True, False):
                placement = self._place(sorted(self.groups, key=order), careful=careful)
                if placement is None:
                    continue
                self._validate(placement)
                key = (self.penalty(placement), self.peak(placement))
                if best_key is None or key < best_key:
                    best, best_key = placement, key
        return best

    def _place(self, ordered: list[Group], *, careful: bool) -> Placement | None:
        """Place one group after the other at the cheapest, then lowest, address; first fit when not ``careful``."""
        placement: Placement = {}
        for group in ordered:
            near = [o for o in placement if o in self.hard[group] or (careful and o in self._liked[group])]
            candidates = sorted({self.floor, *(align(placement[o] + o.size, STEP) for o in near)})
            best: tuple[int, int] | None = None
            for address in candidates:
                if address + group.size > self.limit or self._collides(group, address, placement):
                    continue
                cost = self._cost(group, address, placement) if careful else 0
                if best is None or (cost, address) < best:
                    best = (cost, address)
            if best is None:
                return None
            placement[group] = best[1]
        return placement

    def _collides(self, group: Group, address: int, placement: Placement) -> bool:
        return any(o in placement and _overlap(address, group.size, placement[o], o.size) for o in self.hard[group])

    def _cost(self, group: Group, address: int, placement: Placement) -> int:
        return sum(
            self.soft[frozenset((group, o))]
            for o in self._liked[group]
            if o in placement and _overlap(address, group.size, placement[o], o.size)
        )

    def penalty(self, placement: Placement) -> int:
        """Cost of the soft pairs that share bytes."""
        return sum(cost for pair, cost in self.soft.items() if _share(placement, *pair))

    def peak(self, placement: Placement) -> int:
        """First byte above every buffer."""
        return max((align(a + g.size, STEP) for g, a in placement.items()), default=self.floor)

    def _validate(self, placement: Placement) -> None:
        for group in self.groups:
            for other in self.hard[group]:
                if _share(placement, group, other):
                    raise InternalError(
                        f"buffers '{group.base.name_hint}' and '{other.base.name_hint}' may not share memory"
                    )


def _overlap(a: int, a_size: int, b: int, b_size: int) -> bool:
    return a < b + b_size and b < a + a_size


def _share(placement: Placement, a: Group, b: Group) -> bool:
    return _overlap(placement[a], a.size, placement[b], b.size)


def _cross_stage(a: Group, b: Group) -> bool:
    return any(x != y for n, stages in a.stages.items() for x in stages for y in b.stages.get(n, ()))


def _pairs(groups: Iterable[Group], apart: Callable[[Group, Group], bool]) -> Pairs:
    listed = list(groups)
    found: Pairs = {g: set() for g in listed}
    for index, a in enumerate(listed):
        for b in listed[index + 1 :]:
            if apart(a, b):
                found[a].add(b)
                found[b].add(a)
    return found


def _must_be_apart(a: Group, b: Group) -> bool:
    return a.overlaps(b) or b in a.conflicts or b in a.hazards or a.allocation.pinned or b.allocation.pinned


def place_by_search(function: Function, floor: int) -> Function:
    """Addresses for every allocation of a kernel.

    Args:
        floor: first byte above the reserved buffers of the kernel's reserve space.

    Raises:
        ValueError: a space is too small even with pipeline stages sharing memory.
    """
    groups = Groups(function)
    check_same_slot(groups)
    handler = backend_handler()
    penalties = {frozenset((p.first, p.second)): p.cost for p in reuse_penalties(groups)}
    addresses: Placement = {}
    for space in groups.spaces():
        members = groups.in_space(space)
        reserved = floor if space is reserve_space(function) else 0
        limit = (handler.mem_size(space) if handler is not None else 0) or _UNLIMITED
        addresses.update(_solve_space(function, space, members, penalties, reserved, limit))
    placed: dict[Var, MemRef] = {}
    for group, address in addresses.items():
        cache: dict[MemRef, MemRef] = {}
        for var in group.members:
            placed[var] = addressed(memref_of(var), address, group.allocation.pinned, cache)
    return drop_memberships(drop_unused_allocations(place(function, placed)))


def _solve_space(
    function: Function,
    space: MemorySpace,
    members: list[Group],
    penalties: dict[frozenset[Group], int],
    reserved: int,
    limit: int,
) -> Placement:
    inside = set(members)
    base = _pairs(members, _must_be_apart)
    staged = _pairs(members, lambda a, b: b not in base[a] and _cross_stage(a, b))
    strict = {g: base[g] | staged[g] for g in members}
    soft = {p: c for p, c in penalties.items() if p <= inside and not any(b in strict[a] for a in p for b in p)}
    placement = _Arena(members, strict, soft, reserved, limit).solve()
    if placement is not None:
        return placement
    relaxed = {frozenset((a, b)) for a in members for b in staged[a]}
    softer = {p: c for p, c in penalties.items() if p <= inside and not any(b in base[a] for a in p for b in p)}
    for pair in relaxed:
        softer[pair] = softer.get(pair, 0) + 1
    placement = _Arena(members, base, softer, reserved, limit).solve()
    if placement is None:
        roomy = _Arena(members, base, softer, reserved, _UNLIMITED)
        needed = roomy.peak(roomy.solve() or {})
        tiles = [(group.members[0], group.size) for group in members]
        raise capacity_error(function, space, needed, limit, reserved, tiles)
    reused = sum(1 for pair in relaxed if _share(placement, *pair))
    if reused:
        perf_hint(
            "PH-DSA-001",
            f"{function.name}: pipeline stages do not fit {space.name} side by side; {reused} of {len(relaxed)} "
            "relaxed pair(s) reuse physical storage",
            function.span,
        )
    return placement
