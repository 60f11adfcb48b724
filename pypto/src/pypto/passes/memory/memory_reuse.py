"""MemoryReuse: let tiles whose lifetimes do not overlap share one allocation."""

from __future__ import annotations

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Var
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.passes.context import backend_handler
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity, emit_diagnostics, perf_hint
from pypto.passes.lib.pipeline_membership import drop_memberships
from pypto.passes.memory.addresses import place_reserved, reserve_space
from pypto.passes.memory.groups import Group, Groups, check_same_slot
from pypto.passes.memory.packing import Packing, pack_space
from pypto.passes.memory.placement import ScratchAllocator, drop_unused_allocations, place, rebase
from pypto.passes.memory.storage import holds_tiles, memref_of
from pypto.passes.memory.yield_moves import reconcile_yields
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


def host_memref(group: Group) -> MemRef:
    """The MemRef of a buffer as a whole: that of the tile the allocation was made for."""
    refs = [memref_of(root) for root in group.roots]
    return max(refs, key=lambda r: r.size_)


def _report(function: Function, space: MemorySpace, packing: Packing, capacity: int, floor: int) -> None:
    largest = max((b[0].size for b in packing.buffers), default=0)
    if packing.fell_back and largest <= capacity:
        message = (
            f"capacity-gated reuse could not fit memory space {space.name} at any double-buffering depth; "
            "fell back to the legacy packing"
        )
        emit_diagnostics([Diagnostic(DiagnosticSeverity.Warning, "MemoryReuse", 0, message, function.span)])
    for depth in packing.depths:
        if depth.value >= depth.requested:
            continue
        free = capacity - floor
        message = (
            f"software pipelining requested depth {depth.requested} for pipeline group {depth.group} in {space.name}, "
            f"but only {depth.value} of {depth.requested} buffers fit ({depth.slot} B per stage, {free} B free of "
            f"{capacity} B); "
        )
        if depth.slot * depth.requested > free:
            message += f"shrink the per-stage tile to <= {free // depth.requested} B"
        else:
            message += "other tiles over-subscribe the space; shrink them or lower the stage count"
        perf_hint("PH-MR-001", message, function.span)


@function_pass(
    "MemoryReuse",
    required=(P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D, P.NormalizedStmtStructure),
    produced=(P.NormalizedStmtStructure,),
)
def memory_reuse(function: Function) -> Function:
    """Pack allocations by lifetime, fix the yields that still disagree, remove what became unused."""
    if not holds_tiles(function):
        return function
    groups = Groups(function)
    check_same_slot(groups)
    moved: dict[Var, MemRef] = {}
    windows = groups.storage.windows
    handler = backend_handler()
    floor = None
    for space in groups.spaces():
        capacity = (handler.mem_size(space) or None) if handler is not None else None
        reserved = 0
        if capacity is not None and space is reserve_space(function):
            if floor is None:
                floor = place_reserved(function)[1]
            reserved = floor
        packing = pack_space(groups.in_space(space), capacity, reserved)
        if capacity is not None:
            _report(function, space, packing, capacity, reserved)
        for buffer in packing.buffers:
            host = host_memref(buffer[0])
            for group in buffer[1:]:
                old = host_memref(group)
                for var in group.members:
                    moved[var] = rebase(memref_of(var), old, host, window=var in windows)
    function = place(function, moved)
    if groups.storage.loops or groups.storage.branches:
        scratch = ScratchAllocator(function)
        function = scratch.declare(reconcile_yields(function, scratch))
    return drop_memberships(drop_unused_allocations(function))
