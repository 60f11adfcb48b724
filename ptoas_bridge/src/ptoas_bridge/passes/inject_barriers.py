"""The blunt sync mode: `pipe_barrier(PIPE_ALL)` before each pipe operation and at the end of the function."""

from __future__ import annotations

from ..dialect.enums import EnumAttr
from ..dialect.ir import Module, Operation, Region
from ..dialect.table import REGISTRY
from .effects import effects_of


def inject_barriers(module: Module) -> None:
    """Surround every memory-touching pipe operation of every function with full barriers."""
    for fn in module.functions:
        if fn.body is not None and _region(fn.body, module.arch):
            fn.body.ops.insert(len(fn.body.ops) - 1, _barrier())


def _region(region: Region, arch: str) -> bool:
    ops: list[Operation] = []
    found = False
    for op in region.ops:
        effects = None if op.regions else effects_of(op, arch)
        if effects is not None and effects.pipe != "PIPE_S":
            ops.append(_barrier())
            found = True
        ops.append(op)
        for inner in op.regions:
            found |= _region(inner, arch)
    region.ops = ops
    return found


def _barrier() -> Operation:
    op = Operation("pto.barrier", REGISTRY["pto.barrier"])
    op.attrs = {"pipe": EnumAttr("pipe", "PIPE_ALL")}
    return op
