"""Address assignment in name order, and the footprint it would have."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.errors import InternalError, user_error
from pypto.ir.enums import FunctionType, MemorySpace
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import Stmt
from pypto.passes.lib.naming import base_name
from pypto.passes.lib.scalars import add, align, int64
from pypto.passes.lib.walk import iter_calls

#: Address step in bytes.
STEP = 32
#: ``base=`` of a reserved buffer that the compiler places.
AUTO = -1

#: Tiles named by the over-capacity error.
_LISTED = 3


def reserve_space(function: Function) -> MemorySpace:
    """Where the reserved buffers of a kernel live."""
    return MemorySpace.Mat if function.func_type is FunctionType.AIC else MemorySpace.Vec


def place_reserved(function: Function) -> tuple[dict[Stmt, int], int]:
    """(reserve statement -> base address, first free byte above all of them).

    Raises:
        InternalError: two reserved ranges overlap.
    """
    bases: dict[Stmt, int] = {}
    ranges: list[tuple[int, int, str]] = []
    floor = 0
    for stmt, call in iter_calls(function.body):
        if call.op.name != "system.reserve_buffer":
            continue
        base = call.kwargs.get("base", AUTO)
        size, name = call.kwargs["size"], call.kwargs["name"]
        base = floor if base is None or base < 0 else base
        end = align(base + size, STEP)
        for start, stop, other in ranges:
            if base < stop and start < end:
                raise InternalError(
                    f"overlapping reserve_buffer ranges: '{other}' [{start}, {stop}) and '{name}' [{base}, {end})",
                    span=stmt.span,
                )
        ranges.append((base, end, name))
        bases[stmt] = base
        floor = max(floor, end)
    return bases, floor


def reserved_calls(function: Function) -> list[Call]:
    """The reserve_buffer calls of a kernel."""
    return [call for _, call in iter_calls(function.body) if call.op.name == "system.reserve_buffer"]


def in_name_order(pointers: Iterable[Var]) -> list[Var]:
    """Allocation pointers sorted by name as text: ``mem_vec_10`` comes before ``mem_vec_2``."""
    return sorted(pointers, key=lambda p: p.name_hint)


def footprint(sizes: Iterable[int], floor: int) -> int:
    """First free byte after placing buffers of these sizes one after the other."""
    address = floor
    for size in sizes:
        address = align(address + size, STEP)
    return address


def capacity_message(function: Function, space: MemorySpace, used: int, limit: int, floor: int) -> str:
    """The text of the over-capacity error of one space."""
    text = f"{space.name} buffer usage ({used} bytes) exceeds platform limit ({limit} bytes)"
    if not floor:
        return text
    text += (
        f". The first {floor} bytes of that space are reserved by system.reserve_buffer, so tiles are allocated "
        "above them"
    )
    kernel = next((function.name[: -len(s)] for s in ("_aic", "_aiv") if function.name.endswith(s)), None)
    rings = {f"{kernel}_v2c_slot_buffer", f"{kernel}_c2v_slot_buffer"}
    if kernel and any(call.kwargs.get("name") in rings for call in reserved_calls(function)):
        text += (
            ". They hold the cross-core pipe ring of the mixed kernel: a smaller ring, "
            "pl.cross_core_slot(slot_num=N), frees memory for tiles"
        )
    return text


def capacity_error(
    function: Function, space: MemorySpace, used: int, limit: int, floor: int, tiles: Iterable[tuple[Var, int]]
) -> Exception:
    """The over-capacity error of one space, placed at the largest of its ``(tile, bytes)``."""
    largest = sorted(tiles, key=lambda entry: -entry[1])[:_LISTED]
    text = capacity_message(function, space, used, limit, floor)
    if largest:
        named = "; ".join(_described(var, size) for var, size in largest)
        text += f". The largest tiles are {named}. Use smaller tiles, or fewer of them at the same time"
    place = next((var.span for var, _ in largest if var.span.is_valid()), function.span)
    return user_error(text, span=place)


def _described(var: Var, size: int) -> str:
    extents = ", ".join(str(const_value(d)) for d in var.type.shape)
    line = f", line {var.span.begin_line}" if var.span.is_valid() else ""
    return f"'{base_name(var.name_hint)}' [{extents}] {var.type.dtype} ({size} bytes{line})"


def addressed(memref: MemRef, address: int, pinned: bool, cache: dict) -> MemRef:
    """A region after its buffer got ``address``; equal regions stay one object."""
    found = cache.get(memref)
    if found is not None:
        return found
    offset = const_value(memref.byte_offset_)
    if offset is not None:
        place_at: Expr = int64(address + offset)
    else:
        place_at = add(int64(address), memref.byte_offset_) if pinned else int64(address)
    cache[memref] = replace(memref, byte_offset_=place_at)
    return cache[memref]
