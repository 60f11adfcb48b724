"""Distributed operators by namespace, and their short names."""

from __future__ import annotations

from pypto.language.distributed.op import system_ops, tensor_ops, tile_ops, unified_ops
