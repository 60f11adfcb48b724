"""Tile programs in Python: language, IR, passes, code generation and execution.

Importing this package is cheap: sub-packages load on first access.
"""

from __future__ import annotations

import importlib
from typing import Any

from pypto.errors import Error, InternalError, check, internal_check, internal_check_span
from pypto.ir.dtype import DTYPES as _DTYPES
from pypto.ir.dtype import DataType
from pypto.logging import (
    LogLevel,
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)

__version__ = "0.1.0"

_SUBMODULES = frozenset(
    {
        "arith", "artifact", "backend", "codegen", "compile_profiling", "debug", "errors", "ir", "jit", "language",
        "logging", "ops", "passes", "pypto_core", "runtime", "testing", "tools",
    }
)  # fmt: skip

_LAZY = dict.fromkeys(("CacheConfig", "CacheStats", "cache_stats", "configure_cache"), "pypto.artifact.cache")

globals().update({f"DT_{name}": dtype for name, dtype in _DTYPES.items() if name != "TASK_ID"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
