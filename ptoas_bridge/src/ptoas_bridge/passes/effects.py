"""What an operation does to memory: its hardware pipe, the ranges it reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from ..dialect import types as T
from ..dialect.ir import Operation, Value
from .storage import Range, global_range, popped_buffer, tile_range


class Effects(NamedTuple):
    """`pipe` is `PIPE_V`, ...; `ALL` marks an operation that needs everything before it to be finished."""

    pipe: str
    reads: list[Range]
    writes: list[Range]


_MOVES = {
    ("vec", "vec"): "PIPE_V", ("mat", "left"): "PIPE_MTE1", ("mat", "right"): "PIPE_MTE1",
    ("mat", "bias"): "PIPE_MTE1", ("mat", "scaling"): "PIPE_MTE1", ("acc", "vec"): "PIPE_FIX",
    ("acc", "mat"): "PIPE_FIX", ("vec", "mat"): "PIPE_MTE3", ("mat", "mat"): "PIPE_MTE1",
}  # fmt: skip


def pipe_of(op: Operation) -> str | None:
    """The hardware pipe of an operation, or None when it occupies none."""
    pipe = op.spec.pipe if op.spec is not None else None
    if pipe is None or pipe == "ALL":
        return pipe
    if pipe != "by_loc":
        return "PIPE_" + pipe
    source = op.ins[0].type
    if op.name == "pto.tstore":
        return "PIPE_FIX" if source.loc == "acc" else "PIPE_MTE3"
    target = op.outs[0].type
    if op.name.startswith("pto.tfillpad"):
        return "PIPE_MTE1" if target.loc == "mat" else "PIPE_V"
    return _MOVES.get((source.loc, target.loc), "PIPE_V")


def memory_of(value: Value) -> Range | None:
    """The memory behind an operand, or None for plain scalars."""
    type_ = value.type
    if isinstance(type_, (T.TileType, T.MultiTileType)):
        return tile_range(value)
    if isinstance(type_, (T.ViewType, T.PtrType)):
        return global_range(value)
    return None


def _ranges(values: list[Value]) -> list[Range]:
    return [r for r in map(memory_of, values) if r is not None]


def effects_of(op: Operation, arch: str) -> Effects | None:
    """Pipe and memory of an operation, or None when ordering does not matter for it."""
    name = op.name
    if name.startswith(("pto.tpush_to_", "pto.tpop_from_", "pto.tfree_from_")):
        return _pipe_effects(op, arch)
    pipe = pipe_of(op)
    if pipe is None:
        if name in ("func.call", "pto.syncall"):
            return Effects("ALL", [], [])
        return None
    if name == "pto.store_scalar":
        return Effects(pipe, [], [global_range(op.ins[1])])
    if name.startswith("pto.local_array"):
        return None
    if pipe == "ALL":
        return Effects("ALL", [], [])
    scratch = op.spec.scratch_index(len(op.ins))
    reads = [v for i, v in enumerate(op.ins) if i != scratch] + [op.named[k] for k in ("fp",) if k in op.named]
    writes = list(op.outs)
    if scratch >= 0:
        writes.append(op.ins[scratch])
    return Effects(pipe, _ranges(reads), _ranges(writes))


def _pipe_effects(op: Operation, arch: str) -> Effects:
    """Push reads its tile; pop fills the consumer's slots; free hands them back, so it comes after their readers."""
    if op.name.startswith("pto.tpush_to_"):
        pipe = "PIPE_FIX" if op.ins and op.ins[0].type.loc == "acc" else "PIPE_MTE3"
        return Effects(pipe, _ranges(op.ins), [])
    pipe = "PIPE_S" if arch == "a5" else "PIPE_MTE2"
    if op.name.startswith("pto.tpop_from_"):
        return Effects(pipe, [], _ranges(op.results))
    reserved = popped_buffer(op)
    return Effects(pipe, [], [] if reserved is None else [reserved])
