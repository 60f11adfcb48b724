"""Re-exports ``pypto.ir``; its ``IRBuilder`` is the one with explicit begin and end calls."""

from __future__ import annotations

from typing import Any

from pypto.pypto_core._forward import forward

_forwarded, __dir__ = forward("pypto.ir")


def __getattr__(name: str) -> Any:
    if name == "IRBuilder":
        from pypto.ir.raw_builder import IRBuilder

        return IRBuilder
    return _forwarded(name)
