"""The whole operation table: one lookup for the parser, the verifier, the emitter and the xDSL view of the dialect."""

from __future__ import annotations

from . import foreign_ops, system_ops, tile_ops
from .spec import REGISTRY, OpSpec

__all__ = ["REGISTRY", "OpSpec", "foreign_ops", "system_ops", "tile_ops"]

# Bare spellings MLIR allows inside a function body.
REGISTRY.setdefault("return", REGISTRY["func.return"])
REGISTRY.setdefault("call", REGISTRY["func.call"])
