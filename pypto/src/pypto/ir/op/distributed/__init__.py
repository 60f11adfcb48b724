"""Operator builders between ranks: ``system_ops``, ``tensor_ops`` and ``tile_ops`` of ``pld``."""

from __future__ import annotations

import importlib
from typing import Any

_NAMESPACES = {f"{name}{suffix}": name for name in ("system", "tensor", "tile") for suffix in ("", "_ops")}

__all__ = sorted(_NAMESPACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _NAMESPACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module("pypto.ops.surface").PLD, _NAMESPACES[name])


def __dir__() -> list[str]:
    return __all__
