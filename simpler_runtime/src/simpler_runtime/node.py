"""A machine with several simulated chips and Python sub-workers: the threads behind a level-3 Worker.

Chips and sub-workers are threads of this process. A chip call leaves Python while it runs, so chips work in parallel;
kernels of different chips reach each other's windows directly.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from simpler_runtime.buffers import Buffer
from simpler_runtime.call_config import CallConfig
from simpler_runtime.callables import ChipCallable
from simpler_runtime.comm_domain import CommDomainHandle
from simpler_runtime.device import Device
from simpler_runtime.host_graph import HostGraph
from simpler_runtime.host_graph import Node as GraphNode
from simpler_runtime.orchestrator import Orchestrator
from simpler_runtime.run_handle import RunHandle, interrupted_error
from simpler_runtime.task_args import TaskArgs

MAX_ADMITTED_RUNS = 2


class Node:
    """Chips, sub-workers and the admission of runs."""

    def __init__(self, platform: str, runtime: str, device_ids: Sequence[int], sub_workers: int) -> None:
        if not device_ids:
            raise ValueError("a level-3 worker needs device_ids with at least one chip")
        if len(set(device_ids)) != len(device_ids):
            raise ValueError(f"device_ids must be distinct, got {list(device_ids)}")
        if sub_workers < 0:
            raise ValueError(f"num_sub_workers must not be negative, got {sub_workers}")
        self.devices = [Device(platform, runtime) for _ in device_ids]
        self.chip_count = len(self.devices)
        self._serving: list[RunHandle | None] = [None] * self.chip_count
        self._chip_queues: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in self.devices]
        self._sub_queue: queue.SimpleQueue = queue.SimpleQueue()
        self._sub_count = sub_workers
        self._queue_lock = threading.Lock()
        self._admission = threading.Condition()
        self._admitted: list[HostGraph] = []
        self._resources: dict[int, list[Any]] = {}
        self._threads = [
            threading.Thread(target=self._serve, args=(inbox, index), name=f"simpler-chip-{index}", daemon=True)
            for index, inbox in enumerate(self._chip_queues)
        ]
        self._threads += [
            threading.Thread(target=self._serve, args=(self._sub_queue, None), name=f"simpler-sub-{index}", daemon=True)
            for index in range(sub_workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, worker: Any, function: Callable, args: Any, config: CallConfig) -> RunHandle:
        """Executes the orchestration function; its nodes run in the background. Its exceptions propagate."""
        handle = RunHandle(self._interrupt)
        graph = HostGraph(self._dispatch, handle, self._run_ended)
        with self._admission:
            while len(self._admitted) >= MAX_ADMITTED_RUNS:
                self._admission.wait()
            self._admitted.append(graph)
            first = self._admitted[0] is graph
        if first:
            graph.activate()
        orchestrator = Orchestrator(self, graph, worker, config)
        try:
            function(orchestrator, args, config)
        except BaseException as error:
            graph.close(error)
            if isinstance(error, Exception):
                handle.settle()
            else:  # Ctrl-C and the like
                handle.cancel()
            raise
        graph.close()
        return handle

    def keep_until_end(self, graph: HostGraph, resource: CommDomainHandle | Buffer) -> None:
        """Memory that is freed when the run has ended."""
        with self._admission:
            self._resources.setdefault(id(graph), []).append(resource)

    def live_domains(self) -> dict[str, CommDomainHandle]:
        with self._admission:
            owned = [item for items in self._resources.values() for item in items]
        return {item.name: item for item in owned if isinstance(item, CommDomainHandle) and not item.released}

    def require_sub_workers(self) -> None:
        if self._sub_count == 0:
            raise ValueError("submit_sub: this worker was made with num_sub_workers=0")

    def chip_call(self, chip: int, target: ChipCallable, args: TaskArgs, config: CallConfig) -> Callable[[], None]:
        device = self.devices[chip]
        return lambda: device.run(target, args, config)

    def close(self) -> None:
        """Waits for admitted runs and stops all threads."""
        with self._admission:
            while self._admitted:
                self._admission.wait()
        for inbox in self._chip_queues:
            inbox.put(None)
        for _ in range(self._sub_count):
            self._sub_queue.put(None)
        for thread in self._threads:
            thread.join()
        for device in self.devices:
            device.close()

    # ---- execution

    def _dispatch(self, node: GraphNode) -> None:
        if len(node.places) > 1 and node.places[0] is not None:
            node.start = threading.Barrier(len(node.places))
        # One lock for all queues: every chip sees the members of two groups in the same order, so that waiting for
        # the other members cannot deadlock.
        with self._queue_lock:
            for place, work in zip(node.places, node.work):
                (self._sub_queue if place is None else self._chip_queues[place]).put((node, work))

    def _serve(self, inbox: queue.SimpleQueue, chip: int | None) -> None:
        while (item := inbox.get()) is not None:
            node, work = item
            error: BaseException | None = None
            if chip is not None:
                self._serving[chip] = node.graph.handle
            try:
                if node.start is not None:
                    node.start.wait()
                if node.graph.handle.cancelled:
                    raise interrupted_error()
                work()
            except BaseException as caught:
                error = caught
            if chip is not None:
                self._serving[chip] = None
            node.graph.member_done(node, error)

    def _interrupt(self, handle: RunHandle) -> None:
        for chip, device in enumerate(self.devices):
            if self._serving[chip] is handle:
                device.interrupt()

    def _run_ended(self, graph: HostGraph) -> None:
        with self._admission:
            resources = self._resources.pop(id(graph), [])
            self._admitted.remove(graph)
            following = self._admitted[0] if self._admitted else None
            self._admission.notify_all()
        for resource in resources:
            resource.free() if isinstance(resource, CommDomainHandle) else resource.close()
        if following is not None:
            following.activate()
