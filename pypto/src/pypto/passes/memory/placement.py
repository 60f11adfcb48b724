"""Move tiles to other MemRefs, and drop or add the allocations that follow from it."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, ConstInt, Expr, Var, _next_id, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt, seq
from pypto.ir.types import MemRefType, PtrType, TileType
from pypto.ops.registry import op_ref
from pypto.passes.lib.rewrite import Retype, with_body
from pypto.passes.lib.scalars import add, int64
from pypto.passes.lib.walk import body_stmts, defined_vars, iter_stmts

ALLOC = "tile.alloc"


def region(base: Var, offset: Expr | int, size: int) -> MemRef:
    """Bytes ``[offset, offset + size)`` of an allocation."""
    offset = int64(offset) if isinstance(offset, int) else offset
    return make(MemRef, base.name_hint, MemRefType.get(), base.span, _next_id(), base, offset, size, False, 1, None)


def alloc_stmt(pointer: Var, space: MemorySpace, size: int, *, pinned: bool = False) -> AssignStmt:
    """``pointer = tile.alloc(space, size)``."""
    args = (ConstInt(space.value, DataType.INT64), int64(size))
    kwargs = {"pinned": True} if pinned else {}
    call = make(Call, op_ref(ALLOC), args, kwargs, {}, PtrType.get(), pointer.span)
    return AssignStmt(pointer, call, pointer.span)


class Allocation:
    """A ``tile.alloc`` statement taken apart."""

    __slots__ = ("pinned", "pointer", "size", "space", "stmt")

    def __init__(self, stmt: AssignStmt) -> None:
        call = stmt.value
        self.stmt, self.pointer = stmt, stmt.var
        self.space = MemorySpace(call.args[0].value)
        self.size = call.args[1].value
        self.pinned = bool(call.kwargs.get("pinned", False))


def is_alloc(stmt: Stmt) -> bool:
    return type(stmt) is AssignStmt and type(stmt.value) is Call and stmt.value.op.name == ALLOC


def allocations(function: Function) -> dict[Var, Allocation]:
    """Pointer -> allocation, in order of appearance."""
    return {s.var: Allocation(s) for s in body_stmts(function) if is_alloc(s)}


def rebase(memref: MemRef, old: MemRef, new: MemRef, *, window: bool) -> MemRef:
    """A region of a buffer after the buffer's root moved from ``old`` to ``new``.

    A tile that is the whole buffer becomes ``new`` whole; a window keeps its size and its offset relative to the root.
    """
    if not window:
        return new
    x, y = const_value(memref.byte_offset_), const_value(old.byte_offset_)
    if x is not None and y is not None:
        relative: Expr = int64(x - y)
    else:
        relative = memref.byte_offset_
    start, shift = const_value(new.byte_offset_), const_value(relative)
    offset = int64(start + shift) if start is not None and shift is not None else add(new.byte_offset_, relative)
    return region(new.base_, offset, memref.size_)


def place(function: Function, memrefs: dict[Var, MemRef]) -> Function:
    """The function with tiles moved to other MemRefs."""
    types = {var: replace(var.type, memref=memref) for var, memref in memrefs.items() if var.type.memref is not memref}
    return Retype(types).visit_function(function) if types else function


def drop_unused_allocations(function: Function) -> Function:
    """Remove allocations that no tile refers to."""
    used: set[Var] = set()
    stmts = body_stmts(function)
    if not any(is_alloc(s) for s in stmts):
        return function
    for stmt in iter_stmts(function.body):
        for var in defined_vars(stmt):
            if isinstance(var.type, TileType) and var.type.memref is not None:
                used.add(var.type.memref.base_)
    kept = [s for s in stmts if not is_alloc(s) or s.var in used]
    return function if len(kept) == len(stmts) else with_body(function, seq(kept, function.body.span))


class ScratchAllocator:
    """Adds allocations of a function, one per request."""

    def __init__(self, function: Function) -> None:
        names = [a.pointer.name_hint for a in allocations(function).values()]
        numbers = [int(n.rsplit("_", 1)[1]) for n in names if n.rsplit("_", 1)[-1].isdigit()]
        self._next = max(numbers, default=-1) + 1
        self.added: list[AssignStmt] = []

    def __call__(self, kind: TileType, name: str) -> MemRef:
        space = kind.memory_space
        pointer = Var(f"mem_{space.name.lower()}_{self._next}", PtrType.get())
        self._next += 1
        size = kind.memref.size_
        self.added.append(alloc_stmt(pointer, space, size))
        return region(pointer, 0, size)

    def declare(self, function: Function) -> Function:
        """The function with the added allocations after its own."""
        if not self.added:
            return function
        stmts = body_stmts(function)
        last = max((i for i, s in enumerate(stmts) if is_alloc(s)), default=-1) + 1
        return with_body(function, seq([*stmts[:last], *self.added, *stmts[last:]], function.body.span))
