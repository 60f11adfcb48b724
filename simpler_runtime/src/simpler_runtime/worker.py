"""Worker: register programs and run them on one simulated chip (level 2) or on several (level 3)."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import math
import os
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from simpler_runtime import _native
from simpler_runtime.buffers import Buffer, Tensor, host_memory, wrap_host_tensor
from simpler_runtime.call_config import CallConfig
from simpler_runtime.callables import ChipCallable
from simpler_runtime.chip import Chip
from simpler_runtime.comm_domain import CommDomainHandle
from simpler_runtime.data_types import DataType, get_element_size
from simpler_runtime.device import LOG_TIMING
from simpler_runtime.errors import UnsupportedFeatureError
from simpler_runtime.node import Node
from simpler_runtime.platforms import DEFAULT_RUNTIME, check_runtime, parse_platform
from simpler_runtime.run_handle import RunHandle
from simpler_runtime.task_args import ChipStorageTaskArgs, TaskArgs
from simpler_runtime.tensors import check_shape


class WorkerState(Enum):
    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"
    CLOSED = "closed"
    FAILED = "failed"


class CallableHandle:
    """A registered callable. Equal content registered twice shares one identity."""

    __slots__ = ("digest", "owner", "target")

    def __init__(self, owner: Any, target: Any, digest: str) -> None:
        self.owner = owner
        self.target = target
        self.digest = digest

    def __repr__(self) -> str:
        return f"CallableHandle({self.digest[:12]})"


_CONFIG_KEYS = frozenset(
    {
        "platform",
        "runtime",
        "device_id",
        "device_ids",
        "num_sub_workers",
        "enable_sdma",
        "heap_ring_size",
        "startup_timeout_s",
        "py_control_timeout_s",
        "remote_heap_ring_size",
        "remote_session_timeout_s",
        "chip_bootstrap_configs",
    }
)


class Worker:
    """Runs registered programs.

    ``Worker(level=2, platform="a2a3sim", device_id=0)`` is one chip; ``Worker(level=3, platform=..., device_ids=[0, 1],
    num_sub_workers=1)`` is a machine with two chips and one Python sub-worker. Construction only stores the settings;
    ``init`` starts the threads, ``close`` stops them. Use it as a context manager to get both.
    """

    def __init__(self, level: int = 2, **config: Any) -> None:
        unknown = set(config) - _CONFIG_KEYS
        if unknown:
            raise TypeError(f"Worker got unknown settings {sorted(unknown)}; known: {sorted(_CONFIG_KEYS)}")
        for key in ("startup_timeout_s", "py_control_timeout_s", "remote_session_timeout_s"):
            value = config.get(key)
            if value is not None and not (isinstance(value, (int, float)) and value > 0 and math.isfinite(value)):
                raise ValueError(f"{key} must be a positive finite number of seconds, got {value!r}")
        self.level = level
        self.config = config
        self._state = WorkerState.NEW
        self._lock = threading.RLock()
        self._references: dict[str, int] = {}
        self._buffers: dict[int, Buffer] = {}
        self._chip: Chip | None = None
        self._node: Node | None = None
        self._process = 0

    # ---- life cycle

    def init(self, prewarm_config: CallConfig | None = None) -> None:
        """Starts the worker. RuntimeError on a second call, ValueError for an impossible configuration."""
        if prewarm_config is not None:
            prewarm_config.validate()
        with self._lock:
            if self._state is not WorkerState.NEW:
                raise RuntimeError(f"Worker.init: the worker is {self._state.value}; init works once, on a new worker")
            self._state = WorkerState.INITIALIZING
            self._process = os.getpid()
        try:
            self._start()
        except BaseException:
            self._state = WorkerState.FAILED
            raise
        self._state = WorkerState.READY

    def _start(self) -> None:
        if not isinstance(self.level, int) or self.level < 2:
            raise ValueError(f"level must be 2 (one chip) or at least 3, got {self.level!r}")
        platform = self.config.get("platform", "a2a3sim")
        parse_platform(platform)
        # The Python logger is the one switch; its level is taken over here.
        _native.library().simpler_set_log_level(logging.getLogger("simpler").level or LOG_TIMING)
        runtime = check_runtime(self.config.get("runtime", DEFAULT_RUNTIME))
        if self.level == 2:
            self._chip = Chip(platform, runtime)
        elif self.level == 3:
            devices = self.config.get("device_ids") or ()
            self._node = Node(platform, runtime, devices, self.config.get("num_sub_workers", 0))
        else:
            raise UnsupportedFeatureError(f"Worker(level={self.level}): several machines")

    def add_worker(self, worker: Worker) -> int:
        raise UnsupportedFeatureError("Worker.add_worker: workers of level 4 and above")

    def close(self) -> None:
        """Waits for accepted runs, stops the threads and frees the worker's buffers; later calls do nothing."""
        with self._lock:
            if self._state is not WorkerState.READY or self._process != os.getpid():
                # A forked child has the memory of a worker but none of its threads.
                self._state = WorkerState.CLOSED
                return
            if self._chip is not None and self._chip.on_own_thread():
                raise RuntimeError("Worker.close: called from inside one of the worker's own operations")
            self._state = WorkerState.CLOSED
        if self._chip is not None:
            self._chip.close()
        if self._node is not None:
            self._node.close()
        for buffer in list(self._buffers.values()):
            buffer.close()
        self._buffers.clear()

    def __enter__(self) -> Worker:
        self.init()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _require_ready(self, operation: str) -> None:
        if self._state is not WorkerState.READY:
            raise RuntimeError(
                f"Worker.{operation}: the worker is {self._state.value}; call init() first and not after close()"
            )
        if self._process != os.getpid():
            raise RuntimeError(
                f"Worker.{operation}: the worker was started by another process; make one after the fork"
            )

    # ---- callables

    def register(self, target: Any, *, workers: Any = None) -> CallableHandle:
        """A handle for ``run`` and ``submit``.

        A level-2 worker registers ChipCallable objects; a level-3 worker also Python functions, for ``submit_sub``.
        TypeError for anything else. ``workers`` may name the chips that need a program; every chip loads it on demand.
        """
        if isinstance(target, ChipCallable):
            digest = target.identity
        elif self.level >= 3 and callable(target):
            digest = hashlib.sha256(f"python:{id(target)}".encode()).hexdigest()
        else:
            accepted = "ChipCallable objects" if self.level < 3 else "ChipCallable objects and Python functions"
            raise TypeError(f"a level-{self.level} worker registers {accepted}, got {type(target).__name__}")
        if self._state in (WorkerState.CLOSED, WorkerState.FAILED):
            raise RuntimeError(f"Worker.register: the worker is {self._state.value}")
        with self._lock:
            self._references[digest] = self._references.get(digest, 0) + 1
        if self._chip is not None and isinstance(target, ChipCallable):
            self._chip.device.load(target)
        return CallableHandle(self, target, digest)

    def unregister(self, handle: CallableHandle) -> None:
        """Gives up one reference; loaded code is released with the last one."""
        target = self._resolve(handle, "unregister")
        with self._lock:
            self._references[handle.digest] -= 1
            last = self._references[handle.digest] == 0
            if last:
                del self._references[handle.digest]
        if last and isinstance(target, ChipCallable):
            devices = [self._chip.device] if self._chip else self._node.devices if self._node else []
            for device in devices:
                device.unload(target)

    def _resolve(self, handle: Any, operation: str) -> Any:
        if isinstance(handle, ChipCallable):
            raise TypeError(
                f"{operation}: pass the handle that Worker.register(callable) returned, not the ChipCallable"
            )
        if not isinstance(handle, CallableHandle):
            raise TypeError(f"{operation}: expected a CallableHandle, got {type(handle).__name__}")
        if handle.owner is not self or handle.digest not in self._references:
            raise RuntimeError(f"{operation}: {handle!r} is not registered with this worker")
        return handle.target

    def _resolve_chip_callable(self, handle: Any, operation: str) -> ChipCallable:
        target = self._resolve(handle, operation)
        if not isinstance(target, ChipCallable):
            raise TypeError(f"{operation}: {handle!r} is a Python function; chips run ChipCallable objects")
        return target

    def _resolve_function(self, handle: Any, operation: str) -> Callable[[TaskArgs], Any]:
        target = self._resolve(handle, operation)
        if isinstance(target, ChipCallable):
            raise TypeError(f"{operation}: {handle!r} is a chip program; sub-workers run Python functions")
        return target

    # ---- runs

    def submit(self, callable: Any, args: Any = None, config: CallConfig | None = None) -> RunHandle:
        """Starts a run and returns a handle; at most two runs are admitted, a third submit waits.

        Level 2: ``callable`` is a handle. Level 3: it is ``f(orch, args, config)``, executed now; its exceptions
        propagate.
        """
        self._require_ready("submit")
        config = self._check_config("submit", config)
        if self._node is not None:
            return self._node.submit(self, self._check_function("submit", callable), args, config)
        assert self._chip is not None
        return self._chip.submit(self._chip_work("submit", callable, args, config))

    def run(self, callable: Any, args: Any = None, config: CallConfig | None = None) -> None:
        """Runs to the end. RuntimeError ("run failed with code -N: ...") when a chip run failed."""
        self._require_ready("run")
        config = self._check_config("run", config)
        if self._node is not None:
            self._node.submit(self, self._check_function("run", callable), args, config).wait()
            return
        assert self._chip is not None
        self._chip.run(self._chip_work("run", callable, args, config))

    @staticmethod
    def _check_config(operation: str, config: CallConfig | None) -> CallConfig:
        config = CallConfig() if config is None else config
        if not isinstance(config, CallConfig):
            raise TypeError(f"Worker.{operation}: config must be a CallConfig, got {type(config).__name__}")
        config.validate()
        return config

    @staticmethod
    def _check_function(operation: str, function: Any) -> Callable:
        if not callable(function):
            raise TypeError(
                f"Worker.{operation}: a level-3 worker runs f(orch, args, config), got {type(function).__name__}"
            )
        return function

    def _chip_work(self, operation: str, handle: Any, args: Any, config: CallConfig) -> Callable[[], None]:
        target = self._resolve_chip_callable(handle, f"Worker.{operation}")
        if args is None:
            args = ChipStorageTaskArgs()
        if not isinstance(args, (ChipStorageTaskArgs, TaskArgs)):
            raise TypeError(
                f"Worker.{operation}: args must be ChipStorageTaskArgs or TaskArgs, got {type(args).__name__}"
            )
        assert self._chip is not None
        device = self._chip.device
        return lambda: device.run(target, args, config)

    # ---- memory

    def malloc(self, size: int) -> Buffer:
        """Memory of the chip (level 2 only)."""
        if self.level != 2:
            raise TypeError("Worker.malloc is for level 2; use alloc_child_tensor(worker_id, shapes, dtype)")
        self._require_ready("malloc")
        return self._keep(Buffer.allocate(size, owner=self, chip=0))

    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: DataType) -> Buffer:
        """Memory of one chip (level 3)."""
        if self._node is None:
            self._require_ready("alloc_child_tensor")
            raise TypeError("Worker.alloc_child_tensor is for level 3; use malloc(size)")
        if not 0 <= worker_id < self._node.chip_count:
            raise ValueError(f"worker_id {worker_id} is outside 0..{self._node.chip_count - 1}")
        nbytes = get_element_size(DataType(dtype))
        for extent in check_shape(shapes):
            nbytes *= extent
        return self._keep(Buffer.allocate(nbytes, owner=self, chip=worker_id))

    def create_buffer(self, nbytes: int) -> Buffer:
        """Shared host memory: ``buffer.shm.buf`` is its memory view, ``buffer.tensor(shapes, dtype)`` names a part."""
        self._require_ready("create_buffer")
        return self._keep(Buffer.allocate(nbytes, owner=self))

    def alloc_shared_tensor(self, shapes: Sequence[int], dtype: DataType) -> Tensor:
        """A host intermediate that lives until the worker is closed."""
        nbytes = get_element_size(DataType(dtype))
        for extent in check_shape(shapes):
            nbytes *= extent
        return self.create_buffer(max(nbytes, 1)).tensor(shapes, dtype)

    def free(self, handle: Buffer) -> None:
        """Frees a buffer of this worker. ValueError for a foreign or already freed one."""
        self._check_buffer("free", handle)
        del self._buffers[handle.buffer_id]
        handle.close()

    def release_buffer(self, buffer: Buffer) -> None:
        self.free(buffer)

    def copy_to(self, dst: Buffer, src: Any) -> None:
        """Host data into a buffer; the length is that of the host data."""
        self._copy("copy_to", dst, src, to_buffer=True)

    def copy_from(self, dst: Any, src: Buffer) -> None:
        """A buffer into host data; the length is that of the host data."""
        self._copy("copy_from", src, dst, to_buffer=False)

    def make_tensor_arg(self, tensor: Any, shapes: Any = None, dtype: Any = None, *, strides: Any = None) -> Tensor:
        """Names the memory of a CPU torch or numpy tensor as a run argument, without a copy."""
        return wrap_host_tensor(tensor, self, shapes, dtype, strides)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Bytes of chip memory that are allocated on one chip."""
        return sum(buffer.nbytes for buffer in self._buffers.values() if buffer.chip == worker_id)

    @property
    def live_domains(self) -> dict[str, CommDomainHandle]:
        return self._node.live_domains() if self._node is not None else {}

    @property
    def host_dlopen_count(self) -> int:
        """Orchestration libraries loaded so far."""
        return self._load_count()

    @property
    def aicpu_dlopen_count(self) -> int:
        return self._load_count()

    def _load_count(self) -> int:
        devices = [self._chip.device] if self._chip else self._node.devices if self._node else []
        return sum(device.load_count for device in devices)

    def _keep(self, buffer: Buffer) -> Buffer:
        self._buffers[buffer.buffer_id] = buffer
        return buffer

    def _check_buffer(self, operation: str, buffer: Any) -> None:
        self._require_ready(operation)
        if not isinstance(buffer, Buffer):
            raise TypeError(f"Worker.{operation}: expected a Buffer, got {type(buffer).__name__}")
        if buffer.closed:
            raise ValueError(f"Worker.{operation}: {buffer!r} has been freed")
        if self._buffers.get(buffer.buffer_id) is not buffer:
            raise ValueError(f"Worker.{operation}: {buffer!r} does not belong to this worker")

    def _copy(self, operation: str, buffer: Buffer, host: Any, *, to_buffer: bool) -> None:
        self._check_buffer(operation, buffer)
        if buffer.chip is None:
            raise ValueError(f"Worker.{operation}: {buffer!r} is host memory; a copy goes between host and chip")
        if isinstance(host, Buffer):
            if host.chip is not None:
                raise ValueError(f"Worker.{operation}: {host!r} is chip memory; a copy goes between host and chip")
        elif self.level != 2:
            raise TypeError(f"Worker.{operation}: at level {self.level} the host side is a Buffer (create_buffer)")
        address, nbytes = host_memory(host)
        if nbytes > buffer.nbytes:
            raise ValueError(f"Worker.{operation}: {nbytes} bytes do not fit in {buffer!r}")
        if to_buffer:
            ctypes.memmove(buffer.base, address, nbytes)
        else:
            ctypes.memmove(address, buffer.base, nbytes)
