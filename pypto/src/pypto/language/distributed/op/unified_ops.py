"""The short names of ``pld``."""

from __future__ import annotations

from typing import Any

from pypto.ir.types import TileType
from pypto.language.distributed.op import system_ops, tensor_ops, tile_ops

_SHORT = {
    system_ops: ("world_size", "get_comm_ctx", "rank", "nranks"),
    tensor_ops: ("alloc_window_buffer", "window"),
    tile_ops: ("remote_load",),
}
_functions = {n: getattr(m, n) for m, names in _SHORT.items() for n in names if hasattr(m, n)}
globals().update(_functions)


def remote_store(src: Any, *args: Any, **kwargs: Any) -> Any:
    """Store a tile, or a tensor inside a core region, into the window of a peer."""
    kind = getattr(getattr(src, "_expr", src), "type", None)
    module = tile_ops if isinstance(kind, TileType) else tensor_ops
    return module.remote_store(src, *args, **kwargs)


__all__ = sorted([*_functions, "remote_store"])  # noqa: PLE0605
