"""Which core a statement of a kernel runs on."""

from __future__ import annotations

from enum import IntFlag

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Submit
from pypto.ir.stmt import SplitAivScopeStmt, Stmt, flatten_to_stmts
from pypto.ir.types import TileType
from pypto.ops.registry import find_op
from pypto.passes.lib.op_facts import CUBE_SPACES, MATMULS, is_user_call
from pypto.passes.lib.walk import bodies, stmt_call

#: Call attribute: place this call on one core whatever its operator says.
PLACEMENT = "core_placement"


class Affinity(IntFlag):
    """SHARED code is copied to both cores; BOUNDARY moves a tile from one core to the other."""

    SHARED = 0
    CUBE = 1
    VECTOR = 2
    MIXED = 3
    BOUNDARY = 7


_CORE_TYPES = {"aic": Affinity.CUBE, "aiv": Affinity.VECTOR}
_CROSSINGS = ("tile.aiv_shard", "tile.aic_gather")

#: Operators that return how many cores of a kind the device has: the widths of launches that fill it.
CORE_COUNT_QUERIES = ("system.available_aiv_count", "system.available_cluster_count")


def space_of(value) -> MemorySpace | None:
    """Memory space of a tile value, None for anything else."""
    kind = value.type
    return kind.memory_space if isinstance(kind, TileType) else None


def is_cube_space(space: MemorySpace | None) -> bool:
    return space in CUBE_SPACES


def call_affinity(call: Call | Submit) -> Affinity:
    """Affinity of one call."""
    if call.attrs.get(PLACEMENT) == "aiv":
        return Affinity.VECTOR
    if is_user_call(call):
        return Affinity.SHARED
    name = call.op.name
    if name in MATMULS:
        return Affinity.CUBE
    if name in _CROSSINGS:
        return Affinity.BOUNDARY
    if name in ("system.sync_set", "system.sync_wait"):
        return _CORE_TYPES.get(call.kwargs.get("core_type"), Affinity.SHARED)
    definition = find_op(name)
    if definition is not None and definition.core_affinity:
        return Affinity[definition.core_affinity.upper()]
    if not name.startswith("tile."):
        return Affinity.SHARED
    return _tile_affinity(name, call)


def _tile_affinity(name: str, call: Call) -> Affinity:
    result = space_of(call)
    if name == "tile.load":
        space = call.kwargs.get("target_memory") or result
        return Affinity.CUBE if is_cube_space(space) else Affinity.VECTOR
    sources = [s for s in (space_of(a) for a in call.args) if s is not None]
    source_is_cube = is_cube_space(sources[0]) if sources else is_cube_space(result)
    if name == "tile.move" and sources:
        target = call.kwargs.get("target_memory") or result
        if is_cube_space(target) is not source_is_cube:
            return Affinity.BOUNDARY
    return Affinity.CUBE if source_is_cube else Affinity.VECTOR


def stmt_affinity(stmt: Stmt, cache: dict[Stmt, Affinity] | None = None) -> Affinity:
    """Affinity of a statement; compound statements join that of everything inside."""
    if cache is not None and stmt in cache:
        return cache[stmt]
    call = stmt_call(stmt)
    if call is not None:
        result = call_affinity(call)
    else:
        # A lane region is vector code even when it holds nothing but waits and notifies.
        result = Affinity.VECTOR if isinstance(stmt, SplitAivScopeStmt) else Affinity.SHARED
        for body in bodies(stmt):
            for child in flatten_to_stmts(body):
                result |= stmt_affinity(child, cache)
    if cache is not None:
        cache[stmt] = result
    return result
