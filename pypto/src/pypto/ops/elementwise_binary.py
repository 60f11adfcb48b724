"""Elementwise operators with two tile operands."""

from __future__ import annotations

from pypto.ir.types import Type
from pypto.ops.kinds import Tile
from pypto.ops.memory_specs import vec
from pypto.ops.registry import op
from pypto.ops.rules import elementwise_tiles

_ROWS = {"in": ("row_major", "row_major"), "out": "row_major"}


@op(
    "tile.add",
    family="elementwise_binary",
    memory=vec(2),
    layouts=_ROWS,
    backends=("910B", "950"),
    pto="pto.tadd",
    torch=lambda lhs, rhs: lhs + rhs,
)
def add(lhs: Tile, rhs: Tile) -> Type:
    """``lhs + rhs`` over the valid region, in the promoted element type."""
    return elementwise_tiles("tile.add", lhs, rhs)
