"""Allocations as the planners see them: size, lifetime, pipeline stages, and which pairs may not share memory."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.errors import user_error
from pypto.ir.enums import FunctionType, MemorySpace, SplitMode
from pypto.ir.expr import Call, TupleGetItemExpr, Var, const_value
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, WhileStmt
from pypto.ir.types import TileType
from pypto.passes.context import PassContext, backend_handler
from pypto.passes.lib.op_facts import VIEWS, may_share
from pypto.passes.lib.pipeline_membership import memberships
from pypto.passes.lib.walk import yielded
from pypto.passes.memory.placement import Allocation, allocations
from pypto.passes.memory.storage import TileStorage, memref_of

#: Views through which a load's buffer is still recognised as one.
_LOADS = ("tile.load", "tile.read", "tile.load_rebased_row")


class Group:
    """One on-chip allocation with everything that lives in it."""

    __slots__ = (
        "allocation", "base", "conflicts", "first", "has_load", "hazards", "last", "members", "order", "roots", "size",
        "space",
        "stages",
    )  # fmt: skip

    def __init__(self, allocation: Allocation, order: int) -> None:
        self.allocation = allocation
        self.base: Var = allocation.pointer
        self.space: MemorySpace = allocation.space
        self.size: int = allocation.size
        self.order = order
        self.first: float = float("inf")
        self.last: float = 0
        self.roots: list[Var] = []
        self.members: list[Var] = []
        #: Groups whose memory this one may never use (no-alias operands).
        self.conflicts: set[Group] = set()
        #: Groups whose memory this one avoids while the space affords it (910B: loads that a popped tile meets).
        self.hazards: set[Group] = set()
        #: Pipeline group -> stages of the tiles inside.
        self.stages: dict[int, set[int]] = {}
        self.has_load = False

    def overlaps(self, other: Group) -> bool:
        """Lifetimes overlap; touching is no overlap."""
        return not (self.last <= other.first or other.last <= self.first)


class Groups:
    """The groups of a function in order of first definition."""

    def __init__(self, function: Function, storage: TileStorage | None = None) -> None:
        self.function = function
        self.storage = storage = storage or TileStorage(function)
        self.allocations = allocations(function)
        self.by_base: dict[Var, Group] = {}
        for root, family in storage.family.items():
            memref = memref_of(root)
            allocation = self.allocations.get(memref.base_) if memref is not None else None
            if allocation is None:
                continue
            group = self.by_base.get(memref.base_)
            if group is None:
                group = self.by_base[memref.base_] = Group(allocation, len(self.by_base))
            group.roots.append(root)
            group.members.extend(family)
            group.first = min(group.first, storage.definition[root].point)
            group.last = max(group.last, storage.live_until(root))
        self._read_calls()

    def __iter__(self):
        return iter(self.by_base.values())

    def of(self, var: Var) -> Group | None:
        memref = memref_of(var)
        return self.by_base.get(memref.base_) if memref is not None else None

    def in_space(self, space: MemorySpace) -> list[Group]:
        return [g for g in self if g.space is space]

    def spaces(self) -> list[MemorySpace]:
        """Spaces in use, in order of first definition."""
        return list(dict.fromkeys(g.space for g in self))

    # -- conflicts ----------------------------------------------------------------------------------------------

    def _read_calls(self) -> None:
        handler = backend_handler()
        # The relaxed rule belongs to the backend of an active context only.
        relaxed = handler is not None and handler.name == "950" and PassContext.current() is not None
        writers: dict[Var, Call] = {}
        for stmt in self.storage.assignments:
            call = stmt.value
            if isinstance(call, TupleGetItemExpr):
                call = writers.get(call.tuple)
            elif isinstance(call, Call) and not isinstance(stmt.var.type, TileType):
                writers[stmt.var] = call
                continue
            if not isinstance(call, Call) or not isinstance(stmt.var.type, TileType):
                continue
            group = self.of(stmt.var)
            if group is None:
                continue
            name = call.op.name
            if name in _LOADS:
                group.has_load = True
            for number, stage in memberships(call):
                group.stages.setdefault(number, set()).add(stage)
            if name in VIEWS:
                continue
            for index, arg in enumerate(call.args):
                source = self.of(arg) if isinstance(arg, Var) else None
                if source is not None and source is not group and not may_share(call, index, relaxed_prelu=relaxed):
                    group.conflicts.add(source)
                    source.conflicts.add(group)
        if handler is not None and handler.requires_split_load_tpop_workaround() and is_split_vector(self.function):
            self._popped_over_loads()

    def _popped_over_loads(self) -> None:
        """910B: a result computed from a popped tile may not take the buffer of a load that dies right there."""
        popped = self._popped_roots()
        loads: dict[float, list[Group]] = {}
        for group in self:
            if group.has_load:
                loads.setdefault(group.last, []).append(group)
        for stmt in self.storage.assignments:
            call = stmt.value
            group = self.of(stmt.var) if isinstance(call, Call) and isinstance(stmt.var.type, TileType) else None
            if group is None or call.op.name in VIEWS:
                continue
            if any(isinstance(a, Var) and self.storage.root.get(a) in popped for a in call.args):
                for load in loads.get(self.storage.point[stmt], ()):
                    if load is not group:
                        group.hazards.add(load)
                        load.hazards.add(group)

    def _popped_roots(self) -> set[Var]:
        storage = self.storage
        popped: set[Var] = set()
        for root in storage.family:
            stmt = storage.definition[root].stmt
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.name == POPS_FROM_CUBE:
                popped.add(root)
        # A popped tile may arrive through a carry, and the pop may stand after the use: close over carries.
        changed = bool(popped)
        while changed:
            changed = False
            for root in storage.family:
                stmt = storage.definition[root].stmt
                if root not in popped and isinstance(stmt, (ForStmt, WhileStmt)):
                    for source in _carried_sources(root, stmt):
                        if storage.root.get(source) in popped:
                            popped.add(root)
                            changed = True
                            break
        return popped


POPS_FROM_CUBE = "tile.tpop_from_aic"


def _carried_sources(root: Var, loop: ForStmt | WhileStmt) -> Iterable[Var]:

    for arg, result, value in zip(loop.iter_args, loop.return_vars, yielded(loop.body)):
        if root is arg or root is result:
            return (v for v in (arg.initValue, value) if isinstance(v, Var))
    return ()


def is_split_vector(function: Function) -> bool:
    """A vector kernel whose two lanes work on halves."""
    split = function.split
    return function.func_type is FunctionType.AIV and split is not None and split is not SplitMode.NONE


def check_same_slot(groups: Groups) -> None:
    """Two tiles bound to one slot of a declared allocation may not be live together.

    Raises:
        ValueError: names the allocation and both tiles.
    """
    storage = groups.storage
    for group in groups:
        if not group.allocation.pinned:
            continue
        placed: list[tuple[Var, float, float, int]] = []
        for root in group.roots:
            memref = memref_of(root)
            slot = memref.slot_index_
            number = 0 if slot is None else const_value(slot)
            definition = storage.definition[root]
            if number is None or not isinstance(definition.stmt, AssignStmt):
                continue
            first, last = definition.point, storage.live_until(root)
            for other, start, end, taken in placed:
                if taken == number and not (last <= start or end <= first):
                    raise user_error(
                        f"allocation '{group.base.name_hint}': tiles '{other.name_hint}' and '{root.name_hint}' are "
                        "bound to the same slot and live at the same time; use different slots or allocations",
                        span=root.span,
                    )
            placed.append((root, first, last, number))
