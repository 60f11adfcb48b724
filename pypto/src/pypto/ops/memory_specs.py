"""Frequent memory specs."""

from __future__ import annotations

from pypto.ir.enums import MemorySpace
from pypto.ops.registry import MemorySpec

VEC = (MemorySpace.Vec,)
ANY: tuple[MemorySpace, ...] = ()


def vec(count: int) -> MemorySpec:
    """``count`` operands in Vec, result in Vec."""
    return MemorySpec((VEC,) * count, MemorySpace.Vec)


INHERIT = MemorySpec((), "inherit_from_input")
DEFERRED = MemorySpec((), "deferred")
