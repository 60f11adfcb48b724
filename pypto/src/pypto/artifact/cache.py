"""Settings and counters of the store of compiled JIT programs.

A setting comes from the call (``RunConfig.cache_config``), else from the process (:func:`configure_cache`), else from
the environment (``PYPTO_CACHE``, ``PYPTO_CACHE_DIR``, ``PYPTO_CACHE_READONLY``). Without any of them the store is on
and lies beside the compile cache of the task runtime.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CacheConfig:
    """How JIT calls use the store.

    Args:
        enabled: False compiles as if the store were empty, and writes nothing.
        root: folder of the entries; None is the default place.
        readonly: entries are used, but nothing is written below the root.
        extra_source_paths: files, or folders of files, whose content decides as well what is compiled.
        extra_fingerprint: a text that keeps entries apart, such as the name of a tool version.

    Raises:
        TypeError: a field of another type.
    """

    enabled: bool = False
    root: str | os.PathLike | None = None
    readonly: bool = False
    extra_source_paths: tuple[str | os.PathLike, ...] = ()
    extra_fingerprint: str | None = None

    def __post_init__(self) -> None:
        for name in ("enabled", "readonly"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"CacheConfig.{name} must be a bool, got {getattr(self, name)!r}")
        if self.root is not None and not isinstance(self.root, (str, os.PathLike)):
            raise TypeError(f"CacheConfig.root must be a path or None, got {self.root!r}")
        if self.extra_fingerprint is not None and not isinstance(self.extra_fingerprint, str):
            raise TypeError(f"CacheConfig.extra_fingerprint must be a str or None, got {self.extra_fingerprint!r}")
        paths = self.extra_source_paths
        if isinstance(paths, (str, os.PathLike)) or not all(isinstance(p, (str, os.PathLike)) for p in paths):
            raise TypeError(f"CacheConfig.extra_source_paths must be a sequence of paths, got {paths!r}")
        object.__setattr__(self, "extra_source_paths", tuple(paths))

    @property
    def folder(self) -> Path | None:
        """``root`` as a path, None for the default place."""
        return None if self.root is None else Path(self.root).expanduser()


@dataclass(frozen=True)
class CacheStats:
    """What happened to the JIT calls of this process.

    Every request is one of: served by an object of this process (``object_hits``), by an entry of the store
    (``ready_hits``; ``generated_hits`` stays 0, because binaries have a cache of their own), not found (``misses``),
    compiled because the store is off (``disabled_requests``), because files were asked for (``forced_rebuilds``), or
    because it has no description that is stable between processes (``bypasses``, with the last reason).
    ``invalid_entries`` are entries found damaged, ``storage_errors`` failed writes. ``generation_builds`` counts
    compilations, ``binary_builds`` artifacts whose binaries were then built. Times are in nanoseconds.
    """

    requests: int = 0
    object_hits: int = 0
    ready_hits: int = 0
    generated_hits: int = 0
    misses: int = 0
    invalid_entries: int = 0
    storage_errors: int = 0
    generation_builds: int = 0
    binary_builds: int = 0
    disabled_requests: int = 0
    forced_rebuilds: int = 0
    bypasses: int = 0
    last_bypass_reason: str | None = None
    lookup_ns: int = 0
    build_ns: int = 0


_lock = threading.Lock()
_process: CacheConfig | None = None
_counts: dict[str, Any] = dataclasses.asdict(CacheStats())


def configure_cache(config: CacheConfig | None) -> None:
    """Set how JIT calls of this process use the store; None goes back to the environment."""
    global _process
    if config is not None and not isinstance(config, CacheConfig):
        raise TypeError(f"configure_cache() takes a CacheConfig or None, got {config!r}")
    _process = config


def settings(call: CacheConfig | None) -> CacheConfig:
    """The configuration that counts for a call; ``ValueError`` for an environment variable that is neither 0 nor 1."""
    if call is not None and not isinstance(call, CacheConfig):
        raise TypeError(f"RunConfig.cache_config must be a CacheConfig or None, got {call!r}")
    if call is not None or _process is not None:
        return call or _process or CacheConfig()
    return CacheConfig(
        enabled=_switch("PYPTO_CACHE", True),
        root=os.environ.get("PYPTO_CACHE_DIR") or None,
        readonly=_switch("PYPTO_CACHE_READONLY", False),
    )


def _switch(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value not in ("0", "1"):
        raise ValueError(f"{name} must be 0 or 1, got {value!r}")
    return value == "1"


def cache_stats() -> CacheStats:
    """The counters as they are now."""
    with _lock:
        return CacheStats(**_counts)


def count(name: str, amount: int = 1, reason: str | None = None) -> None:
    """Add to a counter."""
    with _lock:
        _counts[name] += amount
        if reason is not None:
            _counts["last_bypass_reason"] = reason


@contextlib.contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the time spent inside to a counter."""
    start = time.perf_counter_ns()
    try:
        yield
    finally:
        count(name, time.perf_counter_ns() - start)
