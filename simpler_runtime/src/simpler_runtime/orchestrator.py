"""Orchestrator: what a level-3 orchestration function submits its work through."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simpler_runtime.buffers import Buffer
from simpler_runtime.call_config import CallConfig
from simpler_runtime.comm_domain import CommBufferSpec, CommDomainHandle
from simpler_runtime.data_types import DataType, get_element_size
from simpler_runtime.errors import UnsupportedFeatureError
from simpler_runtime.host_graph import HostGraph
from simpler_runtime.task_args import TaskArgs
from simpler_runtime.tensors import check_shape

if TYPE_CHECKING:
    from simpler_runtime.node import Node

MAX_SCOPE_DEPTH = 64


class Orchestrator:
    """Valid while the orchestration function of one run executes."""

    def __init__(self, node: Node, graph: HostGraph, worker: Any, config: CallConfig) -> None:
        self._node = node
        self._graph = graph
        self._worker = worker
        self._config = config
        self._depth = 0
        self._submitted = False
        self._domains: dict[str, CommDomainHandle] = {}

    # ---- submission

    def submit_next_level(self, handle: Any, args: TaskArgs, config: CallConfig | None = None, *, worker: int) -> None:
        """One run of a chip program on chip ``worker``."""
        chip = self._check_chip(worker)
        self._submit_chips("submit_next_level", handle, [args], config, [chip])

    def submit_next_level_group(
        self, handle: Any, args_list: Sequence[TaskArgs], config: CallConfig | None = None, *, workers: Sequence[int]
    ) -> None:
        """One node whose members run on different chips and start together."""
        chips = [self._check_chip(chip) for chip in workers]
        if len(chips) != len(args_list):
            raise ValueError(f"submit_next_level_group: {len(args_list)} argument lists for {len(chips)} workers")
        if len(set(chips)) != len(chips):
            raise ValueError(f"submit_next_level_group: workers must be distinct, got {chips}")
        if not chips:
            raise ValueError("submit_next_level_group: a group has at least one member")
        self._submit_chips("submit_next_level_group", handle, list(args_list), config, chips)

    def submit_sub(self, handle: Any, args: TaskArgs | None = None) -> None:
        """One call ``fn(args)`` of a registered Python function on any idle sub-worker."""
        self.submit_sub_group(handle, [TaskArgs() if args is None else args])

    def submit_sub_group(self, handle: Any, args_list: Sequence[TaskArgs]) -> None:
        """One node of several calls."""
        function = self._worker._resolve_function(handle, "submit_sub")
        for args in args_list:
            self._check_args("submit_sub", args)
            for index in range(args.tensor_count()):
                buffer = getattr(args.tensor(index), "buffer", None)
                if buffer is not None and buffer.chip is not None:
                    raise ValueError(f"submit_sub: tensor {index} is device memory of chip {buffer.chip}")
        self._node.require_sub_workers()
        self._submitted = True
        calls = [args.materialized() for args in args_list]
        work = [lambda call=call: function(call) for call in calls]
        name = getattr(function, "__name__", "sub-worker call")
        self._graph.submit(name, [None] * len(calls), work, list(args_list))

    def _submit_chips(
        self, operation: str, handle: Any, args_list: list[TaskArgs], config: CallConfig | None, chips: list[int]
    ) -> None:
        target = self._worker._resolve_chip_callable(handle, operation)
        for args in args_list:
            self._check_args(operation, args)
        config = self._config if config is None else config
        if not isinstance(config, CallConfig):
            raise TypeError(f"{operation}: config must be a CallConfig, got {type(config).__name__}")
        config.validate()
        self._submitted = True
        work = [self._node.chip_call(chip, target, args.copy(), config) for chip, args in zip(chips, args_list)]
        self._graph.submit(f"{target.func_name} on chip {chips}", list(chips), work, args_list)

    def _check_chip(self, worker: Any) -> int:
        if isinstance(worker, bool) or not isinstance(worker, int):
            raise TypeError(f"worker must be an int (a chip index), got {type(worker).__name__}")
        if not 0 <= worker < self._node.chip_count:
            raise ValueError(f"worker {worker} is outside 0..{self._node.chip_count - 1}")
        return worker

    @staticmethod
    def _check_args(operation: str, args: Any) -> None:
        if not isinstance(args, TaskArgs):
            raise TypeError(f"{operation}: args must be TaskArgs, got {type(args).__name__}")

    # ---- scopes

    def scope_begin(self) -> None:
        if self._depth >= MAX_SCOPE_DEPTH:
            raise RuntimeError(f"scopes are nested deeper than {MAX_SCOPE_DEPTH}")
        self._depth += 1

    def scope_end(self) -> None:
        if self._depth == 0:
            raise RuntimeError("scope_end without scope_begin")
        self._depth -= 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        self.scope_begin()
        try:
            yield
        finally:
            self.scope_end()

    # ---- memory

    def alloc(self, shape: Sequence[int], dtype: DataType) -> Buffer:
        """A host intermediate that lives until the run has ended."""
        nbytes = get_element_size(DataType(dtype))
        for extent in check_shape(shape):
            nbytes *= extent
        buffer = Buffer.allocate(max(nbytes, 1), owner=self._worker)
        self._node.keep_until_end(self._graph, buffer)
        return buffer

    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: DataType) -> Buffer:
        self._before_first_submit("alloc_child_tensor")
        return self._worker.alloc_child_tensor(worker_id, shapes, dtype)

    def free(self, handle: Buffer) -> None:
        self._before_first_submit("free")
        self._worker.free(handle)

    def copy_to(self, dst: Buffer, src: Any) -> None:
        self._before_first_submit("copy_to")
        self._worker.copy_to(dst, src)

    def copy_from(self, dst: Any, src: Buffer) -> None:
        self._before_first_submit("copy_from")
        self._worker.copy_from(dst, src)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        self._before_first_submit("committed_device_memory")
        return self._worker.committed_device_memory(worker_id)

    def _before_first_submit(self, operation: str) -> None:
        if self._submitted:
            raise RuntimeError(f"{operation} must come before the first submit of the run")

    # ---- communication domains

    def allocate_domain(
        self, *, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec] = ()
    ) -> CommDomainHandle:
        """A window on every member; a context manager. The memory is freed when the run has ended."""
        members = [self._check_chip(chip) for chip in workers]
        live = self._domains.get(name)
        if live is not None and not live.released:
            raise ValueError(f"a domain named {name!r} is already live in this run")
        domain = CommDomainHandle(name, members, window_size, buffers, self._worker)
        self._domains[name] = domain
        self._node.keep_until_end(self._graph, domain)
        return domain

    def release_domain(self, handle: CommDomainHandle) -> None:
        handle.release()

    def allocate_global_domain(self, *_: Any, **__: Any) -> CommDomainHandle:
        raise UnsupportedFeatureError("allocate_global_domain: domains across machines")

    def get_global_domain(self, domain_id: int) -> CommDomainHandle:
        raise UnsupportedFeatureError("get_global_domain: domains across machines")
