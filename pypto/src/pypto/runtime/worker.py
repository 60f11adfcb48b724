"""Workers: where compiled programs run and where device data lives."""

from __future__ import annotations

import abc
import contextlib
import contextvars
import ctypes
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

from pypto.runtime.arguments import check_symbols, check_tensor, scalar_value, split_arguments
from pypto.runtime.device_tensor import DeviceTensor, check_shape
from pypto.runtime.run_config import RunConfig, check_config

_active: contextvars.ContextVar[tuple[ChipWorker, ...]] = contextvars.ContextVar("chip_workers", default=())


class Worker(abc.ABC):
    """What every worker offers; before ``init`` and after ``close`` every method is a ``RuntimeError``."""

    @abc.abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Device memory; ``ValueError`` for a size that is no positive int."""

    @abc.abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Release memory; ``ValueError`` for an unknown or interior pointer."""

    @abc.abstractmethod
    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Run an artifact, in either argument style."""

    @abc.abstractmethod
    def register(self, compiled: Any) -> RegistrationHandle:
        """Assemble and upload an artifact once."""


def _check_program(value: Any) -> None:
    from pypto.runtime.compiled_program import CompiledProgram

    if not isinstance(value, CompiledProgram):
        raise TypeError(f"a worker runs a CompiledProgram, got {type(value).__name__}")


def _check_address(name: str, value: Any) -> None:
    """``ValueError`` for what cannot be the address of memory."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**64:
        raise ValueError(f"{name} must be an address, a positive int, got {value!r}")


class RegistrationHandle:
    """A registered artifact; call it like the artifact. Unregistering makes further calls a ``RuntimeError``."""

    def __init__(self, worker: Worker, compiled: Any, cid: Any):
        self._worker = worker
        self.compiled = compiled
        self.cid = cid
        self.closed = False

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        if self.closed:
            raise RuntimeError("RegistrationHandle has been unregistered; register the program again")
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        self.closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.unregister()


