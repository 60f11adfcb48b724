"""Level of the runtime logger (the Python logger ``simpler``)."""

from __future__ import annotations

import importlib.util
import logging
import os

from pypto.logging import LogLevel, set_log_level

_LEVELS = {"debug": 10, "info": 20, "timing": 25, "warn": 30, "warning": 30, "error": 40, "null": 60}
_DEFAULT = 25
_logger = logging.getLogger("simpler")


def log_level() -> int:
    """The current threshold; 25 (timing) until one is set. Timing markers are printed only once it was set."""
    return _logger.level or _DEFAULT


def configure_log(level: int | str, *, sync_pypto: bool = False) -> None:
    """Set the threshold of the runtime logger, and with ``sync_pypto`` that of the compiler logger too.

    Unknown names are ignored, any int is stored.

    Raises:
        RuntimeError: the runtime package is not installed.
    """
    if importlib.util.find_spec("simpler_runtime") is None:
        raise RuntimeError("the runtime package is not installed; install simpler-runtime")
    value = _LEVELS.get(level.lower()) if isinstance(level, str) else level
    if value is None:
        return
    _logger.setLevel(value)
    if sync_pypto:
        set_log_level(_compiler_level(value))


def _compiler_level(value: int) -> LogLevel:
    for bound, level in ((10, LogLevel.DEBUG), (20, LogLevel.INFO), (30, LogLevel.WARN), (40, LogLevel.ERROR)):
        if value <= bound:
            return level
    return LogLevel.NONE


def _bootstrap() -> None:
    value = _LEVELS.get(os.environ.get("PYPTO_RUNTIME_LOG", "").lower())
    if value is not None:
        _logger.setLevel(value)
    if os.environ.get("PYPTO_RUNTIME_LOG_SYNC") == "1" and "PYPTO_RUNTIME_LOG" in os.environ:
        set_log_level(_compiler_level(value or _DEFAULT))


_bootstrap()
