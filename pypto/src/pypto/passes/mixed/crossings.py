"""Pushes and pops that replace a move of a tile from one core to the other."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace, PadValue, SplitMode, TileLayout
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.node import make, replace
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, EvalStmt, Stmt
from pypto.ir.types import TileType, TileView, Type, UnknownType
from pypto.ops.registry import op_ref
from pypto.passes.context import backend_handler
from pypto.passes.lib.core_affinity import is_cube_space, space_of
from pypto.passes.lib.rewrite import Retype
from pypto.passes.lib.walk import iter_calls

#: (blayout, slayout) of a tile in the two fractal operand spaces.
_OPERAND_LAYOUT = {
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major),
}


def op_call(name: str, args: tuple[Expr, ...], kwargs: dict, kind: Type, span: Span) -> Call:
    """A call of an operator with a known result type."""
    return make(Call, op_ref(name), args, kwargs, {}, kind, span)


def _pipe_kwargs(call: Call, code: int) -> dict:
    kwargs = {"split": code}
    kwargs.update({k: call.kwargs[k] for k in ("lane_stride", "id") if call.kwargs.get(k) is not None})
    return kwargs


def push(name: str, tile: Expr, kwargs: dict, span: Span) -> Stmt:
    """``tile.tpush_to_*(tile)`` as a statement."""
    return EvalStmt(op_call(name, (tile,), kwargs, UnknownType.get(), span), span)


def pop(name: str, var: Var, kwargs: dict, span: Span) -> Stmt:
    """``var = tile.tpop_from_*()``."""
    return AssignStmt(var, op_call(name, (), kwargs, var.type, span), span)


def is_cube_to_vector(call: Call) -> bool:
    """Direction of a boundary call."""
    return call.op.name == "tile.aiv_shard" or (call.op.name == "tile.move" and is_cube_space(space_of(call.args[0])))


def boundary_code(call: Call) -> int:
    """Split code of a boundary call: 0 whole, 1/2 halves by rows/columns, 3/4 halves of an odd extent.

    Raises:
        ValueError: the two vector lanes would get extents that no code describes.
    """
    if call.op.name == "tile.move":
        return 0
    mode = SplitMode(int(call.kwargs.get("split", 0)) if int(call.kwargs.get("split", 0)) <= 2 else 0)
    if mode is SplitMode.NONE:
        return int(call.kwargs.get("split", 0))
    axis = 0 if mode is SplitMode.UP_DOWN else 1
    full = call.args[0].type if call.op.name == "tile.aiv_shard" else call.type
    physical, valid = const_value(full.shape[axis]), const_value(full.valid_shape[axis])
    stride = call.kwargs.get("lane_stride") or (None if physical is None else (physical + 1) // 2)
    if valid is None or stride is None:
        return int(mode)
    first, second = (min(max(valid - lane * stride, 0), stride) for lane in (0, 1))
    if first == second or second == 0:
        return int(mode)
    if first == second + 1 and call.op.name == "tile.aiv_shard":
        return int(mode) + 2
    raise user_error(
        f"{call.op.name} with split {mode.name} leaves the two AIV lanes {first} and {second} cells: lanes must get "
        f"equal extents, or differ by one when tiles go to the vector cores; choose a valid extent such as "
        f"{2 * stride}, {2 * stride - 1} or one that fits lane 0 ({stride}) alone",
        span=call.span,
    )


def cube_side(stmt: AssignStmt) -> list[Stmt]:
    """What the cube core does at a boundary statement."""
    call, span = stmt.value, stmt.span
    kwargs = _pipe_kwargs(call, boundary_code(call))
    if is_cube_to_vector(call):
        return [push("tile.tpush_to_aiv", call.args[0], kwargs, span)]
    target = space_of(stmt.var) or call.kwargs.get("target_memory")
    if target is MemorySpace.Mat:
        return [pop("tile.tpop_from_aiv", stmt.var, kwargs, span)]
    landed = Var(f"{stmt.var.name_hint}_mat", _in_mat(stmt.var.type), stmt.var.span)
    move_kwargs = dict(call.kwargs)
    if target in _OPERAND_LAYOUT:
        move_kwargs["blayout"], move_kwargs["slayout"] = _OPERAND_LAYOUT[target]
    move = op_call("tile.move", (landed,), move_kwargs, call.type, span)
    return [pop("tile.tpop_from_aiv", landed, kwargs, span), AssignStmt(stmt.var, move, span)]


def vector_side(stmt: AssignStmt) -> list[Stmt]:
    """What the vector core does at a boundary statement."""
    call, span = stmt.value, stmt.span
    kwargs = _pipe_kwargs(call, boundary_code(call))
    if is_cube_to_vector(call):
        return [pop("tile.tpop_from_aic", stmt.var, kwargs, span)]
    moves, tile = fractal_form(call.args[0], span)
    return [*moves, push("tile.tpush_to_aic", tile, kwargs, span)]


def gathers_land_in_mat(body: Stmt) -> Stmt:
    """A gathered tile is popped into Mat, so its readers are cube code whatever space it was written for."""
    types = {
        stmt.var: _in_mat(stmt.var.type)
        for stmt, call in iter_calls(body)
        if call.op.name == "tile.aic_gather" and space_of(stmt.var) is not MemorySpace.Mat
    }
    return Retype(types).visit_stmt(body) if types else body


def _in_mat(kind: TileType) -> TileType:
    """The type of a tile that landed in Mat: its implicit fractal layout, the same valid region."""
    valid = kind.tile_view.valid_shape if kind.tile_view is not None else ()
    view = None
    if valid:
        view = TileView(valid_shape=valid, blayout=TileLayout.col_major, slayout=TileLayout.row_major)
    return replace(kind, memref=None, memory_space=MemorySpace.Mat, tile_view=view)


def fractal_form(tile: Expr, span: Span) -> tuple[list[Stmt], Expr]:
    """(moves, tile) that put a vector tile into the layout in which it travels to the cube core."""
    handler = backend_handler()
    if handler is None or not handler.requires_vto_c_fractal_adapt() or not isinstance(tile, Var):
        return [], tile
    view = tile.type.get_effective_tile_view()
    if (view.blayout, view.slayout) == (TileLayout.col_major, TileLayout.row_major):
        return [], tile
    layout = {"blayout": TileLayout.col_major, "slayout": TileLayout.row_major}
    valid = tile.type.tile_view.valid_shape if tile.type.tile_view is not None else ()
    kind = replace(tile.type, memref=None, tile_view=TileView(valid_shape=valid, pad=PadValue.null, **layout))
    moved = Var(f"{tile.name_hint}_nz", kind, span)
    call = op_call("tile.move", (tile,), {"target_memory": MemorySpace.Vec, **layout}, kind, span)
    return [AssignStmt(moved, call, span)], moved
