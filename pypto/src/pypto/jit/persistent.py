"""Calls of JIT functions that are served by the store of earlier processes.

Only calls are: ``compile()`` always builds, because its artifact is the caller's to inspect and to edit. A request
that wants files (dumps, profiles, diagnostics, an output folder) or that depends on something without a stable
description is compiled as if there were no store. :mod:`pypto.artifact.cache` says whether and where there is one.
"""

from __future__ import annotations

import enum
import hashlib
import os
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.artifact import cache, store
from pypto.artifact.cache import CacheConfig
from pypto.compile_profiling import get_active_profiler
from pypto.ir.dtype import DataType
from pypto.jit.tensor_meta import TensorMeta
from pypto.language.typing.dynamic import DynVar

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

#: Environment variables that ask for a fresh compile: its output, its checks or its reports are wanted.
_FRESH = ("PTOAS_ROOT", "PYPTO_PROG_BUILD_DIR", "PYPTO_VERIFY_LEVEL", "PYPTO_WARNING_LEVEL", "PYPTO_EMIT_DEBUG_RUNNER")
#: Modules whose content the compiler's fingerprint or the Python version describes.
_KNOWN_MODULES = ("pypto", "torch", "math", "typing")


class _Undescribed(Exception):
    """A value that has no description which is stable between processes."""


def serves(config: Any) -> bool:
    """Whether a call with this configuration wants nothing but its results."""
    return config is None or not (
        config.platform == "torch"
        or config.dump_passes
        or config.dump_ptoas_passes
        or config.compile_profiling
        or config.save_kernels
        or config.save_kernels_dir
        or config.diagnostic_phase is not None
        or config.disabled_diagnostics is not None
        or config.distributed_config is not None
    )


@dataclass(frozen=True)
class Place:
    """Where the store keeps a request."""

    name: str
    cache: CacheConfig


def place_of(entry: JITFunction, key: tuple, config: Any) -> Place | None:
    """The place of a request; None, which is counted with its cause, when the store has no part in it.

    Raises:
        TypeError, ValueError: a wrong cache configuration or environment variable.
    """
    settings = cache.settings(config.cache_config if config is not None else None)
    if not settings.enabled:
        cache.count("disabled_requests")
        return None
    if not serves(config) or any(os.environ.get(name) for name in _FRESH) or get_active_profiler() is not None:
        cache.count("forced_rebuilds")
        return None
    try:
        return Place(_stable_name(entry, key, settings), settings)
    except _Undescribed as error:
        cache.count("bypasses", reason=str(error))
        return None


def restore(place: Place, config: Any) -> Any:
    """The artifact that an earlier process made, or None."""
    from pypto.runtime.compiled_program import CompiledProgram

    with cache.timed("lookup_ns"):
        folder = store.lookup(place.name, place.cache.folder)
        try:
            if folder is not None:
                platform = config.platform if config is not None else None
                found = CompiledProgram.from_dir(folder, platform=platform)
                cache.count("ready_hits")
                return found
        except (OSError, ValueError):
            cache.count("invalid_entries")
    cache.count("misses")
    return None


def publish(place: Place, artifact: Path) -> None:
    """Make an artifact available to later processes; nothing is written in a read-only store."""
    if not place.cache.readonly:
        store.publish(place.name, artifact, place.cache.folder)


def _stable_name(entry: JITFunction, key: tuple, settings: CacheConfig) -> str:
    """A hash of everything that decides the generated code; :class:`_Undescribed` when that is not known."""
    *request, context = key
    if context:
        raise _Undescribed("an active PassContext")
    parts = [_describe(tuple(request)), _extra(settings)]
    for function in (entry, *entry.dependencies):
        if function.extern is not None:
            raise _Undescribed(f"the external kernel '{function.__name__}'")
        parts.append(f"{function.kind.name} {function.level} {function.auto_scope}")
        parts.extend(f"{name}={_describe(value)}" for name, value in function.free_values())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _extra(settings: CacheConfig) -> str:
    """The fingerprint and the files that the user adds to every name."""
    digest = hashlib.sha256()
    for given in map(Path, settings.extra_source_paths):
        files = sorted(p for p in given.rglob("*") if p.is_file()) if given.is_dir() else [given]
        for path in files:
            digest.update(f"{path.relative_to(given.parent)}\0".encode() + path.read_bytes() + b"\0")
    return f"{settings.extra_fingerprint!r} {digest.hexdigest() if settings.extra_source_paths else ''}"


def _describe(value: Any) -> str:
    """A text that is equal for equal values in every process; types stay apart (``1``, ``1.0``, ``True``)."""
    if value is None or isinstance(value, (bool, int, str)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, DataType):
        return f"DataType {value.to_string()}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(_describe, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(sorted(f'{_describe(k)}: {_describe(v)}' for k, v in value.items()))})"
    if isinstance(value, DynVar):
        return f"DynVar {value.name}"
    if isinstance(value, TensorMeta):
        return f"TensorMeta {_describe((value.shape, value.dtype, value.layout))}"
    return _describe_code(value)


def _describe_code(value: Any) -> str:
    if hasattr(value, "source_hash"):
        return f"jit {value.source_hash}"
    if isinstance(value, types.ModuleType):
        module = name = value.__name__
    else:
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and module.partition(".")[0] in _KNOWN_MODULES:
        return f"code {module}:{name}"
    raise _Undescribed(f"a value of type {type(value).__name__}")
