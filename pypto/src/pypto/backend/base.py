"""Backend base: hardware description, memory paths, static snapshot, and the process-wide selection."""

from __future__ import annotations

import os
from collections import deque
from enum import Enum
from pathlib import Path
from typing import ClassVar

import msgspec

from pypto.backend.handler import BackendHandler
from pypto.backend.soc import SoC
from pypto.errors import user_error
from pypto.ir import CoreType, MemorySpace


class BackendType(Enum):
    """Code generation targets."""

    Ascend910B = 0
    Ascend950 = 1


class Backend:
    """One architecture; a singleton per class (``instance()``)."""

    backend_type: ClassVar[BackendType]
    type_name: ClassVar[str]
    handler_class: ClassVar[type[BackendHandler]]
    #: Source space -> spaces reachable by one move.
    moves: ClassVar[dict[MemorySpace, tuple[MemorySpace, ...]]]
    soc: SoC
    _instances: ClassVar[dict[type, Backend]] = {}

    @classmethod
    def instance(cls) -> Backend:
        if cls not in Backend._instances:
            Backend._instances[cls] = cls()
        return Backend._instances[cls]

    def __init__(self) -> None:
        self._mems = {mem.mem_type: mem for core in self.soc.cores() for mem in core.mems}
        self.handler = self.handler_class(self)

    def get_type_name(self) -> str:
        return self.type_name

    def get_handler(self) -> BackendHandler:
        return self.handler

    def get_mem_size(self, space: MemorySpace) -> int:
        """Usable bytes per core, 0 for DDR and spaces the chip lacks."""
        mem = self._mems.get(space)
        return mem.mem_size if mem else 0

    def get_mem_alignment(self, space: MemorySpace) -> int:
        """Address alignment in bytes."""
        mem = self._mems.get(space)
        return mem.alignment if mem else 1

    def get_core_count(self, core_type: CoreType) -> int:
        """Cores of that type on the whole chip."""
        return sum(count for core, count in self.soc.cores().items() if core.core_type == core_type)

    def find_mem_path(self, src: MemorySpace, dst: MemorySpace) -> list[MemorySpace]:
        """Shortest chain of moves including both ends; one element for equal ends, empty when unreachable."""
        previous: dict[MemorySpace, MemorySpace | None] = {src: None}
        queue = deque([src])
        while queue:
            space = queue.popleft()
            if space is dst:
                path = [space]
                while (before := previous[path[-1]]) is not None:
                    path.append(before)
                return path[::-1]
            for following in self.moves.get(space, ()):
                if following not in previous:
                    previous[following] = space
                    queue.append(following)
        return []

    def export_to_file(self, path: str | os.PathLike) -> None:
        """Write a MessagePack snapshot of the description."""
        snapshot = {
            "schema": 1,
            "backend": self.backend_type.name,
            "memories": {space.name: [mem.mem_size, mem.alignment] for space, mem in self._mems.items()},
            "moves": {src.name: [dst.name for dst in dsts] for src, dsts in self.moves.items()},
        }
        Path(path).write_bytes(msgspec.msgpack.encode(snapshot))

    @staticmethod
    def import_from_file(path: str | os.PathLike) -> Backend:
        """The backend whose type a snapshot records."""
        try:
            snapshot = msgspec.msgpack.decode(Path(path).read_bytes())
            return get_backend_instance(BackendType[snapshot["backend"]])
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a backend snapshot: {error}") from error


_CLASSES: dict[BackendType, type[Backend]] = {}
_selected: BackendType | None = None


def register_backend(cls: type[Backend]) -> type[Backend]:
    """Class decorator: make a backend selectable by its type."""
    _CLASSES[cls.backend_type] = cls
    return cls


def get_backend_instance(backend_type: BackendType) -> Backend:
    if not isinstance(backend_type, BackendType):
        members = ", ".join(f"BackendType.{name}" for name in BackendType.__members__)
        raise TypeError(f"backend_type must be one of {members}, got {backend_type!r}")
    return _CLASSES[backend_type].instance()


def set_backend_type(backend_type: BackendType) -> None:
    """Select the target of this process; selecting another one later is a ``ValueError``."""
    global _selected
    if _selected is not None and _selected is not backend_type:
        raise user_error(f"Backend type already set to {_selected.name}, cannot change to {backend_type.name}")
    _selected = backend_type


def get_backend_type() -> BackendType:
    if _selected is None:
        raise user_error("Backend type not configured. Call set_backend_type(BackendType.Ascend910B) first.")
    return _selected


def is_backend_configured() -> bool:
    return _selected is not None


def reset_for_testing() -> None:
    """Forget the selection."""
    global _selected
    _selected = None


class use_backend:
    """Context manager: the target is ``backend_type`` inside, whatever was selected before."""

    def __init__(self, backend_type: BackendType):
        self.backend_type = backend_type

    def __enter__(self) -> Backend:
        global _selected
        self._before = _selected
        _selected = self.backend_type
        return get_backend_instance(self.backend_type)

    def __exit__(self, *exc: object) -> None:
        global _selected
        _selected = self._before


def get_handler() -> BackendHandler:
    """Handler of the selected target."""
    return get_backend_instance(get_backend_type()).handler
