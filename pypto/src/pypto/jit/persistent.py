"""Calls of JIT functions that are served by the store of earlier processes.

Only calls are: ``compile()`` always builds, because its artifact is the caller's to inspect and to edit. A request
that wants files (dumps, profiles, diagnostics, an output folder) or that depends on something without a stable
description is compiled as if there were no store. ``PYPTO_CACHE=0`` switches the store off.
"""

from __future__ import annotations

import enum
import hashlib
import os
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.artifact import store
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


def restore(entry: JITFunction, key: tuple, config: Any) -> Any:
    """The artifact that an earlier process made for ``key``, or None."""
    name = _stable_name(entry, key)
    folder = store.lookup(name) if name is not None else None
    if folder is None:
        return None
    from pypto.runtime.compiled_program import CompiledProgram

    try:
        return CompiledProgram.from_dir(folder, platform=config.platform if config is not None else None)
    except (OSError, ValueError):
        return None


def publish(entry: JITFunction, key: tuple, artifact: Path) -> None:
    """Make an artifact available to later processes, if its key has a stable name."""
    name = _stable_name(entry, key)
    if name is not None:
        store.publish(name, artifact)


def enabled() -> bool:
    """What ``PYPTO_CACHE`` says; ``ValueError`` for anything but 0 and 1."""
    value = os.environ.get("PYPTO_CACHE", "1")
    if value not in ("0", "1"):
        raise ValueError(f"PYPTO_CACHE must be 0 or 1, got {value!r}")
    return value == "1"


def _stable_name(entry: JITFunction, key: tuple) -> str | None:
    """A hash of everything that decides the generated code; None when that is not known, or not wanted."""
    if not enabled() or any(os.environ.get(name) for name in _FRESH) or get_active_profiler() is not None:
        return None
    *request, context = key
    if context:
        return None
    try:
        parts = [_describe(tuple(request))]
        for function in (entry, *entry.dependencies):
            if function.extern is not None:
                return None
            parts.append(f"{function.kind.name} {function.level} {function.auto_scope}")
            parts.extend(f"{name}={_describe(value)}" for name, value in function.free_values())
    except _Undescribed:
        return None
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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
    raise _Undescribed
