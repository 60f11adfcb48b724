"""A5: a move between two column-major vector tiles runs on row-major views of them.

The A5 vector move has no column-major form. A plain `[N, 1]` column is the same bytes as a `[1, N]` row, so both sides
are reshaped with rows and columns exchanged.
"""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Module, Operation, Region, Value
from ..dialect.table import REGISTRY


def rewrite_column_moves(module: Module) -> None:
    """Rewrite vec to vec `tmov` of plain column-major tiles; other architectures need nothing."""
    if module.arch != "a5":
        return
    for fn in module.functions:
        if fn.body is not None:
            _region(fn.body)


def _region(region: Region) -> None:
    ops: list[Operation] = []
    for op in region.ops:
        if op.name == "pto.tmov" and len(op.ins) == 1 and all(_plain_column(v.type) for v in (*op.ins, *op.outs)):
            views = [_as_row(value, op) for value in (op.ins[0], op.outs[0])]
            ops += views
            op.ins, op.outs = [views[0].result], [views[1].result]
        ops.append(op)
        for inner in op.regions:
            _region(inner)
    region.ops = ops


def _plain_column(type_: T.Type) -> bool:
    return isinstance(type_, T.TileType) and type_.loc == "vec" and type_.blayout == "col_major" and not type_.boxed


def _as_row(value: Value, user: Operation) -> Operation:
    t = value.type
    row = t.with_(rows=t.cols, cols=t.rows, v_row=t.v_col, v_col=t.v_row, blayout="row_major")
    op = Operation("pto.treshape", REGISTRY["pto.treshape"], user.at)
    op.loc = user.loc
    op.ins = [value]
    op.results = [Value(f"{value.name}_row", row, op)]
    return op
