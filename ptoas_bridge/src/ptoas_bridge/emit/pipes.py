"""Cross-core pipes: TPipe construction, push, pop and free."""

from __future__ import annotations

from ..dialect.ir import Operation
from ..dialect.types import TileType
from ..errors import UnsupportedFeatureError
from .cpp_types import cpp_type
from .function import FunctionEmitter, emits
from .views import declare_tile

_DIRECTIONS = {1: "Direction::DIR_C2V", 2: "Direction::DIR_V2C", 3: "Direction::DIR_BOTH"}
_SPLITS = ("TILE_NO_SPLIT", "TILE_UP_DOWN", "TILE_LEFT_RIGHT", "TILE_UP_DOWN_ODD", "TILE_LEFT_RIGHT_ODD")


@emits("pto.reserve_buffer", "pto.import_reserved_buffer")
def _reserved_base(e: FunctionEmitter, op: Operation) -> None:
    name = e.fresh()
    e.note(op.result)
    e.line(f"const int32_t {name} = {op.attrs['resolved_base']};")
    e.expr[op.result] = name


@emits("pto.aic_initialize_pipe", "pto.aiv_initialize_pipe")
def _initialize_pipe(e: FunctionEmitter, op: Operation) -> None:
    """`auto p = TPipe<flag, direction, slot size, slots, local slots, nosplit>(gm, c2v, v2c);`"""
    plan = op.attrs["plan"]
    gm = op.named.get("gm_slot_buffer")
    if op.named.get("gm_slot_tensor") is not None:
        raise UnsupportedFeatureError("over a gm_slot_tensor (global-entry form) is not translated")
    if gm is not None:
        pointer = e.use(gm)
    else:
        pointer = e.fresh()
        e.line(f"__gm__ void* {pointer} = nullptr;")
    buffers = []
    for key in ("c2v_consumer_buf", "v2c_consumer_buf"):
        value = op.named.get(key)
        buffers.append(e.use(value) if value is not None else "0")
    parameters = [
        str(plan.flag_base), _DIRECTIONS[plan.dir_mask], str(plan.slot_size), str(plan.slot_num),
        str(plan.local_slot_num), "true" if plan.nosplit else "false",
    ]  # fmt: skip
    name = e.fresh()
    type_ = f"TPipe<{', '.join(parameters)}>"
    e.line(f"auto {name} = {type_}({pointer}, {', '.join(buffers)});")
    e.pipes[op.attrs.get("id", 0)] = (name, type_)


def _pipe(e: FunctionEmitter, op: Operation) -> tuple[str, str]:
    return e.pipes[op.attrs.get("id", 0)]


def _split(op: Operation) -> str:
    return f"TileSplitAxis::{_SPLITS[op.attrs.get('split', 0)]}"


@emits("pto.tpush_to_aiv", "pto.tpush_to_aic")
def _push(e: FunctionEmitter, op: Operation) -> None:
    name, type_ = _pipe(e, op)
    tile = op.ins[0]
    if not isinstance(tile.type, TileType):
        raise UnsupportedFeatureError("of a tensor view (global-entry form) is not translated")
    e.line(f"TPUSH<{type_}, {cpp_type(tile.type)}, {_split(op)}>({name}, {e.use(tile)});")


@emits("pto.tpop_from_aic", "pto.tpop_from_aiv")
def _pop(e: FunctionEmitter, op: Operation) -> None:
    name, type_ = _pipe(e, op)
    tile = op.result.type
    if not isinstance(tile, TileType):
        raise UnsupportedFeatureError("of a tensor view (global-entry form) is not translated")
    declare_tile(e, op.result, str(tile.rows), str(tile.cols))
    if op.ins:
        e.line(f"{e.expr[op.result]}.SetValidShape({', '.join(e.use(v) for v in op.ins)});")
    e.line(f"TPOP<{type_}, {cpp_type(tile)}, {_split(op)}>({name}, {e.expr[op.result]});")


@emits("pto.tfree_from_aic", "pto.tfree_from_aiv")
def _free(e: FunctionEmitter, op: Operation) -> None:
    name, type_ = _pipe(e, op)
    e.line(f"TFREE<{type_}, {_split(op)}>({name});")