class ChipWorker(Worker):
    """One simulated chip. Memory allocated through it stays valid until it is freed or the worker closes.

    Inside ``with ChipWorker(config):`` every call of an artifact with the same platform and runtime uses it.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = 2,
        runtime: str = "tensormap_and_ringbuffer",
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ):
        if level != 2:
            raise ValueError(f"ChipWorker works at level 2, got {level}")
        check_config(config)
        self._config = config or RunConfig()
        from pypto.runtime.compiled_program import run_platform

        self.level = level
        self.platform = run_platform(self._config.platform)
        self.device_id = self._config.device_id
        self.runtime = runtime
        self.enable_sdma = enable_sdma
        self._worker: Any = None
        self._handles: dict[int, Any] = {}
        self._keep: dict[int, Any] = {}
        self._blocks: dict[int, Any] = {}
        self._lock = threading.RLock()
        self._loads = 0
        if auto_init is None or auto_init:
            self.init()

    # -- life cycle ---------------------------------------------------------------------------------------------

    @property
    def initialized(self) -> bool:
        return self._worker is not None

    def init(self) -> None:
        """Start the worker; nothing happens when it runs."""
        from pypto.runtime.binaries import require_simulator

        with self._lock:
            if self._worker is not None:
                return
            require_simulator(self.platform)
            from simpler_runtime import Worker as RuntimeWorker

            worker = RuntimeWorker(
                level=2,
                platform=self.platform,
                runtime=self.runtime,
                device_id=self.device_id,
                enable_sdma=self.enable_sdma,
            )
            worker.init()
            self._worker = worker

    def close(self) -> None:
        """Stop the worker and free what is still allocated; nothing happens when it is stopped."""
        with self._lock:
            if self._worker is None:
                return
            self._worker.close()
            self._worker = None
            self._handles.clear()
            self._keep.clear()
            self._blocks.clear()

    def __enter__(self) -> ChipWorker:
        if self.current(level=self.level, platform=self.platform, device_id=self.device_id, runtime=self.runtime):
            raise ValueError(
                f"a ChipWorker for {self.platform} device {self.device_id} ({self.runtime}) is already active here"
            )
        self.init()
        self._token = _active.set((*_active.get(), self))
        return self

    def __exit__(self, *exc: object) -> None:
        _active.reset(self._token)
        self.close()

    @staticmethod
    def current(
        *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """The innermost active worker with this binding, or None."""
        for worker in reversed(_active.get()):
            if (worker.level, worker.platform, worker.device_id, worker.runtime) == (
                level,
                platform,
                device_id,
                runtime,
            ):
                if require_sdma and not worker.enable_sdma:
                    raise RuntimeError("the active ChipWorker was created without enable_sdma=True")
                return worker
        return None

    def _ready(self, operation: str) -> Any:
        if self._worker is None:
            raise RuntimeError(f"ChipWorker.{operation}: the worker is not initialised; call init() first")
        return self._worker

    @staticmethod
    def _only_worker(worker_id: int) -> None:
        if worker_id != 0:
            raise ValueError(f"a ChipWorker has the single worker id 0, got {worker_id}")

    @property
    def aicpu_dlopen_count(self) -> int:
        return self._loads

    @property
    def host_dlopen_count(self) -> int:
        return self._loads

    # -- memory -------------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        self._only_worker(worker_id)
        self._ready("malloc")
        if not isinstance(nbytes, int) or isinstance(nbytes, bool) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        try:
            block = (ctypes.c_char * (nbytes + 63))()
        except OverflowError:
            raise MemoryError(f"cannot allocate {nbytes} bytes") from None
        address = (ctypes.addressof(block) + 63) // 64 * 64
        self._blocks[address] = (block, nbytes)
        return address

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        self._only_worker(worker_id)
        self._ready("free")
        _check_address("ptr", ptr)
        if ptr not in self._blocks:
            raise ValueError(f"{ptr:#x} is not the start of an allocation of this worker")
        del self._blocks[ptr]

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Host to device, ``nbytes`` bytes."""
        self._only_worker(worker_id)
        self._ready("copy_to")
        _check_address("src_host_ptr", src_host_ptr)
        self._inside("dst_dev_ptr", dst_dev_ptr, nbytes)
        ctypes.memmove(dst_dev_ptr, src_host_ptr, nbytes)

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Device to host, ``nbytes`` bytes."""
        self._only_worker(worker_id)
        self._ready("copy_from")
        _check_address("dst_host_ptr", dst_host_ptr)
        self._inside("src_dev_ptr", src_dev_ptr, nbytes)
        ctypes.memmove(dst_host_ptr, src_dev_ptr, nbytes)

    def _inside(self, name: str, pointer: int, nbytes: int) -> None:
        _check_address(name, pointer)
        if not isinstance(nbytes, int) or isinstance(nbytes, bool) or nbytes < 0:
            raise ValueError(f"nbytes must be an int >= 0, got {nbytes!r}")
        for start, (_, size) in self._blocks.items():
            if start <= pointer and pointer + nbytes <= start + size:
                return
        raise ValueError(f"{nbytes} bytes at {pointer:#x} are not inside an allocation of this worker")

    def alloc_tensor(self, shape: Any, dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Device memory for a tensor, filled from ``init`` when given.

        Raises:
            ValueError: an empty or non-positive shape; ``init`` of another shape or dtype.
            TypeError: dimensions that are no ints.
        """
        self._only_worker(worker_id)
        self._ready("alloc_tensor")
        import torch

        shape = check_shape(shape)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype must be a torch.dtype, got {type(dtype).__name__}")
        if init is not None and not isinstance(init, torch.Tensor):
            raise TypeError(f"init must be a torch.Tensor, got {type(init).__name__}")
        if init is not None and (tuple(init.shape) != shape or init.dtype != dtype):
            raise ValueError(f"init has shape {tuple(init.shape)} and dtype {init.dtype}, expected {shape} and {dtype}")
        nbytes = dtype.itemsize
        for dim in shape:
            nbytes *= dim
        tensor = DeviceTensor(self.malloc(nbytes), shape, dtype, buffer=None)
        if init is not None:
            source = init.contiguous()
            ctypes.memmove(tensor.data_ptr, source.data_ptr(), nbytes)
        return tensor

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Release a tensor; a second time nothing happens."""
        self._only_worker(worker_id)
        self._ready("free_tensor")
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(f"free_tensor expects a DeviceTensor, got {type(tensor).__name__}")
        self._blocks.pop(tensor.data_ptr, None)

    # -- runs ---------------------------------------------------------------------------------------------------

    def register(self, compiled: Any) -> RegistrationHandle:
        _check_program(compiled)
        return RegistrationHandle(self, compiled, self._handle(compiled))

    def _handle(self, compiled: Any) -> Any:
        worker = self._ready("register")
        with self._lock:
            handle = self._handles.get(id(compiled))
            if handle is None:
                callable_, manifest = compiled.assembled(self.platform, on_disk=True)
                runtime = manifest.runtime["runtime"]
                if runtime != self.runtime:
                    raise ValueError(
                        f"the artifact was compiled for runtime '{runtime}', the worker runs '{self.runtime}'"
                    )
                if manifest.runtime.get("enable_sdma") and not self.enable_sdma:
                    raise RuntimeError("the artifact uses asynchronous DMA; create the worker with enable_sdma=True")
                handle = self._handles[id(compiled)] = worker.register(callable_)
                self._keep[id(compiled)] = compiled
                self._loads += 1
            return handle

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        _check_program(compiled)
        values, allocated = split_arguments(compiled.params, args, compiled.has_return)
        self.execute(compiled, values, config)
        return compiled._results(values) if allocated else None

    def execute(self, compiled: Any, values: list[Any], config: RunConfig | None = None) -> None:
        """Run with all arguments given."""
        check_config(config)
        from pypto.runtime.compiled_program import run_platform

        worker = self._ready("run")
        platform = run_platform(config.platform if config is not None else compiled.platform)
        if platform != self.platform:
            raise ValueError(f"the program is for platform '{platform}', the worker runs '{self.platform}'")
        handle = self._handle(compiled)
        arguments = self._pack(compiled.params, values)
        check_symbols(compiled.params, values)
        try:
            worker.run(handle, arguments, call_config(config, compiled))
        except RuntimeError as error:
            from pypto.language.parser.diagnostics import attach_reports

            attach_reports(error)
            raise

    def _pack(self, params: Any, values: list[Any]) -> Any:
        from simpler_runtime.data_types import torch_dtype_to_datatype
        from simpler_runtime.tensors import ChipTensor

        from simpler_runtime import ChipStorageTaskArgs

        packed = ChipStorageTaskArgs()
        scalars = []
        for position, (param, value) in enumerate(zip(params, values)):
            if not param.is_tensor:
                scalars.append(scalar_value(param, position, value))
            elif isinstance(value, DeviceTensor):
                self._check_device_tensor(param, value)
                packed.add_tensor(
                    ChipTensor.make(value.data_ptr, value.shape, torch_dtype_to_datatype(value.dtype), True)
                )
            else:
                check_tensor(param, position, value)
                packed.add_tensor(value)
        for scalar in scalars:
            packed.add_scalar(scalar)
        return packed

    def _check_device_tensor(self, param: Any, value: DeviceTensor) -> None:
        if value.data_ptr not in self._blocks:
            raise ValueError(f"the DeviceTensor for '{param.name}' is freed or belongs to another worker")
        shape = param.shape
        if len(shape) != len(value.shape) or any(d >= 0 and d != s for d, s in zip(shape, value.shape)):
            raise TypeError(f"parameter '{param.name}' expects shape {list(shape)}, got {list(value.shape)}")
        from pypto.runtime.arguments import torch_dtype

        if torch_dtype(param.dtype) != value.dtype:
            raise TypeError(f"parameter '{param.name}' expects {torch_dtype(param.dtype)}, got {value.dtype}")


@functools.cache
def _default_call_config() -> Any:
    """The options of runs without a configuration; nobody changes them."""
    from simpler_runtime import CallConfig

    return CallConfig()


def call_config(config: RunConfig | None, compiled: Any) -> Any:
    """The task runtime's options of one run."""
    if config is None:
        return _default_call_config()
    from simpler_runtime import CallConfig

    options = CallConfig(
        aicpu_thread_num=config.aicpu_thread_num or 0,
        enable_chip_swimlane=config.enable_chip_swimlane,
        enable_dump_args=config.enable_dump_args,
        enable_pmu=max(config.enable_pmu, 0),
        enable_dep_gen=config.enable_dep_gen,
        enable_scope_stats=config.enable_scope_stats,
    )
    if config.any_dfx_enabled():
        folder = compiled.output_dir / "dfx_outputs"
        folder.mkdir(parents=True, exist_ok=True)
        options.output_prefix = str(folder)
    for name in ("ring_task_window", "ring_heap", "ring_dep_pool"):
        value = getattr(config, name)
        if value is not None:
            setattr(options.runtime_env, name, value)
    return options


_shared: dict[tuple[str, str], ChipWorker] = {}
_shared_lock = threading.Lock()


def _forget_shared() -> None:
    """After a fork: the workers have lost their threads, and the lock perhaps its owner."""
    global _shared_lock
    _shared.clear()
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_shared)


@contextlib.contextmanager
def one_shot_worker(platform: str, compiled: Any, config: RunConfig | None) -> Iterator[ChipWorker]:
    """The active worker that fits, else one the process keeps for direct calls: starting one costs more than a run."""
    from pypto.runtime.binaries import require_simulator

    require_simulator(platform)
    runtime = compiled.assembled(platform)[1].runtime["runtime"]
    device = config.device_id if config is not None else 0
    active = ChipWorker.current(level=2, platform=platform, device_id=device, runtime=runtime)
    if active is not None:
        yield active
        return
    with _shared_lock:
        worker = _shared.get((platform, runtime))
        if worker is None or not worker.initialized:
            worker = _shared[(platform, runtime)] = ChipWorker(RunConfig(platform=platform), runtime=runtime)
    yield worker
