"""Moving data between memories: load, store."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect, AtomicType, MemorySpace, WriteChannel
from pypto.ir.types import Type
from pypto.ops.kinds import Attr, Shape, Tensor, Tile
from pypto.ops.memory_specs import DEFERRED
from pypto.ops.registry import MemorySpec, op
from pypto.ops.rules import fresh_tile


@op(
    "tile.load",
    family="memory",
    memory=DEFERRED,
    keep=("target_memory",),
    retargetable=True,
    backends=("910B", "950"),
)
def load(
    tensor: Tensor,
    offsets: Shape,
    shapes: Shape,
    valid_shape: Shape,
    target_memory: Attr[MemorySpace] = MemorySpace.Vec,
    clamp: Attr[bool] = False,
) -> Type:
    """Copy a window of a global tensor into a tile."""
    return fresh_tile(shapes.elements, tensor.type.dtype, valid_shape.elements, target_memory)


def atomic_effect(kwargs: dict) -> ArgEffect:
    """Write, or ReadWrite for an atomic accumulation."""
    return ArgEffect.ReadWrite if kwargs.get("atomic", 0) == AtomicType.Add else ArgEffect.Write


@op(
    "tile.store",
    family="memory",
    memory=MemorySpec(((MemorySpace.Vec, MemorySpace.Acc),), None),
    effects={2: atomic_effect},
    write_channel=WriteChannel.Dma,
    result_is_arg=2,
    backends=("910B", "950"),
)
def store(
    tile: Tile, offsets: Shape, output_tensor: Tensor, shapes: Shape = None, *, atomic: Attr[int] = AtomicType.None_
) -> Type:
    """Copy the valid region of a tile into a global tensor."""
    return output_tensor.type
