"""Pipes between the cube core and the vector cores of a mixed kernel."""

from __future__ import annotations

import re

from pypto.codegen.pto.kernel import KernelEmitter, TileHandle
from pypto.codegen.pto.operators import call_span, emits, emits_scalar
from pypto.codegen.pto.scalars import index_value, typed_value
from pypto.codegen.pto.types import tile_buf_text, tile_extents
from pypto.codegen.writer import kernel_symbol
from pypto.errors import InternalError, user_error
from pypto.ir import DataType, FunctionType, Span, Var
from pypto.ir.expr import Call, ConstInt

#: Name of the workspace parameter of mixed kernels whose pipes travel through global memory.
GM_PIPE_BUFFER = "__gm_pipe_buffer"


def _identifier(value: str, what: str, span: Span) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", value):
        raise user_error(f"{what} '{value}' must consist of letters, digits and underscores", span=span)
    return value


@emits_scalar("system.reserve_buffer")
def reserve_buffer(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    name = _identifier(call.kwargs["name"], "reserved buffer name", span)
    space = "mat" if emitter.function.func_type is FunctionType.AIC else "vec"
    base = int(call.kwargs.get("base", -1))
    place = f"auto = false, base = {max(base, 0)}" if emitter.emit_tile_addr else "auto = true"
    result = emitter.fresh(hint)
    emitter.line(
        f'{result} = pto.reserve_buffer {{name = "{name}", size = {int(call.kwargs["size"])}, '
        f"location = #pto.address_space<{space}>, {place}}} -> i32",
        span,
    )
    return result


@emits_scalar("system.import_peer_buffer")
def import_peer_buffer(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    name = _identifier(call.kwargs["name"], "imported buffer name", span)
    peer = _identifier(call.kwargs["peer_func"], "peer function", span)
    result = emitter.fresh(hint)
    emitter.line(
        f'{result} = pto.import_reserved_buffer {{name = "{name}", peer_func = @{kernel_symbol(peer)}}} -> i32', span
    )
    return result


@emits("system.aic_initialize_pipe", "system.aiv_initialize_pipe")
def initialize_pipe(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    attrs = [
        f"{key} = {int(call.kwargs[key])}"
        for key in ("id", "dir_mask", "slot_size", "slot_num", "local_slot_num")
        if call.kwargs.get(key) is not None
    ]
    c2v, v2c = (typed_value(emitter, a, DataType.INT32, span=at) for a in call.args[:2])
    operands = f"c2v_consumer_buf = {c2v} : i32, v2c_consumer_buf = {v2c} : i32"
    head = f"pto.{call.op.name.removeprefix('system.')} {{{', '.join(attrs)}}}"
    if not emitter.handler.requires_gm_pipe_buffer():
        emitter.line(f"{head} ({operands})", at)
        return
    emitter.line(head)
    pointer = _gm_pipe_pointer(emitter, at)
    with emitter.region(4):
        emitter.line(f"(gm_slot_buffer = {pointer} : !pto.ptr<f32>, {operands})", at)


def _gm_pipe_pointer(emitter: KernelEmitter, span: Span) -> str:
    for param in emitter.function.params:
        if param.name_hint.split("__ssa")[0] == GM_PIPE_BUFFER:
            return emitter.tensors[param].pointer
    raise InternalError(f"kernel '{emitter.function.name}' uses a pipe without '{GM_PIPE_BUFFER}'", span=span)


def _pipe_attrs(kwargs: dict) -> str:
    identity = f"id = {int(kwargs['id'])}, " if kwargs.get("id") is not None else ""
    return f"{{{identity}split = {int(kwargs.get('split', 0))}}}"


@emits("tile.tpush_to_aiv", "tile.tpush_to_aic")
def push(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    handle = emitter.tile(call.args[0])
    name = call.op.name.removeprefix("tile.")
    emitter.line(f"pto.{name}({handle.typed}) {_pipe_attrs(call.kwargs)}", call_span(span, call))


@emits("tile.tpop_from_aic", "tile.tpop_from_aiv")
def pop(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    tile = result.type
    valid = emitter.valid_extents(tile)
    physical = tile_extents(tile)
    full = all(isinstance(v, ConstInt) and v.value == p for v, p in zip(valid, physical))
    operands = ""
    if not full:
        operands = f"({', '.join(index_value(emitter, v, span=at) for v in valid)})"
    kind = tile_buf_text(tile)
    name = emitter.fresh(result.name_hint)
    op = call.op.name.removeprefix("tile.")
    emitter.line(f"{name} = pto.{op}{operands} {_pipe_attrs(call.kwargs)} -> {kind}", at)
    emitter.tiles[result] = TileHandle(name, kind, tile, valid)
    emitter.popped[result] = call.kwargs


@emits("system.tfree_to_aic", "system.tfree_to_aiv")
def free(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    popped = emitter.popped.get(call.args[0])
    if popped is None:
        raise InternalError(f"{call.op.name} must be given the result of a pop", span=span)
    name = call.op.name.removeprefix("system.").replace("_to_", "_from_")
    emitter.line(f"pto.{name} {_pipe_attrs(popped)}", call_span(span, call))
