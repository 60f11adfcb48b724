"""The compiler's logger: one line per message on standard error, filtered by a process-wide or per-thread level."""

from __future__ import annotations

import os
import threading
import time
from enum import IntEnum


class LogLevel(IntEnum):
    """Threshold of the logger; a message appears when its level is at least the threshold."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


_MARKERS = "DIWEFV"
_STDERR = 2


def _initial_level() -> LogLevel:
    """Level named by ``PYPTO_LOG_LEVEL`` (any case), INFO when unset or not a name."""
    return LogLevel.__members__.get(os.environ.get("PYPTO_LOG_LEVEL", "").upper(), LogLevel.INFO)


_process_level = _initial_level()
_thread = threading.local()


def set_log_level(level: LogLevel) -> None:
    """Set the threshold of the process."""
    global _process_level
    _process_level = LogLevel(level)


def get_log_level() -> LogLevel:
    """Threshold of the process, whatever override the calling thread has, so that saving and restoring works."""
    return _process_level


def _set_thread_log_level(level: LogLevel) -> None:
    """Override the threshold for the calling thread."""
    _thread.level = LogLevel(level)


def _clear_thread_log_level() -> None:
    """Remove the override of the calling thread."""
    _thread.level = None


def _log(level: LogLevel, message: str) -> None:
    threshold = getattr(_thread, "level", None)
    if level < (_process_level if threshold is None else threshold):
        return
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    line = f"{stamp}.{int(now * 1000) % 1000:03d} {_MARKERS[level]} | {message}\n"
    # One write to the descriptor: lines of several threads do not mix, and redirection of the descriptor is honoured.
    os.write(_STDERR, line.encode("utf-8", "backslashreplace"))


def log_debug(message: str) -> None:
    """Log at DEBUG."""
    _log(LogLevel.DEBUG, message)


def log_info(message: str) -> None:
    """Log at INFO."""
    _log(LogLevel.INFO, message)


def log_warn(message: str) -> None:
    """Log at WARN."""
    _log(LogLevel.WARN, message)


def log_error(message: str) -> None:
    """Log at ERROR."""
    _log(LogLevel.ERROR, message)


def log_fatal(message: str) -> None:
    """Log at FATAL; does not end the program."""
    _log(LogLevel.FATAL, message)


def log_event(message: str) -> None:
    """Log an event, shown at every threshold but NONE."""
    _log(LogLevel.EVENT, message)
