"""Address assignment in name order, and the footprint it would have."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.errors import InternalError
from pypto.ir.enums import FunctionType, MemorySpace
from pypto.ir.expr import Call, Var
from pypto.ir.program import Function
from pypto.ir.stmt import Stmt
from pypto.passes.lib.scalars import align
from pypto.passes.lib.walk import iter_calls

#: Address step in bytes.
STEP = 32
#: ``base=`` of a reserved buffer that the compiler places.
AUTO = -1


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
