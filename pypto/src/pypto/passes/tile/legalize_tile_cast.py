"""LegalizeTileCast: conversions without an instruction become the shortest chain of conversions that have one."""

from __future__ import annotations

from collections import deque

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ops.registry import create_op_call
from pypto.passes.context import backend_handler
from pypto.passes.lib.naming import base_name, temp_name
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass

Casts = dict[DataType, tuple[DataType, ...]]


@function_pass("LegalizeTileCast")
def legalize_tile_cast(function: Function) -> Function:
    """Split non-native ``tile.cast`` calls; without a backend nothing is known to be non-native.

    Raises:
        ValueError: no chain of native conversions exists.
    """
    handler = backend_handler()
    if handler is None or function.body is None:
        return function
    if not any(c.op.name == "tile.cast" and not _native(c, handler.native_casts) for _, c in iter_calls(function.body)):
        return function
    count = 0

    def split(stmts: list[Stmt]) -> list[Stmt]:
        nonlocal count
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            call = stmt.value if type(stmt) is AssignStmt else None
            if type(call) is not Call or call.op.name != "tile.cast" or _native(call, handler.native_casts):
                result.append(stmt)
                continue
            changed = True
            source = call.args[0]
            for dtype in _chain(call, handler.native_casts, handler.arch):
                hop = create_op_call("tile.cast", [source], {**call.kwargs, "target_type": dtype}, call.span)
                name = temp_name(base_name(stmt.var.name_hint), f"cast_{dtype}", count)
                count += 1
                source = Var(name, hop.type, call.span)
                result.append(AssignStmt(source, hop, stmt.span))
            result.append(replace(stmt, value=replace(call, args=(source,))))
        return result if changed else stmts

    return with_body(function, rebuild_lists(function.body, split))


def _native(call: Call, casts: Casts) -> bool:
    source, target = call.args[0].type.dtype, call.type.dtype
    return source == target or target in casts.get(source, ())


def _chain(call: Call, casts: Casts, arch: str) -> list[DataType]:
    """Intermediate types of the shortest chain.

    Every intermediate is strictly wider than the destination: a narrower one would lose values that the destination
    can hold. Among equal lengths floats come first, then integers with the destination's sign.
    """
    start, goal = call.args[0].type.dtype, call.type.dtype

    def preference(dtype: DataType) -> tuple[bool, bool]:
        return not dtype.is_float(), dtype.is_unsigned_int() != goal.is_unsigned_int()

    paths: deque[list[DataType]] = deque([[start]])
    seen = {start}
    while paths:
        path = paths.popleft()
        reachable = casts.get(path[-1], ())
        if goal in reachable:
            return path[1:]
        for dtype in sorted(reachable, key=preference):
            if dtype not in seen and dtype.get_bit() > goal.get_bit():
                seen.add(dtype)
                paths.append([*path, dtype])
    raise user_error(
        f"LegalizeTileCast: no native cast path from {start} to {goal} for arch {arch}; pto.tcvt does not support this "
        "conversion",
        span=call.span,
    )
