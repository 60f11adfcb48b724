"""One simulated chip: a native scheduler with its threads, and the callables loaded for it."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading

from simpler_runtime import _native
from simpler_runtime.call_config import CallConfig
from simpler_runtime.callables import CORE_TYPES, DEFAULT_CONFIG, ChipCallable
from simpler_runtime.platforms import AICPU_THREAD_LIMITS, SIMULATED_CLUSTERS, check_runtime, require_simulated
from simpler_runtime.task_args import _ArgList, chip_records

LOG_TIMING = 25
INTERRUPTED = -107
_MESSAGE_BYTES = 8192


def worker_thread_count() -> int:
    """Threads beside the calling one: ``SIMPLER_WORKER_THREADS``, else one per further processor."""
    configured = os.environ.get("SIMPLER_WORKER_THREADS", "")
    if configured:
        if not configured.isdigit() or not 1 <= int(configured) <= 1024:
            raise ValueError(f"SIMPLER_WORKER_THREADS must be an integer in 1..1024, got {configured!r}")
        return int(configured)
    return _native.library().simpler_default_worker_count()


def timing_markers_wanted() -> bool:
    """``[STRACE]`` lines go to stderr when the logger ``simpler`` asks for TIMING (25) or ``SIMPLER_STRACE`` is 1."""
    return os.environ.get("SIMPLER_STRACE", "") == "1" or 0 < logging.getLogger("simpler").level <= LOG_TIMING


def pmu_event(config: CallConfig) -> int:
    """The event type of a run; ``SIMPLER_PMU_EVENT_TYPE`` replaces it while collection is on."""
    override = os.environ.get("SIMPLER_PMU_EVENT_TYPE", "")
    return int(override) if config.enable_pmu > 0 and override.isdigit() else max(config.enable_pmu, 0)


def interrupts_needed() -> int:
    """How many interrupts (Ctrl-C) end a run of the calling thread.

    Python runs handlers on the main thread. Its own one raises KeyboardInterrupt, so the first interrupt ends the run.
    A handler of the program may want the run to end normally, so the run insists on a second one. 0: none ends it.
    """
    if threading.current_thread() is not threading.main_thread():
        return 0
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        return 1
    return 2 if callable(handler) else 0


class Device:
    """A chip of one platform. Runs are serialised; ``run`` may be called from any thread."""

    def __init__(self, platform: str, runtime: str) -> None:
        arch = require_simulated(platform)
        self.runtime = check_runtime(runtime)
        self.arch = arch
        self._library = _native.library()
        self._lock = threading.RLock()
        self._loaded: dict[str, int] = {}
        self.load_count = 0
        self._handle = self._library.simpler_device_create(int(arch == "a5"), worker_thread_count(), SIMULATED_CLUSTERS)
        if not self._handle:
            raise MemoryError("cannot allocate the memory of the simulated cores")

    def load(self, callable_: ChipCallable) -> int:
        """Native handle of a callable; loading the same content again is free."""
        identity = callable_.identity
        with self._lock:
            known = self._loaded.get(identity)
            if known is not None:
                return known
            children = callable_.children
            count = len(children)
            error = ctypes.create_string_buffer(1024)
            handle = self._library.simpler_callable_load(
                os.fsencode(callable_.code.path),
                callable_.func_name.encode(),
                (callable_.config_name or DEFAULT_CONFIG).encode(),
                count,
                (ctypes.c_int32 * count)(*(func_id for func_id, _ in children)),
                (ctypes.c_char_p * count)(*(os.fsencode(child.code.path) for _, child in children)),
                (ctypes.c_char_p * count)(*((child.name or f"func_{func_id}").encode() for func_id, child in children)),
                (ctypes.c_int32 * count)(*(CORE_TYPES[child.core_type] for _, child in children)),
                error,
                len(error),
            )
            if not handle:
                raise RuntimeError(f"cannot load the callable: {error.value.decode(errors='replace')}")
            self._loaded[identity] = handle
            self.load_count += 1
            return handle

    def unload(self, callable_: ChipCallable) -> None:
        with self._lock:
            handle = self._loaded.pop(callable_.identity, None)
            if handle is not None:
                self._library.simpler_callable_free(handle)

    def run(self, callable_: ChipCallable, args: _ArgList, config: CallConfig) -> None:
        """Runs to the end. RuntimeError with the runtime's report when the run failed."""
        limit = AICPU_THREAD_LIMITS[self.arch]
        if config.aicpu_thread_num > limit:
            raise ValueError(f"aicpu_thread_num must be 0 (auto) or in 2..{limit}, got {config.aicpu_thread_num}")
        tensors, scalars = chip_records(args)
        # ChipTensor records are 64-byte aligned on the native side.
        raw = ctypes.create_string_buffer(len(tensors) + 64)
        address = (ctypes.addressof(raw) + 63) & ~63
        ctypes.memmove(address, tensors, len(tensors))
        windows, heaps, pools = config.runtime_env.resolved()
        request = _native.RunRequest()
        request.tensors = address
        scalar_buffer = ctypes.create_string_buffer(scalars, max(len(scalars), 1))
        request.scalars = ctypes.addressof(scalar_buffer)
        request.tensor_count = args.tensor_count()
        request.scalar_count = args.scalar_count()
        request.task_window[:] = windows
        request.heap[:] = heaps
        request.dep_pool[:] = pools
        request.host_build_graph = int(self.runtime == "host_build_graph")
        request.serial = int(os.environ.get("SIMPLER_TMR_SERIAL_ORCH_SCHED_ENABLE", "") == "1")
        request.swimlane_level = config.enable_chip_swimlane
        request.dump_level = config.enable_dump_args
        request.pmu_event = pmu_event(config)
        request.dep_gen = config.enable_dep_gen
        request.scope_stats = config.enable_scope_stats
        if config.diagnostics:
            request.output_prefix = os.fsencode(os.path.abspath(config.output_prefix))
            request.create_diagnostics = _native.diagnostics_factory()
        request.timing_markers = timing_markers_wanted()
        request.callable_hash = int(callable_.identity[:16], 16)
        request.interrupts_needed = interrupts_needed()
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        # Loading under the same lock: nobody can unload the code before the run has ended.
        with self._lock:
            code = self._library.simpler_run(
                self._handle, self.load(callable_), ctypes.byref(request), message, len(message)
            )
        if code == INTERRUPTED:
            ctypes.pythonapi.PyErr_CheckSignals()  # raises what the handler raises: KeyboardInterrupt, as a rule
        if code != 0:
            raise RuntimeError(f"run failed with code {code}: {message.value.decode(errors='replace')}")

    def interrupt(self) -> None:
        """Fails the run that another thread is in, if there is one."""
        if self._handle:
            self._library.simpler_interrupt(self._handle)

    def close(self) -> None:
        """Stops the threads. The device must not be used afterwards."""
        with self._lock:
            handle, self._handle = self._handle, None
            loaded, self._loaded = self._loaded, {}
        for callable_handle in loaded.values():
            self._library.simpler_callable_free(callable_handle)
        if handle:
            self._library.simpler_device_destroy(handle)
