"""Set-up of the cross-core pipe of a mixed kernel: reserve, import, initialise."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.program import Function
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, EvalStmt, Stmt, seq
from pypto.ir.types import TileType, UnknownType, scalar_type
from pypto.passes.lib.op_facts import INIT_PIPES
from pypto.passes.lib.sizes import shaped_bytes
from pypto.passes.lib.walk import iter_calls, op_name
from pypto.passes.mixed.crossings import op_call

C2V, V2C = 1, 2
DEFAULT_SLOTS = 2

_DIRECTION = {
    "tile.tpush_to_aiv": C2V,
    "tile.tpop_from_aic": C2V,
    "tile.tpush_to_aic": V2C,
    "tile.tpop_from_aiv": V2C,
}


@dataclass(frozen=True)
class PipeShape:
    """What a kernel's pipe carries: directions (mask), bytes of one slot, number of slots."""

    mask: int
    slot_size: int
    slot_num: int


def has_setup(stmts: list[Stmt]) -> bool:
    """The pipe is initialised by hand."""
    return any(call.op.name in INIT_PIPES for _, call in iter_calls(seq(stmts)))


def pipe_shape(function: Function, bodies: list[list[Stmt]]) -> PipeShape | None:
    """Shape of the pipe that these bodies use, None when nothing crosses.

    Raises:
        ValueError: a tile that crosses has a symbolic shape.
    """
    mask, size = 0, 0
    for body in bodies:
        for stmt, call in iter_calls(seq(body)):
            direction = _DIRECTION.get(call.op.name)
            if direction is None:
                continue
            mask |= direction
            tile = call.args[0] if call.args else stmt.var
            nbytes = shaped_bytes(tile.type) if isinstance(tile.type, TileType) else None
            if nbytes is None:
                raise user_error(
                    f"kernel '{function.name}': tile '{getattr(tile, 'name_hint', '')}' crosses between the cores, so "
                    "its shape must be static",
                    span=stmt.span,
                )
            size = max(size, nbytes)
    if not mask:
        return None
    slots = function.attrs.get("slot_num") or DEFAULT_SLOTS
    return PipeShape(mask, size, int(slots))


def setup(kernel: str, shape: PipeShape, *, cube: bool, span: Span) -> list[Stmt]:
    """Statements that open the pipe on one core: the consumer of a direction reserves, the producer imports."""
    stmts: list[Stmt] = []
    buffers: dict[int, Expr] = {}
    for direction, name in ((V2C, f"{kernel}_v2c_slot_buffer"), (C2V, f"{kernel}_c2v_slot_buffer")):
        if not shape.mask & direction:
            continue
        consumes = cube is (direction == V2C)
        kind = scalar_type(DataType.INT32)
        if consumes:
            var = Var(name, kind, span)
            kwargs = {"name": name, "size": shape.slot_size * shape.slot_num, "base": -1}
            call = op_call("system.reserve_buffer", (), kwargs, kind, span)
        else:
            var = Var(f"{name}_import", kind, span)
            peer = f"{kernel}_aiv" if cube else f"{kernel}_aic"
            call = op_call("system.import_peer_buffer", (), {"name": name, "peer_func": peer}, kind, span)
        stmts.append(AssignStmt(var, call, span))
        buffers[direction] = var
    none = ConstInt(0, DataType.INT32, span)
    args = (buffers.get(C2V, none), buffers.get(V2C, none))
    kwargs = {"dir_mask": shape.mask, "slot_size": shape.slot_size, "slot_num": shape.slot_num}
    name = "system.aic_initialize_pipe" if cube else "system.aiv_initialize_pipe"
    stmts.append(EvalStmt(op_call(name, args, kwargs, UnknownType.get(), span), span))
    return stmts


def with_setup(stmts: list[Stmt], opening: list[Stmt]) -> list[Stmt]:
    """The body with the set-up in front; leading lane queries stay first."""
    lead = 0
    while lead < len(stmts) and op_name(stmts[lead]) == "tile.get_subblock_idx":
        lead += 1
    return [*stmts[:lead], *opening, *stmts[lead:]]
