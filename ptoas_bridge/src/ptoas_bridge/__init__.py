"""Assembler bridge: .pto text to checked dialect to kernel C++."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import AssemblerError, UnsupportedFeatureError

if TYPE_CHECKING:
    from .assembler import assemble
    from .external import find_ptoas_binary, run_ptoas

__all__ = [
    "AssemblerError",
    "UnsupportedFeatureError",
    "assemble",
    "find_ptoas_binary",
    "isa_include_dir",
    "run_ptoas",
]

# Loaded on first use, so that importing the package costs nothing.
_LAZY = {"assemble": "assembler", "find_ptoas_binary": "external", "run_ptoas": "external"}


def __getattr__(name: str):
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def isa_include_dir() -> Path:
    """Folder to put on the include path so that `#include <pto/pto-inst.hpp>` finds the CPU instruction set."""
    return Path(__file__).parent / "isa" / "include"
