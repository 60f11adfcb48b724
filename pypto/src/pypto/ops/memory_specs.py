"""Frequent memory specs, layout requirements and backend lists."""

from __future__ import annotations

from pypto.ir.enums import MemorySpace
from pypto.ops.registry import MemorySpec

VEC = (MemorySpace.Vec,)
ACC = (MemorySpace.Acc,)
LEFT = (MemorySpace.Left,)
RIGHT = (MemorySpace.Right,)
BIAS = (MemorySpace.Bias,)
LEFT_SCALE = (MemorySpace.LeftScale,)
RIGHT_SCALE = (MemorySpace.RightScale,)
ANY: tuple[MemorySpace, ...] = ()

BOTH = ("910B", "950")  #: backends with code generation
A5_ONLY = ("950",)


def vec(count: int = 0) -> MemorySpec:
    """``count`` operands in Vec, result in Vec."""
    return MemorySpec((VEC,) * count, MemorySpace.Vec)


def acc(*inputs: tuple[MemorySpace, ...]) -> MemorySpec:
    """Cube operands in the given spaces, result in Acc."""
    return MemorySpec(inputs, MemorySpace.Acc)


def row_major(inputs: int, output: bool = True) -> dict:
    """Block layouts: ``inputs`` row_major operands and a row_major result."""
    return {"in": ("row_major",) * inputs, "out": "row_major" if output else None}


VEC_SCALAR_VEC = MemorySpec((VEC, ANY, VEC), MemorySpace.Vec)
INHERIT = MemorySpec((), "inherit_from_input")
DEFERRED = MemorySpec((), "deferred")
