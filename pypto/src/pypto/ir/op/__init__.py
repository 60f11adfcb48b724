"""Operator builders on expressions: ``ir.op.tile.add(a, b)``; the functions live in ``pypto.ops``."""

from __future__ import annotations

import importlib
from typing import Any

#: Public name -> member of ``pypto.ops.surface``. Looked up on first use: operators are a higher floor than the IR.
_NAMESPACES = {
    "tile": "TILE",
    "tile_ops": "TILE",
    "tensor": "TENSOR",
    "tensor_ops": "TENSOR",
    "system": "SYSTEM",
    "system_ops": "SYSTEM",
    "array": "ARRAY",
    "array_ops": "ARRAY",
    "prefetch": "PREFETCH",
    "prefetch_ops": "PREFETCH",
    "pld": "PLD",
}

__all__ = sorted(_NAMESPACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _NAMESPACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module("pypto.ops.surface"), _NAMESPACES[name])


def __dir__() -> list[str]:
    return __all__
