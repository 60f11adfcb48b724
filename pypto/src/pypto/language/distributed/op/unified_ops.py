"""The short names of ``pld``."""

from __future__ import annotations

from typing import Any

from pypto.ir.types import TileType
from pypto.language.distributed.op import system_ops, tensor_ops, tile_ops

world_size = system_ops.world_size
get_comm_ctx = system_ops.get_comm_ctx
rank = system_ops.rank
nranks = system_ops.nranks
alloc_window_buffer = tensor_ops.alloc_window_buffer
window = tensor_ops.window
remote_load = tile_ops.remote_load


def remote_store(src: Any, *args: Any, **kwargs: Any) -> Any:
    """Store a tile, or a tensor inside a core region, into the window of a peer."""
    kind = getattr(getattr(src, "_expr", src), "type", None)
    module = tile_ops if isinstance(kind, TileType) else tensor_ops
    return module.remote_store(src, *args, **kwargs)


__all__ = [
    "alloc_window_buffer",
    "get_comm_ctx",
    "nranks",
    "rank",
    "remote_load",
    "remote_store",
    "window",
    "world_size",
]
