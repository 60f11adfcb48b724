"""The task graph of a level-3 run: nodes on chips and sub-workers, ordered by the memory they touch."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simpler_runtime.callables import TensorArgType
from simpler_runtime.run_handle import RunHandle

_READS = (TensorArgType.INPUT, TensorArgType.INOUT)
_WRITES = (TensorArgType.INOUT, TensorArgType.OUTPUT, TensorArgType.OUTPUT_EXISTING)


@dataclass(eq=False)
class Node:
    """One task. A group node has several members, which start together."""

    label: str
    places: list[Any]
    """Where each member runs: a chip index, or None for any sub-worker."""
    work: list[Callable[[], None]]
    graph: HostGraph
    missing: int = 1
    """Unfinished producers, plus one while the node is being submitted."""
    members_left: int = 0
    consumers: list[Node] = field(default_factory=list)
    finished: bool = False
    error: BaseException | None = None
    start: threading.Barrier | None = None


@dataclass
class _Write:
    begin: int
    end: int
    node: Node


def byte_range(tensor: Any) -> tuple[int, int]:
    """First and one-past-last byte a tensor argument touches."""
    record = tensor.chip_tensor() if hasattr(tensor, "chip_tensor") else tensor
    size = record.nbytes()
    if size == 0:
        return record.data, record.data
    elements = 1
    for extent in record.shapes:
        elements *= extent
    span = 1 + sum((n - 1) * s for n, s in zip(record.shapes, record.strides))
    return record.data, record.data + span * (size // elements)


class HostGraph:
    """Nodes of one run. ``dispatch(node)`` is called, under the graph's lock, for every node that may start."""

    def __init__(
        self, dispatch: Callable[[Node], None], handle: RunHandle, on_end: Callable[[HostGraph], None]
    ) -> None:
        self.lock = threading.Lock()
        self.handle = handle
        self.on_end = on_end
        self._dispatch = dispatch
        self._writes: list[_Write] = []
        self._open = 1
        """Nodes that have not finished, plus one while the orchestration function runs."""
        self._active = False
        self._waiting: list[Node] = []
        self._poisoned: list[Node] = []
        """Nodes that may start but never will, because a producer failed."""
        self._error: BaseException | None = None

    def submit(self, label: str, places: list[Any], work: list[Callable[[], None]], args: list[Any]) -> Node:
        """Adds a node. ``args`` are the TaskArgs of its members. ValueError when it writes the same bytes twice."""
        touched = [
            (*byte_range(members.tensor(i)), members.tag(i)) for members in args for i in range(members.tensor_count())
        ]
        writes = sorted((begin, end) for begin, end, tag in touched if tag in _WRITES and end > begin)
        for (_, end), (begin, _) in itertools.pairwise(writes):
            if begin < end:
                raise ValueError(f"{label}: two arguments of one task write overlapping bytes")
        node = Node(label, places, work, self, members_left=len(places))
        with self.lock:
            self._open += 1
            producers: dict[int, Node] = {}
            kept = self._writes
            for begin, end, tag in touched:
                if tag not in _READS or begin == end:
                    continue
                survivors = []
                for write in kept:
                    overlaps = write.begin < end and begin < write.end
                    if overlaps:
                        producers[id(write.node)] = write.node
                    if not (overlaps and tag is TensorArgType.INOUT and begin <= write.begin and write.end <= end):
                        survivors.append(write)
                kept = survivors
            self._writes = kept + [_Write(b, e, node) for b, e, tag in touched if tag in _WRITES and e > b]
            for producer in producers.values():
                if not producer.finished:
                    producer.consumers.append(node)
                    node.missing += 1
                elif producer.error is not None:
                    node.error = producer.error
            self._release(node)
        self._skip_poisoned()
        return node

    def activate(self) -> None:
        """Lets nodes start: the run before this one has ended."""
        with self.lock:
            self._active = True
            waiting, self._waiting = self._waiting, []
            for node in waiting:
                self._start(node)
        self._skip_poisoned()

    def close(self, error: BaseException | None = None) -> None:
        """The orchestration function has returned (or raised ``error``)."""
        with self.lock:
            if error is not None and self._error is None:
                self._error = error
        self._leave()

    def member_done(self, node: Node, error: BaseException | None) -> None:
        """One member of a node has ended."""
        with self.lock:
            if error is not None and node.error is None:
                node.error = error
            node.members_left -= 1
            if node.members_left:
                return
        self._finish(node)
        self._skip_poisoned()

    def _release(self, node: Node) -> None:
        node.missing -= 1
        if node.missing:
            return
        if self._active:
            self._start(node)
        else:
            self._waiting.append(node)

    def _start(self, node: Node) -> None:
        if node.error is not None:
            self._poisoned.append(node)
        else:
            self._dispatch(node)

    def _skip_poisoned(self) -> None:
        while True:
            with self.lock:
                if not self._poisoned:
                    return
                node = self._poisoned.pop()
            self._finish(node)

    def _finish(self, node: Node) -> None:
        with self.lock:
            node.finished = True
            if node.error is not None and self._error is None:
                self._error = node.error
            for consumer in node.consumers:
                if node.error is not None and consumer.error is None:
                    consumer.error = node.error
                self._release(consumer)
            node.consumers.clear()
        self._leave()

    def _leave(self) -> None:
        with self.lock:
            self._open -= 1
            last = self._open == 0
        if last:
            self.on_end(self)
            self.handle._finish(self._error)
