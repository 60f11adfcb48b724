"""ChipWorker: one chip driven directly, with plain addresses for its memory."""

from __future__ import annotations

import copy
import ctypes
import logging
from typing import Any

from simpler_runtime.buffers import Buffer
from simpler_runtime.call_config import CallConfig
from simpler_runtime.callables import ChipCallable
from simpler_runtime.worker import CallableHandle, Worker


class ChipWorker:
    """The level-2 worker without buffers: ``malloc`` gives an int, copies take addresses and byte counts."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._blocks: dict[int, Buffer] = {}
        self._finalized = False

    def init(
        self,
        device_id: int,
        bins: Any,
        log_level: int | None = None,
        prewarm_config: CallConfig | None = None,
        enable_sdma: bool = False,
    ) -> None:
        """Starts the chip that ``bins`` (RuntimeBuilder.get_binaries) is for. RuntimeError on a second call."""
        if self._worker is not None or self._finalized:
            raise RuntimeError("ChipWorker.init works once")
        if log_level is not None:
            logging.getLogger("simpler").setLevel(log_level)
        worker = Worker(
            level=2, platform=bins.platform, runtime=bins.runtime, device_id=device_id, enable_sdma=enable_sdma
        )
        worker.init(prewarm_config)
        self._worker = worker

    @property
    def initialized(self) -> bool:
        return self._worker is not None

    def register_callable(self, chip_callable: ChipCallable) -> CallableHandle:
        return self._ready("register_callable").register(chip_callable)

    def unregister_callable(self, handle: CallableHandle) -> None:
        self._ready("unregister_callable").unregister(handle)

    def run(self, handle: CallableHandle, args: Any = None, config: CallConfig | None = None, **overrides: Any) -> None:
        """Runs to the end; keyword arguments replace fields of the configuration."""
        config = copy.copy(config) if config is not None else CallConfig()
        for name, value in overrides.items():
            setattr(config, name, value)
        self._ready("run").run(handle, args, config)

    def malloc(self, nbytes: int) -> int:
        buffer = self._ready("malloc").malloc(nbytes)
        self._blocks[buffer.base] = buffer
        return buffer.base

    def free(self, address: int) -> None:
        worker = self._ready("free")
        buffer = self._blocks.pop(address, None)
        if buffer is None:
            raise ValueError(f"0x{address:x} is not an address that malloc returned (or it is freed)")
        worker.free(buffer)

    def copy_to(self, dst: int, src: int, nbytes: int) -> None:
        """Host memory to chip memory."""
        self._check_range(dst, nbytes, "copy_to")
        ctypes.memmove(dst, src, nbytes)

    def copy_from(self, dst: int, src: int, nbytes: int) -> None:
        """Chip memory to host memory."""
        self._check_range(src, nbytes, "copy_from")
        ctypes.memmove(dst, src, nbytes)

    def finalize(self) -> None:
        """Stops the chip and frees its memory."""
        self._finalized = True
        worker, self._worker = self._worker, None
        self._blocks.clear()
        if worker is not None:
            worker.close()

    def _ready(self, operation: str) -> Worker:
        if self._worker is None:
            raise RuntimeError(f"ChipWorker.{operation}: call init() first and not after finalize()")
        return self._worker

    def _check_range(self, address: int, nbytes: int, operation: str) -> None:
        self._ready(operation)
        for base, buffer in self._blocks.items():
            if base <= address and address + nbytes <= base + buffer.nbytes:
                return
        raise ValueError(f"ChipWorker.{operation}: {nbytes} bytes at 0x{address:x} are not inside an allocated block")
