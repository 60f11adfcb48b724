"""Pipe lowering: slot counts, flag ids and reserved-buffer bases of the cross-core pipes (sections 5.12, 10.4)."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialect.ir import Function, Module, Operation

MAX_FLAG_IDS = 16
# On A5 the slots are the local ones; the template keeps its default for this parameter.
A5_LOCAL_SLOTS = 2
_PUSH_POP = ("pto.tpush_to_", "pto.tpop_from_", "pto.tfree_from_", "pto.talloc_to_")


@dataclass(frozen=True, slots=True)
class PipePlan:
    """The template parameters of one TPipe."""

    flag_base: int
    dir_mask: int
    slot_size: int
    slot_num: int
    local_slot_num: int
    nosplit: bool


def initialize_ops(fn: Function) -> list[Operation]:
    """The pipe-initialise operations of a function, in order."""
    return [op for op in fn.body.walk() if op.name.endswith("_initialize_pipe")]


def is_pipe_use(op: Operation) -> bool:
    """Whether `op` pushes to, pops from or frees a slot of a pipe."""
    return op.name.startswith(_PUSH_POP)


def effective_slots(op: Operation) -> int:
    """`slot_num`, or its default for the direction."""
    given = op.attrs.get("slot_num", 0)
    return given if given > 0 else 4 if op.attrs.get("dir_mask") == 3 else 8


def lower_pipes(module: Module) -> None:
    """Attach a PipePlan to every initialise operation and a base address to every reserved buffer."""
    _resolve_reserved(module)
    splits = _split_use(module)
    for fn in module.functions:
        if fn.body is None:
            continue
        flag = 0
        by_id: dict[int, Operation] = {}
        for op in initialize_ops(fn):
            by_id[op.attrs.get("id", 0)] = op
            mask = op.attrs["dir_mask"]
            slots = effective_slots(op)
            nosplit = op.attrs.get("nosplit")
            if nosplit is None:
                nosplit = not splits.get(op.attrs.get("id", 0), False)
            local = op.attrs.get("local_slot_num") or (slots if module.arch == "a3" else A5_LOCAL_SLOTS)
            op.attrs["plan"] = PipePlan(flag, mask, op.attrs["slot_size"], slots, local, nosplit)
            flag += 4 if mask == 3 else 2
            if module.arch == "a5" and nosplit and fn.kind == "vector":
                fn.attrs["single_lane_guard"] = True
        for op in fn.body.walk() if by_id else ():
            if is_pipe_use(op):
                op.attrs["initialise"] = by_id[op.attrs.get("id", 0)]


def _split_use(module: Module) -> dict[int, bool]:
    """For each pipe id: whether any side moves a split tile through it."""
    found: dict[int, bool] = {}
    for fn in module.functions:
        for op in fn.body.walk() if fn.body is not None else ():
            if is_pipe_use(op):
                pipe = op.attrs.get("id", 0)
                found[pipe] = found.get(pipe, False) or op.attrs.get("split", 0) != 0
    return found


def _resolve_reserved(module: Module) -> None:
    bases: dict[tuple[str, str], int] = {}
    for fn in module.functions:
        for op in fn.body.walk() if fn.body is not None else ():
            if op.name == "pto.reserve_buffer":
                base = op.attrs.get("base", op.attrs.get("planned_address", 0))
                op.attrs["resolved_base"] = base
                bases[fn.name, op.attrs["name"]] = base
    for fn in module.functions:
        for op in fn.body.walk() if fn.body is not None else ():
            if op.name == "pto.import_reserved_buffer":
                op.attrs["resolved_base"] = bases.get((op.attrs["peer_func"].name, op.attrs["name"]), 0)
