"""Communication domains: one window of memory per chip that the kernels of every member can reach."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simpler_runtime.buffers import Buffer

COMM_CONTEXT_BYTES = 1056
MAX_RANKS = 64
_PAGE = 4096


@dataclass(frozen=True)
class CommBufferSpec:
    """One named buffer in the window of every member; ``count`` elements, ``nbytes`` reserved."""

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclass
class ChipDomainContext:
    """What one member needs: its rank, the address of its context record, its window and buffers."""

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffers: dict[str, Buffer] = field(default_factory=dict)


class CommDomainHandle:
    """A live domain; index it with a chip index. A context manager that releases it at the end."""

    def __init__(
        self, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec], owner: Any
    ) -> None:
        members = list(workers)
        if not name:
            raise ValueError("a communication domain needs a name")
        if not 1 <= len(members) <= MAX_RANKS:
            raise ValueError(f"domain {name!r}: 1 to {MAX_RANKS} workers, got {len(members)}")
        if len(set(members)) != len(members):
            raise ValueError(f"domain {name!r}: workers must be distinct, got {members}")
        needed = sum(spec.nbytes for spec in buffers)
        if needed > window_size:
            raise ValueError(f"domain {name!r}: buffers need {needed} bytes, the window has {window_size}")
        if len({spec.name for spec in buffers}) != len(buffers):
            raise ValueError(f"domain {name!r}: buffer names must be distinct")
        self.name = name
        self.workers = tuple(members)
        self._released = False
        self._freed = False
        stride = max(_PAGE, (window_size + _PAGE - 1) // _PAGE * _PAGE)
        # Fresh pages are zero before any member can see them.
        self._memory = Buffer.allocate(stride * len(members), owner=owner)
        self._records = Buffer.allocate(COMM_CONTEXT_BYTES * len(members), owner=owner)
        windows = [self._memory.base + rank * stride for rank in range(len(members))]
        table = struct.pack(f"<{MAX_RANKS}Q", *windows, *([0] * (MAX_RANKS - len(windows))))
        self.contexts: dict[int, ChipDomainContext] = {}
        for rank, chip in enumerate(members):
            record = struct.pack("<QQIIQ", 0, 0, rank, len(members), window_size) + table + table
            assert self._records.shm is not None
            start = rank * COMM_CONTEXT_BYTES
            self._records.shm.buf[start : start + COMM_CONTEXT_BYTES] = record
            context = ChipDomainContext(
                name, rank, len(members), self._records.base + start, windows[rank], window_size
            )
            offset = 0
            for spec in buffers:
                context.buffers[spec.name] = Buffer(
                    windows[rank] + offset, spec.nbytes, owner=owner, chip=chip, keep_alive=self._memory
                )
                offset += spec.nbytes
            self.contexts[chip] = context

    def __getitem__(self, chip: int) -> ChipDomainContext:
        if self._released:
            raise RuntimeError(f"domain {self.name!r} has been released")
        try:
            return self.contexts[chip]
        except KeyError:
            raise ValueError(f"chip {chip} is not a member of domain {self.name!r} {list(self.workers)}") from None

    def release(self) -> None:
        """No further use by the orchestration; the memory goes when the run has drained."""
        self._released = True

    @property
    def released(self) -> bool:
        return self._released

    @property
    def freed(self) -> bool:
        return self._freed

    def free(self) -> None:
        self._released = True
        if not self._freed:
            self._freed = True
            self._records.close()
            self._memory.close()

    def __enter__(self) -> CommDomainHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
