"""Type rules shared by several operator families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue
from pypto.ir.expr import Expr
from pypto.ir.node import make
from pypto.ir.types import TileType, TileView, implicit_layout
from pypto.ops.shapes import broadcast, promote


def fresh_tile(
    shape: Sequence[Expr],
    dtype: DataType,
    valid_shape: Sequence[Expr] = (),
    memory_space: MemorySpace | None = None,
    pad: PadValue = PadValue.null,
    layout: tuple | None = None,
) -> TileType:
    """A tile with its own dense buffer; ``layout`` is (blayout, slayout, fractal), by default the implicit one."""
    blayout, slayout, fractal = layout or implicit_layout(shape, memory_space)
    view = make(
        TileView, tuple(valid_shape or shape), (), None, blayout, slayout, fractal, pad, CompactMode.null
    )  # fmt: skip
    return TileType(tuple(shape), dtype, None, view, memory_space)


def elementwise_tiles(name: str, *tiles: Any) -> TileType:
    """Broadcast shape and promoted dtype of tiles; the valid region is that of the first."""
    first = tiles[0].type
    shape, dtype = first.shape, first.dtype
    for tile in tiles[1:]:
        shape = broadcast(shape, tile.type.shape, name)
        dtype = promote(dtype, tile.type.dtype)
    return fresh_tile(shape, dtype, first.valid_shape)
