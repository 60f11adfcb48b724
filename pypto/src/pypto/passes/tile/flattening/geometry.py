"""Shapes, valid regions and offsets of tiles whose leading axes are merged."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.errors import user_error
from pypto.ir.expr import Expr, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import TileType, same_dim, same_dims
from pypto.passes.lib import scalars


def flat_shape(shape: Sequence[Expr], span: Span = UNKNOWN_SPAN) -> tuple[Expr, Expr]:
    """``(product of leading extents, last extent)``.

    Raises:
        ValueError: a dynamic extent.
    """
    rows = scalars.product(shape[:-1])
    if rows is None or const_value(shape[-1]) is None:
        raise user_error(
            f"a tile of rank {len(shape)} with a dynamic physical extent cannot be flattened to 2D: on-chip buffers "
            "have a fixed size. Chunk the dynamic dimension with pl.range or pl.parallel and carry the tail in "
            "valid_shape, or reshape to 2D before the InCore scope",
            span=span,
        )
    return const_index(rows), shape[-1]


def flat_valid(valid: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The valid region with merged leading extents; symbolic ones are multiplied as they are."""
    rows: Expr = const_index(1)
    for extent in valid[:-1]:
        rows = scalars.mul(rows, extent)
    return rows, valid[-1]


def flat_type(kind: TileType) -> TileType:
    """The 2D type of an N-D tile."""
    shape = flat_shape(kind.shape)
    view = kind.tile_view
    if view is not None:
        valid = flat_valid(kind.valid_shape) if view.valid_shape and not same_dims(kind.valid_shape, kind.shape) else ()
        view = replace(view, valid_shape=valid, stride=())
    return replace(kind, shape=shape, tile_view=view)


def collapse_offsets(offsets: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Expr, Expr]:
    """``(row, column)`` of an N-D offset in the merged row-major space."""
    row: Expr = offsets[0]
    for offset, extent in zip(offsets[1:-1], shape[1:-1]):
        row = scalars.add(scalars.mul(row, extent), offset)
    return row, offsets[-1]


def collapses(window: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    """Whether a window covers consecutive merged rows: one partial axis at most, with only ones before it."""
    axes = list(range(len(shape) - 1))
    while axes and const_value(window[axes[0]]) == 1:
        axes.pop(0)
    return all(same_dim(window[a], shape[a]) for a in axes[1:])
