"""Memory planning for level1 and level2: an address for every allocation and reserved buffer (section 10.3).

First fit in program order; when that overflows, first fit by size; when that overflows too, the same with results of
elementwise operations allowed to take over the place of an operand that dies there.
"""

from __future__ import annotations

from ..dialect.ir import Function, Module, Operation
from ..errors import AssemblerError
from .capacity import CAPACITY
from .liveness import Buffer, buffers_of
from .storage import SPACE_ALIGNMENT

# Operations whose destination may share storage with a source of the same tile shape.
_IN_PLACE = frozenset(
    "pto." + name
    for name in (
        "tadd", "tsub", "tmul", "tdiv", "tmax", "tmin", "tadds", "tsubs", "tmuls", "tdivs", "tmaxs", "tmins", "texp",
        "tlog", "tsqrt", "tabs", "tneg", "trelu", "tlrelu", "trowexpandsub", "trowexpandmul", "trowexpanddiv",
        "trowexpandadd", "tcolexpandmul", "tcolexpandadd", "tcolexpandsub",
    )
)  # fmt: skip


def plan_memory(module: Module) -> None:
    """Give every `alloc_tile`, `alloc_multi_tile` and automatic `reserve_buffer` the attribute `planned_address`."""
    for fn in module.functions:
        if fn.body is not None:
            _plan_function(module, fn)


def _plan_function(module: Module, fn: Function) -> None:
    reserved = _reserve(module, fn)
    buffers = buffers_of(fn)
    for space in dict.fromkeys(b.space for b in buffers):
        group = [b for b in buffers if b.space == space]
        limit = CAPACITY[module.arch][space]
        needed = _place(group, reserved.get(space, 0), limit)
        if needed > limit:
            raise _overflow(module, group, space, needed, limit)
    for buffer in buffers:
        buffer.op.attrs["planned_address"] = buffer.address


def _reserve(module: Module, fn: Function) -> dict[str, int]:
    """Stack the reserved buffers at the bottom of their memories; the first free byte of each."""
    tops: dict[str, int] = {}
    for op in fn.body.walk():
        if op.name == "pto.reserve_buffer" and op.attrs.get("auto"):
            space = op.attrs["location"].value
            op.attrs["planned_address"] = tops.get(space, 0)
            tops[space] = _align(tops.get(space, 0) + op.attrs["size"], SPACE_ALIGNMENT[space])
            if tops[space] > CAPACITY[module.arch][space]:
                raise _error(module, op, space, tops[space], CAPACITY[module.arch][space])
    return tops


def _place(group: list[Buffer], bottom: int, limit: int) -> int:
    """Set addresses; the top of the best attempt (at most `limit` when it fits)."""
    best = None
    for in_place in (False, True):
        shared = _takeovers(group) if in_place else set()
        for order in (lambda b: (b.first, -b.size), lambda b: (-b.size, b.first)):
            top = _first_fit(sorted(group, key=order), bottom, shared)
            best = top if best is None else min(best, top)
            if top <= limit:
                return top
    return best or 0


def _first_fit(group: list[Buffer], bottom: int, shared: set[tuple[Operation, Operation]]) -> int:
    placed: list[Buffer] = []
    top = bottom
    for buffer in group:
        alignment = SPACE_ALIGNMENT[buffer.space]
        address = bottom
        for other in sorted(placed, key=lambda b: b.address):
            if other.address < address + buffer.size and address < other.address + other.size:
                if _live_together(buffer, other, shared):
                    address = _align(other.address + other.size, alignment)
        buffer.address = address
        top = max(top, address + buffer.size)
        placed.append(buffer)
    return top


def _live_together(a: Buffer, b: Buffer, shared: set[tuple[Operation, Operation]]) -> bool:
    if a.first < 0 or b.first < 0:
        return False
    if a.first <= b.last and b.first <= a.last:
        return not ((a.op, b.op) in shared or (b.op, a.op) in shared)
    return False


def _takeovers(group: list[Buffer]) -> set[tuple[Operation, Operation]]:
    """Pairs (dying operand, new result) of one elementwise operation with equal tiles."""
    ends: dict[int, list[Buffer]] = {}
    for buffer in group:
        ends.setdefault(buffer.last, []).append(buffer)
    pairs = set()
    for result in group:
        for dying in ends.get(result.first, ()):
            user = result.first_use
            if dying is result or user is None or user.name not in _IN_PLACE:
                continue
            first, second = dying.op.result.type, result.op.result.type
            if (first.rows, first.cols, first.dtype.bytes) == (second.rows, second.cols, second.dtype.bytes):
                if any(v is dying.op.result for v in user.ins):
                    pairs.add((dying.op, result.op))
    return pairs


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _overflow(module: Module, group: list[Buffer], space: str, needed: int, limit: int) -> AssemblerError:
    past = [b for b in group if b.address + b.size > limit]
    return _error(module, (past or group)[0].op, space, needed, limit)


def _error(module: Module, op: Operation, space: str, needed: int, limit: int) -> AssemblerError:
    return module.source.error(
        op.at,
        f"{space} overflow, requires {needed * 8} bits while {limit * 8} bits avaliable!",
        hint=f"tiles that are live together need {needed} bytes of {space}, {limit} bytes exist",
        source_loc=module.location(op.loc),
        stage="pass",
    )
