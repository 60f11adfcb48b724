"""The Python surface of the operators: the namespaces and the ``pl.*`` dispatchers."""

from __future__ import annotations

from pypto.ops.namespaces import ARRAY, PLD, PREFETCH, SYSTEM, TENSOR, TILE, Namespace
from pypto.ops.unified import UNIFIED

__all__ = ["ARRAY", "PLD", "PREFETCH", "SYSTEM", "TENSOR", "TILE", "UNIFIED", "Namespace"]
