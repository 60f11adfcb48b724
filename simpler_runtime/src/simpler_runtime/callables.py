"""Compiled code of one program: kernels (CoreCallable) and the orchestration that submits them (ChipCallable)."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from simpler_runtime import toolchain

MAX_KERNELS = 1024
CORE_TYPES = {"aic": 0, "aiv": 1, "": -1}
DEFAULT_ENTRY = "aicpu_orchestration_entry"
DEFAULT_CONFIG = "aicpu_orchestration_config"


class ArgDirection(IntEnum):
    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


def arg_direction_name(direction: ArgDirection | int) -> str:
    return ArgDirection(direction).name


class TensorArgType(IntEnum):
    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4


class _Binary:
    """A shared library given as bytes or as a file of the cache (whose name is its content hash)."""

    __slots__ = ("_bytes", "_path")

    def __init__(self, content: bytes | Path) -> None:
        if not isinstance(content, (bytes, bytearray, memoryview, Path)):
            raise TypeError(f"a binary is given as bytes, got {type(content).__name__}")
        self._path = content if isinstance(content, Path) else None
        self._bytes = None if isinstance(content, Path) else bytes(content)
        if self._bytes is not None and not self._bytes:
            raise ValueError("the binary is empty")

    @property
    def path(self) -> Path:
        if self._bytes is not None and not self.on_disk:
            self._path = toolchain.store_binary(self._bytes)
        assert self._path is not None
        return self._path

    @property
    def on_disk(self) -> bool:
        """Whether the content is in a file that still exists."""
        return self._path is not None and self._path.exists()

    @property
    def content(self) -> bytes:
        if self._bytes is None:
            assert self._path is not None
            self._bytes = self._path.read_bytes()
        return self._bytes

    @property
    def size(self) -> int:
        return len(self._bytes) if self._bytes is not None else self.path.stat().st_size

    @property
    def identity(self) -> str:
        if self._path is not None:
            return f"{self._path.parent.name}{self._path.stem}"
        return hashlib.sha256(self.content).hexdigest()


class _Signed:
    """Shared part: a positional signature of argument directions and a binary."""

    def __init__(self, signature: Iterable[ArgDirection | int], binary: bytes | Path) -> None:
        self._signature = tuple(ArgDirection(direction) for direction in signature)
        self.code = _Binary(binary)

    @property
    def sig_count(self) -> int:
        return len(self._signature)

    def sig(self, index: int) -> ArgDirection:
        if not 0 <= index < len(self._signature):
            raise IndexError(f"signature index {index} is outside 0..{len(self._signature) - 1}")
        return self._signature[index]

    @property
    def binary_size(self) -> int:
        return self.code.size


class CoreCallable(_Signed):
    """One kernel. ``core_type`` ("aic", "aiv" or "" for unknown) lets the runtime refuse the wrong slot."""

    def __init__(
        self, signature: Iterable[ArgDirection | int], binary: bytes | Path, core_type: str = "", name: str = ""
    ) -> None:
        super().__init__(signature, binary)
        if core_type not in CORE_TYPES:
            raise ValueError(f"core_type must be 'aic' or 'aiv', got {core_type!r}")
        self.core_type = core_type
        self.name = name

    @classmethod
    def build(
        cls, signature: Iterable[ArgDirection | int], binary: bytes, *, core_type: str = "", name: str = ""
    ) -> CoreCallable:
        return cls(signature, binary, core_type, name)


class ChipCallable(_Signed):
    """One orchestration library and its kernels. Equal content has an equal ``identity``."""

    def __init__(
        self,
        signature: Iterable[ArgDirection | int],
        func_name: str,
        binary: bytes | Path,
        children: Sequence[tuple[int, CoreCallable]],
        config_name: str = "",
    ) -> None:
        super().__init__(signature, binary)
        if len(children) > MAX_KERNELS:
            raise ValueError(f"a callable has at most {MAX_KERNELS} kernels, got {len(children)}")
        seen: set[int] = set()
        for func_id, child in children:
            if not isinstance(child, CoreCallable):
                raise TypeError(
                    f"children are (func_id, CoreCallable) pairs, got {type(child).__name__} for id {func_id}"
                )
            if not 0 <= func_id < MAX_KERNELS:
                raise ValueError(f"kernel id {func_id} is outside 0..{MAX_KERNELS - 1}")
            if func_id in seen:
                raise ValueError(f"kernel id {func_id} is given twice")
            seen.add(func_id)
        self.func_name = func_name or DEFAULT_ENTRY
        self.config_name = config_name
        self.children = tuple((int(func_id), child) for func_id, child in children)

    @classmethod
    def build(
        cls,
        signature: Iterable[ArgDirection | int],
        func_name: str,
        binary: bytes,
        children: Sequence[tuple[int, CoreCallable]],
        config_name: str = "",
    ) -> ChipCallable:
        return cls(signature, func_name, binary, children, config_name)

    @property
    def on_disk(self) -> bool:
        """Whether all code is in files that still exist: somebody may have emptied the compile cache."""
        return self.code.on_disk and all(child.code.on_disk for _, child in self.children)

    @property
    def child_count(self) -> int:
        return len(self.children)

    def child_func_id(self, index: int) -> int:
        return self.children[index][0]

    @cached_property
    def identity(self) -> str:
        """SHA-256 over everything that can change what a run does."""
        parts = [self.func_name, self.config_name, repr(self._signature), self.code.identity]
        parts += [f"{func_id}:{child.core_type}:{child.name}:{child.code.identity}" for func_id, child in self.children]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def to_bytes(self) -> bytes:
        """A self-contained copy for another process: JSON header, then the binaries."""
        header = {
            "signature": list(self._signature),
            "func_name": self.func_name,
            "config_name": self.config_name,
            "sizes": [self.binary_size] + [child.binary_size for _, child in self.children],
            "children": [[i, list(c._signature), c.core_type, c.name] for i, c in self.children],
        }
        text = json.dumps(header).encode()
        return b"".join(
            [
                struct.pack("<4sI", b"CHIP", len(text)),
                text,
                self.code.content,
                *(c.code.content for _, c in self.children),
            ]
        )

    @classmethod
    def from_bytes(cls, raw: bytes) -> ChipCallable:
        """The inverse of to_bytes(); ValueError when the bytes are something else."""
        if len(raw) < 8 or raw[:4] != b"CHIP":
            raise ValueError("these bytes are not a serialised ChipCallable")
        (length,) = struct.unpack_from("<I", raw, 4)
        try:
            header = json.loads(raw[8 : 8 + length])
            binaries, position = [], 8 + length
            for size in header["sizes"]:
                binaries.append(raw[position : position + size])
                position += size
            if position != len(raw):
                raise ValueError("length mismatch")
            children = [
                (func_id, CoreCallable(signature, binary, core_type, name))
                for (func_id, signature, core_type, name), binary in zip(header["children"], binaries[1:])
            ]
            return cls(header["signature"], header["func_name"], binaries[0], children, header["config_name"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"damaged ChipCallable: {error}") from None
