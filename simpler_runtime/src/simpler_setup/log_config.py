"""Log level of the runtime: the Python logger named ``simpler`` is the one switch."""

from __future__ import annotations

import logging

LEVELS = {"debug": 10, "info": 20, "timing": 25, "warn": 30, "error": 40, "null": 60, "nul": 60}


def configure_logging(level: str | int = "timing") -> int:
    """Sets the threshold from a name or number and returns it. Workers read it at init."""
    if isinstance(level, str):
        try:
            value = LEVELS[level.lower()]
        except KeyError:
            raise ValueError(f"unknown log level {level!r}; levels: {', '.join(LEVELS)}") from None
    else:
        value = int(level)
    for name in ("TIMING", "NUL"):
        logging.addLevelName(LEVELS[name.lower()], name)
    logging.getLogger("simpler").setLevel(value)
    return value
