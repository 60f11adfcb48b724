"""Worker: register compiled programs and run them (level 2: one simulated chip)."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

from simpler_runtime.call_config import CallConfig
from simpler_runtime.callables import ChipCallable
from simpler_runtime.device import Device
from simpler_runtime.errors import UnsupportedFeatureError
from simpler_runtime.platforms import DEFAULT_RUNTIME, check_runtime, parse_platform
from simpler_runtime.run_handle import RunHandle
from simpler_runtime.task_args import ChipStorageTaskArgs, TaskArgs


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
        "platform", "runtime", "device_id", "device_ids", "num_sub_workers", "enable_sdma", "heap_ring_size",
        "startup_timeout_s", "py_control_timeout_s", "remote_heap_ring_size", "remote_session_timeout_s",
    }
)  # fmt: skip


class Worker:
    """Runs registered programs. ``Worker(level=2, platform="a2a3sim", device_id=0)`` is one simulated chip.

    Construction only stores the configuration; ``init`` starts the threads, ``close`` stops them. Use it as a context
    manager to get both.
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
        self._device: Device | None = None
        self._pending: queue.SimpleQueue | None = None
        self._dispatcher: threading.Thread | None = None
        self._in_flight = 0
        self._idle = threading.Condition(self._lock)

    # ---- life cycle

    def init(self, prewarm_config: CallConfig | None = None) -> None:
        """Starts the worker. RuntimeError on a second call, ValueError for an impossible configuration."""
        with self._lock:
            if self._state is not WorkerState.NEW:
                raise RuntimeError(f"Worker.init: the worker is {self._state.value}; init works once, on a new worker")
            self._state = WorkerState.INITIALIZING
        try:
            self._start()
        except BaseException:
            self._state = WorkerState.FAILED
            raise
        self._state = WorkerState.READY

    def _start(self) -> None:
        if self.level != 2:
            if isinstance(self.level, int) and self.level >= 3:
                raise UnsupportedFeatureError(f"Worker(level={self.level}): multi-chip workers")
            raise ValueError(f"level must be 2 (one chip) or at least 3, got {self.level!r}")
        platform = self.config.get("platform", "a2a3sim")
        parse_platform(platform)
        self._device = Device(platform, check_runtime(self.config.get("runtime", DEFAULT_RUNTIME)))

    def close(self) -> None:
        """Waits for accepted runs and stops the threads; later calls do nothing."""
        with self._idle:
            if self._state in (WorkerState.CLOSED, WorkerState.NEW, WorkerState.FAILED):
                self._state = WorkerState.CLOSED
                return
            if threading.current_thread() is self._dispatcher:
                raise RuntimeError("Worker.close: called from inside one of the worker's own operations")
            self._state = WorkerState.CLOSED
            while self._in_flight:
                self._idle.wait()
        if self._pending is not None:
            self._pending.put(None)
            assert self._dispatcher is not None
            self._dispatcher.join()
        if self._device is not None:
            self._device.close()

    def __enter__(self) -> Worker:
        self.init()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _require_ready(self, operation: str) -> Device:
        if self._state is not WorkerState.READY or self._device is None:
            raise RuntimeError(
                f"Worker.{operation}: the worker is {self._state.value}; call init() first and not after close()"
            )
        return self._device

    # ---- callables

    def register(self, target: ChipCallable, *, workers: Any = None) -> CallableHandle:
        """A handle for ``run`` and ``submit``. TypeError unless the target is a ChipCallable."""
        if not isinstance(target, ChipCallable):
            raise TypeError(f"a level-{self.level} worker registers ChipCallable objects, got {type(target).__name__}")
        if self._state in (WorkerState.CLOSED, WorkerState.FAILED):
            raise RuntimeError(f"Worker.register: the worker is {self._state.value}")
        digest = target.identity
        with self._lock:
            self._references[digest] = self._references.get(digest, 0) + 1
        if self._device is not None:
            self._device.load(target)
        return CallableHandle(self, target, digest)

    def unregister(self, handle: CallableHandle) -> None:
        """Gives up one reference; the code is released with the last one. KeyError-free: RuntimeError when unknown."""
        self._check_handle(handle, "unregister")
        with self._lock:
            self._references[handle.digest] -= 1
            last = self._references[handle.digest] == 0
            if last:
                del self._references[handle.digest]
        if last and self._device is not None:
            self._device.unload(handle.target)

    def _check_handle(self, handle: Any, operation: str) -> ChipCallable:
        if isinstance(handle, ChipCallable):
            raise TypeError(
                f"Worker.{operation}: pass the handle that Worker.register(callable) returned, not the ChipCallable"
            )
        if not isinstance(handle, CallableHandle):
            raise TypeError(f"Worker.{operation}: expected a CallableHandle, got {type(handle).__name__}")
        if handle.owner is not self or handle.digest not in self._references:
            raise RuntimeError(f"Worker.{operation}: {handle!r} is not registered with this worker")
        return handle.target

    # ---- runs

    def submit(self, callable: CallableHandle, args: Any = None, config: CallConfig | None = None) -> RunHandle:
        """Starts a run and returns at once; at most two runs are admitted, a third submit waits."""
        work = self._prepare("submit", callable, args, config)
        handle = RunHandle()
        with self._idle:
            self._require_ready("submit")
            while self._in_flight >= 2:
                self._idle.wait()
            self._in_flight += 1
            if self._pending is None:
                self._pending = queue.SimpleQueue()
                self._dispatcher = threading.Thread(target=self._dispatch, name="simpler-dispatch", daemon=True)
                self._dispatcher.start()
        self._pending.put((work, handle))
        return handle

    def run(self, callable: CallableHandle, args: Any = None, config: CallConfig | None = None) -> None:
        """Runs to the end on the calling thread. RuntimeError ("run failed with code -N: ...") when it failed."""
        work = self._prepare("run", callable, args, config)
        with self._idle:
            self._require_ready("run")
            direct = self._in_flight == 0
            if direct:
                self._in_flight += 1
        if not direct:
            self.submit(callable, args, config).wait()
            return
        try:
            work()
        finally:
            self._release()

    def _prepare(self, operation: str, callable: Any, args: Any, config: CallConfig | None) -> Callable[[], None]:
        device = self._require_ready(operation)
        target = self._check_handle(callable, operation)
        if args is None:
            args = ChipStorageTaskArgs()
        if not isinstance(args, (ChipStorageTaskArgs, TaskArgs)):
            raise TypeError(
                f"Worker.{operation}: args must be ChipStorageTaskArgs or TaskArgs, got {type(args).__name__}"
            )
        config = CallConfig() if config is None else config
        if not isinstance(config, CallConfig):
            raise TypeError(f"Worker.{operation}: config must be a CallConfig, got {type(config).__name__}")
        config.validate()
        return lambda: device.run(target, args, config)

    def _dispatch(self) -> None:
        assert self._pending is not None
        while (item := self._pending.get()) is not None:
            work, handle = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as caught:
                error = caught
            self._release()
            handle._finish(error)

    def _release(self) -> None:
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()
