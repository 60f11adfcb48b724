"""Pairs of buffers that should not share memory because one hardware pipe would have to wait for another."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.enums import MemorySpace, PipeType
from pypto.ir.expr import Call, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TileType, same_dims
from pypto.passes.lib.core_affinity import space_of
from pypto.passes.lib.op_facts import FREES, MATMULS, POPS, PUSHES, VIEWS, same_object_arg
from pypto.passes.lib.walk import iter_calls
from pypto.passes.memory.groups import Group, Groups
from pypto.passes.memory.storage import Path, exclusive


@dataclass(frozen=True)
class Penalty:
    """Reusing the memory of ``first`` for ``second`` (which lives later) costs ``cost``."""

    first: Group
    second: Group
    cost: int


@dataclass
class _Access:
    pipe: PipeType | None
    writes: bool
    whole: bool
    point: int
    path: Path


def pipe_of(call: Call) -> PipeType | None:
    """The pipe an operator runs on, None when it is not known."""
    name = call.op.name
    if name in MATMULS:
        return PipeType.M
    if name == "tile.load":
        return PipeType.MTE2
    if name in POPS or name in PUSHES or name in FREES or not name.startswith("tile."):
        return None
    source = space_of(call.args[0]) if call.args else None
    if name == "tile.store":
        return PipeType.FIX if source is MemorySpace.Acc else PipeType.MTE3
    if name in ("tile.move", "tile.extract"):
        target = call.kwargs.get("target_memory")
        if source is MemorySpace.Mat:
            return PipeType.MTE1
        if source is MemorySpace.Acc:
            return PipeType.FIX
        return PipeType.MTE3 if target is MemorySpace.Mat else PipeType.V
    if name in ("tile.create", "tile.alloc", "tile.read", "tile.write"):
        return None
    return PipeType.V


def _whole(value: Var, groups: Groups) -> bool:
    """An access to this tile touches its whole allocation."""
    kind = value.type
    return (
        isinstance(kind, TileType)
        and value not in groups.storage.windows
        and same_dims(kind.valid_shape, kind.shape)
        and kind.memref.size_ >= groups.of(value).size
    )


def _accesses(groups: Groups) -> dict[Group, list[_Access]]:
    storage = groups.storage
    found: dict[Group, list[_Access]] = {g: [] for g in groups}
    point_of: dict[Stmt, int] = storage.point
    for stmt, call in iter_calls(groups.function.body):
        if not isinstance(call, Call) or call.op.name in VIEWS or call.op.name == "tile.create":
            continue
        pipe = pipe_of(call)
        point, path = point_of.get(stmt, 0), storage.path_of.get(stmt, ())
        in_place = same_object_arg(call)
        for index, arg in enumerate(call.args):
            group = groups.of(arg) if isinstance(arg, Var) else None
            if group is not None:
                found[group].append(_Access(pipe, index == in_place, _whole(arg, groups), point, path))
        if type(stmt) is AssignStmt and in_place is None:
            group = groups.of(stmt.var)
            if group is not None:
                found[group].append(_Access(pipe, True, _whole(stmt.var, groups), point, path))
    return found


def reuse_penalties(groups: Groups) -> list[Penalty]:
    """Lifetime-compatible pairs whose reuse would hand memory from one pipe to another."""
    accesses = _accesses(groups)
    ordered = sorted(groups, key=lambda g: (g.first, g.order))
    penalties: list[Penalty] = []
    for index, earlier in enumerate(ordered):
        before = accesses[earlier]
        if not before or not all(a.whole and a.pipe is not None for a in before):
            continue
        for later in ordered[index + 1 :]:
            if (
                later.space is not earlier.space
                or earlier.overlaps(later)
                or later in earlier.conflicts | earlier.hazards
            ):
                continue
            after = accesses[later]
            first = min(after, key=lambda a: a.point, default=None)
            if first is None or not first.writes or not first.whole or first.pipe is None:
                continue
            if any(a.pipe is not first.pipe and not exclusive(a.path, first.path) for a in before):
                penalties.append(Penalty(earlier, later, 1))
    return penalties


def recognize_dsa_reuse_penalties(function: Function) -> list[dict]:
    """The penalties of a function after MaterializeSemanticAliases: ``first_name``, ``second_name``, ``cost``."""
    return [
        {"first_name": p.first.roots[0].name_hint, "second_name": p.second.roots[0].name_hint, "cost": p.cost}
        for p in reuse_penalties(Groups(function))
    ]
