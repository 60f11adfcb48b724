"""Assembler bridge: .pto text to checked dialect to kernel C++."""

from __future__ import annotations

from pathlib import Path

from .errors import AssemblerError, UnsupportedFeatureError

__all__ = [
    "AssemblerError",
    "UnsupportedFeatureError",
    "assemble",
    "isa_include_dir",
]


def __getattr__(name: str):
    # The assembler loads on first use, so that importing the package costs nothing.
    if name == "assemble":
        from .assembler import assemble

        return assemble
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def isa_include_dir() -> Path:
    """Folder to put on the include path so that `#include <pto/pto-inst.hpp>` finds the CPU instruction set."""
    return Path(__file__).parent / "isa" / "include"
