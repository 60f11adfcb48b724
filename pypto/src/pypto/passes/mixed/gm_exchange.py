"""Ordering of a GM tensor that the cube core writes and the vector core reads inside one mixed kernel."""

from __future__ import annotations

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Var
from pypto.ir.node import replace
from pypto.ir.stmt import EvalStmt, Stmt
from pypto.ir.types import TileType, UnknownType
from pypto.passes.lib.core_affinity import is_cube_space, space_of
from pypto.passes.lib.rewrite import rebuild_lists
from pypto.passes.lib.walk import bodies, iter_calls, iter_stmts, op_name, stmt_call
from pypto.passes.mixed.crossings import op_call, pop, push

PUSH, POP = "tile.tpush_to_aiv", "tile.tpop_from_aic"


def fence_gm_exchanges(body: Stmt, origins: dict[Var, Var]) -> Stmt:
    """Push the tile of the one cube-side store of a tensor; pop and free it before the later vector-side load.

    Only within one statement list (the load may stand inside a later loop of it), and only from cube to vector.
    """
    stores: dict[Var, list[Stmt]] = {}
    for stmt, call in iter_calls(body):
        if call.op.name == "tile.store" and is_cube_space(space_of(call.args[0])):
            stores.setdefault(_tensor(call.args[2], origins), []).append(stmt)
    single = {tensor: found[0] for tensor, found in stores.items() if len(found) == 1}
    if not single:
        return body

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        before: dict[int, list[Stmt]] = {}
        after: dict[int, list[Stmt]] = {}
        for tensor, store in single.items():
            at = next((i for i, s in enumerate(stmts) if stmt_call(s) is stmt_call(store)), None)
            if at is None:
                continue
            reader = next((i for i in range(at + 1, len(stmts)) if _loads(stmts[i], tensor, origins)), None)
            if reader is None:
                continue
            tile, span = stmt_call(store).args[0], store.span
            token = _token(tile)
            after.setdefault(at, []).append(push(PUSH, tile, {"split": 0}, span))
            free = op_call("system.tfree_to_aic", (token,), {}, UnknownType.get(), span)
            before.setdefault(reader, []).extend([pop(POP, token, {"split": 0}, span), EvalStmt(free, span)])
        if not before:
            return stmts
        result: list[Stmt] = []
        for index, stmt in enumerate(stmts):
            result.extend(before.get(index, ()))
            result.append(stmt)
            result.extend(after.get(index, ()))
        return result

    return rebuild_lists(body, edit)


def _token(tile: Var) -> Var:
    valid = tile.type.valid_shape
    kind = TileType(tile.type.shape, tile.type.dtype, memory_space=MemorySpace.Vec)
    if valid is not tile.type.shape:
        kind = replace(kind, tile_view=replace(kind.get_effective_tile_view(), valid_shape=valid))
    return Var(f"{tile.name_hint}_fence", kind, tile.span)


def _tensor(value, origins: dict[Var, Var]) -> Var:
    return origins.get(value, value)


def _loads(stmt: Stmt, tensor: Var, origins: dict[Var, Var]) -> bool:
    """The statement is, or a later loop holds, a vector-side load of the tensor."""
    if op_name(stmt) == "tile.load":
        return _is_vector_load(stmt_call(stmt), tensor, origins)
    if not bodies(stmt):
        return False
    return any(
        op_name(inner) == "tile.load" and _is_vector_load(stmt_call(inner), tensor, origins)
        for inner in iter_stmts(stmt)
    )


def _is_vector_load(call: Call, tensor: Var, origins: dict[Var, Var]) -> bool:
    space = call.kwargs.get("target_memory") or space_of(call)
    return _tensor(call.args[0], origins) is tensor and not is_cube_space(space)
