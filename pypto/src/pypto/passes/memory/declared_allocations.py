"""Author-declared allocations: ``pl.MemRef("name"[, slots=N])[k]`` annotations gathered, checked and resolved."""

from __future__ import annotations

from collections.abc import Callable

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Expr, Var, _next_id, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import make
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import MemRefType, PtrType, TileType
from pypto.passes.context import MemoryPlanner, active_memory_planner
from pypto.passes.lib.scalars import int64, mul
from pypto.passes.lib.sizes import shaped_bytes
from pypto.passes.lib.walk import iter_stmts


def is_declaration(memref: MemRef | None) -> bool:
    """A MemRef written by the author that no pass has placed yet."""
    return memref is not None and memref.is_pinned_


class _Declared:
    def __init__(self, pointer: Var, space: MemorySpace | None, slots: int) -> None:
        self.pointer, self.space, self.slots, self.slot_bytes = pointer, space, slots, 0


class DeclaredAllocations:
    """The declared allocations of one function, in order of first use."""

    def __init__(self, function: Function) -> None:
        self._by_key: dict[object, _Declared] = {}
        for stmt in iter_stmts(function.body):
            if (
                type(stmt) is AssignStmt
                and isinstance(stmt.var.type, TileType)
                and is_declaration(stmt.var.type.memref)
            ):
                self._collect(stmt.var, stmt.var.type, stmt.var.type.memref)

    @staticmethod
    def _key(memref: MemRef) -> object:
        return memref.base_.name_hint or memref.base_

    def _collect(self, var: Var, kind: TileType, memref: MemRef) -> None:
        name = memref.base_.name_hint or var.name_hint
        slots = memref.slot_count_
        if slots < 1:
            raise user_error(f"allocation '{name}' needs at least one slot, got {slots}", span=var.span)
        if slots == 1 and active_memory_planner() is MemoryPlanner.PTOAS:
            raise user_error(
                f"allocation '{name}': a single-slot declared allocation cannot be kept under memory_planner=PTOAS, "
                "where the assembler places tiles; remove the declaration, give it slots, or use the PYPTO planner",
                span=var.span,
            )
        size = shaped_bytes(kind)
        if size is None:
            raise user_error(
                f"allocation '{name}': tile '{var.name_hint}' needs a static shape to be bound to it", span=var.span
            )
        found = self._by_key.get(self._key(memref))
        if found is None:
            pointer = memref.base_ if memref.base_.name_hint else Var(var.name_hint, PtrType.get(), var.span)
            found = self._by_key[self._key(memref)] = _Declared(pointer, kind.memory_space, slots)
        if found.space is not kind.memory_space:
            raise user_error(
                f"allocation '{name}': all tiles bound to it must be in the same memory space, but '{var.name_hint}' "
                f"is in {_space(kind.memory_space)} and an earlier one in {_space(found.space)}",
                span=var.span,
            )
        if found.slots != slots:
            raise user_error(
                f"allocation '{name}': its declarations disagree on how many slots it has ({found.slots} and {slots})",
                span=var.span,
            )
        found.slot_bytes = max(found.slot_bytes, size)
        if found.slot_bytes * slots >= 1 << 64:
            raise user_error(f"allocation '{name}': {slots} slots overflow; it overflows a 64-bit size", span=var.span)

    def bind(self, var: Var, memref: MemRef, visit: Callable[[Expr], Expr]) -> MemRef:
        """The placed MemRef of a tile: slot ``k`` starts at ``k * slot size``."""
        found = self._by_key[self._key(memref)]
        slot = None if memref.slot_index_ is None else visit(memref.slot_index_)
        number = 0 if slot is None else const_value(slot)
        offset = mul(slot, found.slot_bytes) if number is None else int64(number * found.slot_bytes)
        return make(
            MemRef, found.pointer.name_hint, MemRefType.get(), memref.span, _next_id(), found.pointer, offset,
            found.slot_bytes, False, found.slots, slot,
        )  # fmt: skip

    def allocations(self) -> list[tuple[Var, MemorySpace, int]]:
        """(pointer, space, bytes) of every declared allocation."""
        return [(d.pointer, d.space, d.slot_bytes * d.slots) for d in self._by_key.values()]


def _space(space: MemorySpace | None) -> str:
    return "no space" if space is None else space.name
