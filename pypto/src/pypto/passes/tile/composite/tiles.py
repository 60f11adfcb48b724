"""Sizes and operators that the recipes of collectives share."""

from __future__ import annotations

from pypto.ir.enums import ReduceOp
from pypto.ir.expr import Expr, MakeTuple, const_index

CHUNK_BYTES = 16384
ALIGNMENT_BYTES = 32
COMBINE = {
    ReduceOp.Sum: "tile.add",
    ReduceOp.Max: "tile.maximum",
    ReduceOp.Min: "tile.minimum",
    ReduceOp.Prod: "tile.mul",
}


def index_tuple(*values: Expr | int) -> MakeTuple:
    return MakeTuple(tuple(v if isinstance(v, Expr) else const_index(v) for v in values))
