"""Sync insertion: flags between pipes, barriers within a pipe (section 10.2).

The pass walks the structured program once per loop level, keeping the set of *reaching accesses*: memory accesses
that a later operation may still conflict with. For each operation it looks for conflicting reaching accesses that are
not ordered before it yet.

* Another pipe: `set_flag` after the access, `wait_flag` before the operation. Both are placed in the innermost region
  that holds the two (around a whole loop or branch when one of them is inside), so that set and wait of an event
  alternate on every path, zero-trip loops and untaken branches included.
* The same pipe: `pipe_barrier` before the operation.
* Across iterations of a loop: `set` before the loop, `wait` at the first conflicting operation of the body, `set`
  after the last one, `wait` after the loop. A loop body is walked twice to find these: the second walk sees the
  accesses of the first one as those of the previous iteration.

What is ordered already follows from the flags and barriers themselves: an access remembers since when each pipe is
known to run after it, and a flag hands on everything its source pipe knew when the flag was set.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ..dialect.enums import EnumAttr
from ..dialect.ir import Function, Module, Operation, Region
from ..dialect.table import REGISTRY
from .effects import Effects, effects_of
from .events import FlagPair, assign_events
from .slots import slot_loops
from .storage import Range, SlotRef, overlaps
from .tail import tail_mode

_SYNC_OPS = ("pto.set_flag", "pto.wait_flag", "pto.set_flag_dyn", "pto.wait_flag_dyn", "pto.record_event",
             "pto.wait_event")  # fmt: skip
_LOOPS = ("scf.for", "scf.while")
# Each level of loops doubles the walks over its body; deeper loops than this are drained instead of tracked.
MAX_TRACKED_LOOPS = 6
_DRAINS = ("pto.fence.barrier_all", "pto.comm.tnotify")


@dataclass(slots=True, eq=False)
class Access:
    """One reaching memory access; `since[q]` is the time from which pipe q is known to run after it."""

    path: tuple[Operation, ...]
    pipe: str
    memory: Range
    writes: bool
    time: int
    since: dict[str, int] = field(default_factory=dict)
    carried: Operation | None = None

    def copy(self, carried: Operation | None = None) -> Access:
        """The same access for another path of control, or as one of the previous iteration of `carried`."""
        return Access(self.path, self.pipe, self.memory, self.writes, self.time, dict(self.since), carried)

    @property
    def key(self) -> tuple:
        """Equal for copies of one access."""
        return (self.path[-1], self.memory, self.writes)


def insert_sync(module: Module) -> None:
    """Add flags, barriers and the tail request to every function that has no hand-written flags."""
    for fn in module.functions:
        if fn.body is None or any(op.name in _SYNC_OPS for op in fn.body.walk()):
            continue
        placement = _Inserter(fn, module.arch)
        placement.run()
        if placement.pipe_ops >= 2:
            fn.attrs["sync_tail"] = tail_mode(fn)


class _Inserter:
    """Insertion for one function."""

    def __init__(self, fn: Function, arch: str):
        self.fn = fn
        self.arch = arch
        self.time = 0
        self.end_time: dict[Operation, int] = {}
        self.previous_end: dict[Operation, int] = {}
        self.position: dict[Operation, int] = {}
        self.pairs: dict[tuple, FlagPair] = {}
        self.slot_loops = slot_loops(fn)
        self.loop_pairs: dict[Operation, list[FlagPair]] = {}
        self.barriers: dict[Operation, list[str]] = {}
        self.effects: dict[Operation, Effects | None] = {}
        self.pipe_ops = 0

    def run(self) -> None:
        for number, op in enumerate(self.fn.body.walk()):
            self.position[op] = number
            found = None if op.regions else effects_of(op, self.arch)
            self.effects[op] = found
            if found is not None and found.pipe not in ("PIPE_S", "ALL"):
                self.pipe_ops += 1
        if self.pipe_ops == 0:
            return
        self.walk(self.fn.body.ops, (), [])
        ends = _ends(self.fn.body, self.position)
        dropped = assign_events(list(self.pairs.values()), self.position, ends)
        for pair in dropped:
            self.barriers.setdefault(pair.wait_before, []).append("PIPE_ALL")
        self.materialise([pair for pair in self.pairs.values() if pair not in dropped])

    # --- the walk -----------------------------------------------------------------------------------------------

    def walk(self, ops: list[Operation], path: tuple[Operation, ...], state: list[Access]) -> list[Access]:
        """Process a region; `state` holds the reaching accesses at its start, the result those at its end."""
        for op in ops:
            self.time += 1
            if op.regions:
                state = self.compound(op, (*path, op), state)
            else:
                state = self.leaf(op, (*path, op), state)
            self.time += 1
            self.end_time[op] = self.time
        return state

    def leaf(self, op: Operation, path: tuple[Operation, ...], state: list[Access]) -> list[Access]:
        if op.name == "pto.barrier":
            return self.after_barrier(op.attrs["pipe"].value, state)
        if op.name in _DRAINS:
            return []
        found = self.effects[op]
        if found is None:
            return state
        if found.pipe == "ALL":
            if state:
                self.barrier(op, "PIPE_ALL")
            return []
        self.order(path, found, state)
        self.time += 1
        return _followed_by(state, path, found, self.time)

    def compound(self, op: Operation, path: tuple[Operation, ...], state: list[Access]) -> list[Access]:
        """A loop or branch: first what its operations need from outside, then the regions."""
        self.order_outside(op, path, state)
        if op.name in _LOOPS:
            return self.loop(op, path, state)
        ends = [self.walk(region.ops, path, _copies(state)) for region in op.regions]
        if op.name == "scf.if" and len(op.regions) == 1:
            ends.append(state)
        return _merge(ends)

    def order_outside(self, op: Operation, path: tuple[Operation, ...], state: list[Access]) -> None:
        """Wait before a loop or branch for what the operations inside need from before it."""
        for region in op.regions:
            visible = state
            for inner in region.ops:
                if inner.regions:
                    self.order_outside(inner, (*path, inner), visible)
                    continue
                found = self.effects[inner]
                if found is not None and found.pipe != "ALL":
                    self.order((*path, inner), found, visible, outside_only=True)
                    visible = _without_covered(visible, found.writes)

    def loop(self, op: Operation, path: tuple[Operation, ...], state: list[Access]) -> list[Access]:
        """Walk the body twice; the second walk sees the accesses of the first as those of the previous iteration."""
        start = self.time
        regions = [region.ops for region in op.regions]
        if sum(parent.name in _LOOPS for parent in path) > MAX_TRACKED_LOOPS:
            return self.drained_loop(op, regions, path, state)
        first, first_exit = self.iteration(regions, path, _copies(state))
        for inner in itertools.chain(*regions):
            self.previous_end[inner] = self.end_time[inner]
        previous = [a.copy(op) for a in first if op in a.path]
        last, last_exit = self.iteration(regions, path, _copies(state) + previous)
        if op.name == "scf.while":
            exits = [(first_exit, None), (last_exit, self.previous_end)]
        else:
            exits = [(state, None), ([a for a in last if op in a.path], self.end_time)]
        merged = []
        self.time += 1
        for reaching, times in exits:
            reaching = [a.copy(None if a.carried is op else a.carried) for a in reaching]
            for pair in self.loop_pairs.get(op, ()):
                self.apply(pair, reaching, start if times is None else times[pair.set_after])
            merged.append(reaching)
        return _merge(merged)

    def drained_loop(self, op: Operation, regions: list[list[Operation]], path, state: list[Access]) -> list[Access]:
        """A very deep loop: a full barrier opens each iteration, so that nothing is carried and one walk is enough."""
        if not regions[0]:
            return state
        self.barrier(regions[0][0], "PIPE_ALL")
        last, leaving = self.iteration(regions, path, [])
        return leaving if op.name == "scf.while" else _merge([state, last])

    def iteration(self, regions: list[list[Operation]], path: tuple[Operation, ...], state: list[Access]):
        """One walk over a loop's regions: reaching accesses at the end, and where the loop is left.

        `scf.while` is left after its condition region, `scf.for` at the end of its body.
        """
        for ops in regions[:-1]:
            state = self.walk(ops, path, state)
        leaving = _copies(state)
        return self.walk(regions[-1], path, state), leaving

    # --- ordering one operation ---------------------------------------------------------------------------------

    def order(
        self, path: tuple[Operation, ...], found: Effects, state: list[Access], *, outside_only: bool = False
    ) -> None:
        """Add what the operation at the end of `path` needs to run after the conflicting accesses in `state`."""
        others: dict[tuple, list[tuple[int, Access]]] = {}
        same_pipe: list[Access] = []
        for access in state:
            if not _conflicts(access, found):
                continue
            if access.pipe == found.pipe:
                same_pipe.append(access)
            elif found.pipe not in access.since:
                _, set_after = self.ends_of(access, path)
                others.setdefault((access.carried is not None, access.pipe, access.carried), []).append(
                    (self.position[set_after], access)
                )
        # Accesses of this iteration first: their flags cover those of the previous one that stand earlier in the body.
        # Within a group the latest place covers the earlier ones of the same pipe.
        groups = sorted(others.items(), key=lambda item: (item[0][0], -max(place for place, _ in item[1])))
        for _, group in groups:
            pending = [item for item in group if found.pipe not in item[1].since]
            if pending:
                self.flag(max(pending, key=lambda item: item[0])[1], path, found, state)
        if not outside_only:
            for access in same_pipe:
                self.same_pipe(access, path[-1], state)

    def same_pipe(self, access: Access, op: Operation, state: list[Access]) -> None:
        pipe = access.pipe
        if pipe == "PIPE_S" or (pipe == "PIPE_V" and self.arch == "a5") or pipe in access.since:
            return
        self.barrier(op, pipe)
        self.after_barrier(pipe, state)

    def barrier(self, op: Operation, pipe: str) -> None:
        wanted = self.barriers.setdefault(op, [])
        if pipe not in wanted:
            wanted.append(pipe)

    def after_barrier(self, pipe: str, state: list[Access]) -> list[Access]:
        """Everything issued to the pipe so far is finished (everything at all for PIPE_ALL)."""
        if pipe == "PIPE_ALL":
            return []
        for access in state:
            if access.pipe == pipe or pipe in access.since:
                access.since.setdefault(pipe, self.time)
        return state

    def ends_of(self, access: Access, path: tuple[Operation, ...]) -> tuple[Operation, Operation]:
        """Where the wait goes (before) and where the set goes (after): siblings in the innermost common region."""
        if access.carried is not None:
            depth = path.index(access.carried) + 1
            return path[depth], access.path[depth]
        depth = 0
        while access.path[depth] is path[depth]:
            depth += 1
        return path[depth], access.path[depth]

    def flag(self, access: Access, path: tuple[Operation, ...], found: Effects, state: list[Access]) -> None:
        pipe = found.pipe
        wait_before, set_after = self.ends_of(access, path)
        loop = access.carried
        parent = loop if loop is not None else _common_parent(access.path, path)
        if parent is not None and parent.name == "scf.while" and not _both_in_body(parent, wait_before, set_after):
            # The condition region runs once more than the body, so a flag between the two would not alternate.
            self.barrier(wait_before, "PIPE_ALL")
            for other in state:
                other.since.update(dict.fromkeys(_ALL_PIPES, self.time))
            return
        slot = self.shared_slot(access, path, found)
        key = (access.pipe, pipe, slot, loop) if loop is not None else (access.pipe, pipe, "once", wait_before)
        pair = self.pairs.get(key)
        if pair is None:
            pair = self.pairs[key] = FlagPair(
                access.pipe, pipe, set_after, wait_before, loop, slot=slot, slot_loop=self.slot_loops.get(slot)
            )
            if loop is not None:
                self.loop_pairs.setdefault(loop, []).append(pair)
        elif self.position[set_after] > self.position[pair.set_after]:
            pair.set_after = set_after
        times = self.end_time if loop is None else self.previous_end
        self.apply(pair, state, times[pair.set_after])

    def shared_slot(self, access: Access, path: tuple[Operation, ...], found: Effects) -> SlotRef | None:
        """The slot, when the two conflict only in one slot of a multi-buffered loop that holds both.

        Carried conflicts must be carried by that very loop. Within an iteration the event of the slot keeps a loader
        that runs ahead from setting an event that has not been waited for yet.
        """
        slot = access.memory.root
        loop = self.slot_loops.get(slot)
        if loop is None or loop not in path or loop not in access.path or access.carried not in (None, loop):
            return None
        meeting = [m for m in (*found.reads, *found.writes) if overlaps(access.memory, m)]
        return slot if all(m.root == slot for m in meeting) else None

    def apply(self, pair: FlagPair, state: list[Access], set_time: int) -> None:
        """The wait of a pair has run: its pipe knows what the source pipe knew when the flag was set."""
        for access in state:
            if access.time > set_time or pair.dst in access.since:
                continue
            if pair.slot is not None and pair.loop is not None and not _in_slot(access, pair):
                continue
            known = access.time if access.pipe == pair.src else access.since.get(pair.src)
            if known is not None and known <= set_time:
                access.since[pair.dst] = self.time

    # --- output -------------------------------------------------------------------------------------------------

    def materialise(self, pairs: list[FlagPair]) -> None:
        """Put flags and barriers into the program; at one place waits come before barriers, barriers before sets."""
        before: dict[Operation, list[tuple[int, Operation]]] = {}
        after: dict[Operation, list[tuple[int, Operation]]] = {}
        for pair in pairs:
            after.setdefault(pair.set_after, []).append((2, _flag_op("set", pair)))
            before.setdefault(pair.wait_before, []).append((0, _flag_op("wait", pair)))
            if pair.loop is not None:
                events = range(pair.slot.tiles.type.count) if pair.slot is not None else [pair.event]
                before.setdefault(pair.loop, []).extend((2, _flag_op("set", pair, event)) for event in events)
                after.setdefault(pair.loop, []).extend((0, _flag_op("wait", pair, event)) for event in events)
        for op, pipes in self.barriers.items():
            chosen = ["PIPE_ALL"] if "PIPE_ALL" in pipes else pipes
            before.setdefault(op, []).extend((1, _barrier_op(pipe)) for pipe in chosen)
        for places in (before, after):
            for found in places.values():
                found.sort(key=lambda item: item[0])
        _rebuild(self.fn.body, before, after)


_ALL_PIPES = ("PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX")


def _in_slot(access: Access, pair: FlagPair) -> bool:
    """Whether a flag per slot says anything about the access: it must be of that slot, in that loop."""
    return access.memory.root == pair.slot and access.carried in (None, pair.loop) and pair.loop in access.path


def _conflicts(access: Access, found: Effects) -> bool:
    memory = access.memory
    for other in found.writes:
        if overlaps(memory, other):
            return True
    if access.writes:
        for other in found.reads:
            if overlaps(memory, other):
                return True
    return False


def _followed_by(state: list[Access], path: tuple[Operation, ...], found: Effects, time: int) -> list[Access]:
    """The reaching accesses after an operation: its own replace equal ones of its pipe and those its writes cover."""
    fresh = [Access(path, found.pipe, memory, False, time) for memory in found.reads]
    fresh += [Access(path, found.pipe, memory, True, time) for memory in found.writes]
    replaced = {(a.memory, a.writes) for a in fresh}
    kept = _without_covered(state, found.writes)
    return [a for a in kept if a.pipe != found.pipe or (a.memory, a.writes) not in replaced] + fresh


def _without_covered(state: list[Access], writes: list[Range]) -> list[Access]:
    """Drop accesses that a new write covers whole: what conflicts with them conflicts with the write, which follows."""
    if not writes:
        return state
    kept = []
    for access in state:
        memory = access.memory
        covered = memory.space != "gm" and any(
            w.space == memory.space and w.low <= memory.low and memory.high <= w.high for w in writes
        )
        if not covered:
            kept.append(access)
    return kept


def _copies(state: list[Access]) -> list[Access]:
    return [a.copy(a.carried) for a in state]


def _merge(states: list[list[Access]]) -> list[Access]:
    """Accesses reaching the join of several paths; a pipe is ordered after one only if it is on every path."""
    merged: dict[tuple, Access] = {}
    for state in states:
        for access in state:
            key = (access.key, access.carried)
            other = merged.get(key)
            if other is None:
                merged[key] = access.copy(access.carried)
                continue
            common = {p: max(t, access.since[p]) for p, t in other.since.items() if p in access.since}
            other.since = common
            other.time = max(other.time, access.time)
    return _without_subsumed(list(merged.values()))


def _without_subsumed(state: list[Access]) -> list[Access]:
    """Drop an access when a later one of its pipe to the same memory demands at least as much.

    A flag or barrier after the later access covers the earlier one too. The earlier must be known wherever the later
    is, or a path that skips the later one (a loop without iterations) would lose its ordering.
    """
    kept: list[Access] = []
    groups: dict[tuple, list[Access]] = {}
    for access in sorted(state, key=lambda a: -a.time):
        group = groups.setdefault((access.pipe, access.memory, access.carried), [])
        if not any(_demands_as_much(later, access) for later in group):
            group.append(access)
            kept.append(access)
    kept.reverse()
    return kept


def _demands_as_much(later: Access, earlier: Access) -> bool:
    if earlier.writes and not later.writes:
        return False
    since = earlier.since
    return all(since.get(pipe, time + 1) <= time for pipe, time in later.since.items())


def _common_parent(first: tuple[Operation, ...], second: tuple[Operation, ...]) -> Operation | None:
    parent = None
    for a, b in zip(first, second):
        if a is not b:
            break
        parent = a
    return parent


def _both_in_body(loop: Operation, *ops: Operation) -> bool:
    body = loop.regions[1].ops
    return all(any(op is inner for inner in body) for op in ops)


def _ends(region: Region, order: dict[Operation, int]) -> dict[Operation, int]:
    """Number of the last operation inside each operation (itself when it has no regions)."""
    found: dict[Operation, int] = {}

    def visit(ops: list[Operation]) -> int:
        last = -1
        for op in ops:
            last = order[op]
            for inner in op.regions:
                last = max(last, visit(inner.ops))
            found[op] = last
        return last

    visit(region.ops)
    return found


def _flag_op(action: str, pair: FlagPair, event: int | None = None) -> Operation:
    """A set or wait of the pair's event: a constant one, or the slot index of a multi-buffered loop."""
    dynamic = pair.slot is not None and event is None
    name = f"pto.{action}_flag_dyn" if dynamic else f"pto.{action}_flag"
    op = Operation(name, REGISTRY[name])
    op.attrs = {"src": EnumAttr("pipe", pair.src), "dst": EnumAttr("pipe", pair.dst)}
    if dynamic:
        op.ins = [pair.slot.index]
    else:
        op.attrs["event"] = EnumAttr("event", f"EVENT_ID{pair.event if event is None else event}")
    return op


def _barrier_op(pipe: str) -> Operation:
    op = Operation("pto.barrier", REGISTRY["pto.barrier"])
    op.attrs = {"pipe": EnumAttr("pipe", pipe)}
    return op


def _rebuild(region: Region, before: dict, after: dict) -> None:
    ops: list[Operation] = []
    for op in region.ops:
        ops += (new for _, new in before.get(op, ()))
        ops.append(op)
        ops += (new for _, new in after.get(op, ()))
        for inner in op.regions:
            _rebuild(inner, before, after)
    region.ops = ops
