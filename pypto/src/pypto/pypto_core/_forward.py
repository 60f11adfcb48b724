"""Module-level attribute access forwarded to the module that defines the objects."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def forward(target: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that re-exports all of ``target``, imported on first access."""

    def getattribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(target), name)

    def directory() -> list[str]:
        return dir(importlib.import_module(target))

    return getattribute, directory
