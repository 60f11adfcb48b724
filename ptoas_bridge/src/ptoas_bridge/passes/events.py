"""Event ids: at most eight live at once for each pair of pipes."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialect.ir import Operation
from .storage import SlotRef

EVENTS_PER_PAIR = 8


@dataclass(slots=True, eq=False)
class FlagPair:
    """A set and its wait; with `loop` also the set before and the wait after that loop.

    With `slot` the event is the slot index of a multi-buffered loop (`slot_loop`) at run time: a pair carried by that
    loop has one set per slot before it and one wait per slot after it; a pair within an iteration has neither.
    """

    src: str
    dst: str
    set_after: Operation
    wait_before: Operation
    loop: Operation | None = None
    event: int = -1
    slot: SlotRef | None = None
    slot_loop: Operation | None = None

    def span(self, order: dict[Operation, int], ends: dict[Operation, int]) -> tuple[float, float]:
        """First and last program position at which the event is in use."""
        whole = self.loop or (self.slot_loop if self.slot is not None else None)
        if whole is not None:
            return order[whole] - 0.5, ends[whole] + 0.5
        return ends[self.set_after] + 0.25, order[self.wait_before] - 0.25


def assign_events(pairs: list[FlagPair], order: dict[Operation, int], ends: dict[Operation, int]) -> list[FlagPair]:
    """Give each pair the lowest id that is free over its span; returns the pairs for which none is left."""
    dropped: list[FlagPair] = []
    busy: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for pair in sorted(pairs, key=lambda p: (*p.span(order, ends), p.slot is None)):
        start, stop = pair.span(order, ends)
        # Spans come sorted by their start, so only those that have not ended yet can meet this one.
        live = [item for item in busy.get((pair.src, pair.dst), ()) if item[0] >= start]
        busy[pair.src, pair.dst] = live
        taken = {event for _, event in live}
        if pair.slot is not None:
            wanted = range(pair.slot.tiles.type.count)
            if wanted.stop <= EVENTS_PER_PAIR and not taken.intersection(wanted):
                live.extend((stop, event) for event in wanted)
                continue
            pair.slot = None  # One event for all slots orders more than needed, and no less.
        free = [event for event in range(EVENTS_PER_PAIR) if event not in taken]
        if not free:
            dropped.append(pair)
            continue
        pair.event = free[0]
        live.append((stop, pair.event))
    return dropped
