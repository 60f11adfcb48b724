"""Operator functions: the namespaces, the unified names and the promoted short names."""

from __future__ import annotations

from typing import Any

from pypto.language.op import array_ops, prefetch_ops, system_ops, tensor_ops, tile_ops, unified_ops
from pypto.language.op.promoted import SYSTEM, TENSOR, TILE


def _names() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for table, module in ((SYSTEM, tile_ops), (SYSTEM, system_ops), (TENSOR, tensor_ops), (TILE, tile_ops)):
        for short, name in table.items():
            if hasattr(module, name):
                names[short] = getattr(module, name)
    names.update({n: getattr(unified_ops, n) for n in unified_ops.__all__})
    return names


_promoted = _names()
globals().update(_promoted)
__all__ = sorted(_promoted)  # noqa: PLE0605
