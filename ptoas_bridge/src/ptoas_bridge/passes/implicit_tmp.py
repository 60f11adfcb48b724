"""Scratch tiles for operations written without one (levels 1 and 2, where the planner can place them)."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Module, Operation, Region, Value
from ..dialect.table import REGISTRY

_SEQUENCE_SCRATCH_BYTES = 2048


def add_implicit_tmp(module: Module) -> None:
    """Allocate the scratch of `tsel` and `tci` on A2/A3, and of `tsort32` with a dynamic or ragged width."""
    for fn in module.functions:
        if fn.body is not None:
            _region(module.arch, fn.body)


def _region(arch: str, region: Region) -> None:
    ops: list[Operation] = []
    for op in region.ops:
        type_ = _scratch_type(arch, op)
        if type_ is not None:
            allocation = _allocate(type_, op)
            ops.append(allocation)
            op.ins.append(allocation.result)
        ops.append(op)
        for inner in op.regions:
            _region(arch, inner)
    region.ops = ops


def _scratch_type(arch: str, op: Operation) -> T.TileType | None:
    name, count = op.name, len(op.ins)
    if name == "pto.tsel" and arch == "a3" and count == 3:
        return T.tile("vec", T.SCALARS["ui32"], 1, 8)
    if name == "pto.tci" and arch == "a3" and count == 1:
        return T.tile("vec", T.F32, 1, _SEQUENCE_SCRATCH_BYTES // 4)
    if name == "pto.tsort32" and count == 2:
        source = op.ins[0].type
        if source.v_col == T.DYNAMIC or source.v_col % 32:
            return source.with_(v_row=source.rows, v_col=source.cols)
    return None


def _allocate(type_: T.TileType, user: Operation) -> Operation:
    op = Operation("pto.alloc_tile", REGISTRY["pto.alloc_tile"], user.at)
    op.loc = user.loc
    op.results = [Value("%tmp", type_, op)]
    return op
