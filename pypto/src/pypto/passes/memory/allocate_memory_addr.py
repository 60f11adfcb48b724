"""AllocateMemoryAddr: give every on-chip buffer its address."""

from __future__ import annotations

from pypto.errors import InternalError
from pypto.ir.enums import MemorySpace, is_incore_type
from pypto.ir.expr import Var
from pypto.ir.memref import MemRef
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TileType
from pypto.passes.context import MemoryPlanner, active_memory_planner, backend_handler
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.scalars import align
from pypto.passes.lib.walk import defined_vars, iter_stmts
from pypto.passes.memory.addresses import (
    STEP,
    addressed,
    capacity_error,
    in_name_order,
    place_reserved,
    reserve_space,
)
from pypto.passes.memory.dsa_rp import place_by_search
from pypto.passes.memory.placement import Allocation, allocations, place
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


def members_by_base(function: Function) -> dict[Var, list[tuple[Var, MemRef]]]:
    """Allocation pointer -> (tile, MemRef) pairs of a kernel."""
    found: dict[Var, list[tuple[Var, MemRef]]] = {}
    stmts_vars = (var for stmt in iter_stmts(function.body) for var in defined_vars(stmt))
    for var in (*function.params, *stmts_vars):
        if isinstance(var.type, TileType) and var.type.memref is not None:
            if var.type.memory_space not in (None, MemorySpace.DDR):
                found.setdefault(var.type.memref.base_, []).append((var, var.type.memref))
    return found


def resolve_reserved(function: Function) -> tuple[Function, int]:
    """The function with ``base=`` of every reserved buffer filled in, and the first free byte above them."""
    bases, floor = place_reserved(function)
    changed = {s: b for s, b in bases.items() if _reserve_call(s).kwargs.get("base") != b}
    if not changed:
        return function, floor

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        if not any(s in changed for s in stmts):
            return stmts
        return [_with_base(s, changed[s]) if s in changed else s for s in stmts]

    return with_body(function, rebuild_lists(function.body, edit)), floor


def _reserve_call(stmt: Stmt):
    return stmt.value if type(stmt) is AssignStmt else stmt.expr


def _with_base(stmt: Stmt, base: int) -> Stmt:
    call = _reserve_call(stmt)
    call = replace(call, kwargs={**call.kwargs, "base": base})
    return replace(stmt, value=call) if type(stmt) is AssignStmt else replace(stmt, expr=call)


def extent(allocation: Allocation | None, members: list[tuple[Var, MemRef]]) -> int:
    """Bytes a buffer needs: its largest member, or the declared total."""
    if allocation is not None and allocation.pinned:
        return allocation.size
    size = max(memref.size_ for _, memref in members)
    if size <= 0:
        raise InternalError(f"buffer '{members[0][1].base_.name_hint}' has no bytes", span=members[0][0].span)
    return size


def _largest(members: list[tuple[Var, MemRef]]) -> Var:
    return max(members, key=lambda pair: pair[1].size_)[0]


@function_pass(
    "AllocateMemoryAddr",
    required=(P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D),
    produced=(P.AllocatedMemoryAddr,),
)
def allocate_memory_addr(function: Function) -> Function:
    """Place reserved buffers first, then every allocation, 32-byte aligned, in name order per space."""
    if not is_incore_type(function.func_type) or function.body is None:
        return function
    function, floor = resolve_reserved(function)
    if active_memory_planner() is MemoryPlanner.DSA_RP:
        return place_by_search(function, floor)
    declared = allocations(function)
    members = members_by_base(function)
    handler = backend_handler()
    by_space: dict[MemorySpace, list[Var]] = {}
    for base, pairs in members.items():
        by_space.setdefault(pairs[0][0].type.memory_space, []).append(base)
    placed: dict[Var, MemRef] = {}
    for space, bases in by_space.items():
        reserved = floor if space is reserve_space(function) else 0
        address = reserved
        for base in in_name_order(bases):
            allocation = declared.get(base)
            pinned = allocation is not None and allocation.pinned
            cache: dict[MemRef, MemRef] = {}
            for var, memref in members[base]:
                placed[var] = addressed(memref, address, pinned, cache)
            address = align(address + extent(allocation, members[base]), STEP)
        limit = handler.mem_size(space) if handler is not None else 0
        if limit and address > limit:
            tiles = [(_largest(members[base]), extent(declared.get(base), members[base])) for base in bases]
            raise capacity_error(function, space, address, limit, reserved, tiles)
    return place(function, placed)
