"""The public module names of the compiler core. Nothing is defined here: everything is re-exported."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.errors import Error, InternalError, check, internal_check, internal_check_span
from pypto.ir.dtype import DataType
from pypto.logging import (
    LogLevel,
    _clear_thread_log_level,
    _set_thread_log_level,
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)

_SUBMODULES = ("arith", "backend", "codegen", "ir", "logging", "passes", "testing")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
