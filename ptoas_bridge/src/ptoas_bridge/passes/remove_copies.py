"""Drops `pto.tmov` between two vector tiles that are the same bytes in the same layout."""

from __future__ import annotations

from ..dialect.ir import Module, Operation, Region
from .storage import base_address


def remove_copies(module: Module) -> None:
    """Remove moves onto themselves; carried tiles of branches and loops leave them behind."""
    for fn in module.functions:
        if fn.body is not None:
            _region(fn.body)


def _region(region: Region) -> None:
    region.ops = [op for op in region.ops if not _is_no_op(op)]
    for op in region.ops:
        for inner in op.regions:
            _region(inner)


def _is_no_op(op: Operation) -> bool:
    if op.name != "pto.tmov" or len(op.ins) != 1 or op.named or op.attrs or op.results:
        return False
    source, target = op.ins[0], op.outs[0]
    if source is target:
        return True
    first, second = source.type, target.type
    if first.loc != "vec" or second.loc != "vec":
        return False
    same_layout = (first.rows, first.cols, first.dtype, first.blayout, first.slayout, first.fractal, first.compact) == (
        second.rows, second.cols, second.dtype, second.blayout, second.slayout, second.fractal, second.compact,
    )  # fmt: skip
    address = base_address(source)
    return same_layout and address is not None and address == base_address(target)
