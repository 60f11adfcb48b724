"""Barriers, fences, cache operations and synchronisation written by the user."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.operators import call_span, emits
from pypto.codegen.pto.operators.movement import elements
from pypto.codegen.pto.scalars import typed_value
from pypto.errors import user_error
from pypto.ir import DataType, PipeType, Span, Var
from pypto.ir.expr import Call, ConstInt, Expr, const_index


def _barrier(op: str, pipe: str) -> None:
    @emits(op)
    def emission(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
        emitter.line(f"pto.barrier <{pipe}>", call_span(span, call))


_barrier("system.bar_all", "PIPE_ALL")
_barrier("system.bar_v", "PIPE_V")
_barrier("system.bar_m", "PIPE_M")


@emits("system.fence")
def fence(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    emitter.line("pto.fence.barrier_all #pto.fence_scope<gm>", call_span(span, call))


@emits("system.cacheinvalid")
def cache_invalidate(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    if not call.args:
        emitter.line("pto.cmo.cacheinvalid all #pto.address_space<gm>", at)
        return
    tensor, shapes, offsets = call.args[:3]
    ref = emitter.tensor(tensor)
    view, kind = emitter.partition(ref, tensor.name_hint, elements(offsets), elements(shapes), at)
    emitter.line(f"pto.cmo.cacheinvalid {view} single_cache_line : {kind}", at)


def _pipe(value: object) -> str:
    return f"PIPE_{PipeType(int(value)).name}"


def _event(emitter: KernelEmitter, call: Call, span: Span) -> str:
    value = call.kwargs.get("event_id", call.args[0] if call.args else 0)
    return typed_value(emitter, value, DataType.INDEX, span=span) if isinstance(value, Expr) else str(int(value))


@emits("system.sync_src", "system.sync_dst")
def event(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    op = "set_flag" if call.op.name == "system.sync_src" else "wait_flag"
    pipes = f"<{_pipe(call.kwargs['set_pipe'])}>, <{_pipe(call.kwargs['wait_pipe'])}>"
    at = call_span(span, call)
    emitter.line(f"pto.{op}[{pipes}, <EVENT_ID{_event(emitter, call, at)}>]", at)


@emits("system.sync_set", "system.sync_wait")
def cross_core_event(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    op = call.op.name.removeprefix("system.").replace("_", ".")
    mode = call.kwargs.get("ffts_mode")
    attrs = f" {{ffts_mode = {int(mode)} : i32}}" if mode is not None else ""
    emitter.line(f"pto.{op} <{_pipe(call.kwargs['pipe'])}>, {_event(emitter, call, at)}{attrs}", at)


@emits("system.set_ffts")
def set_ffts(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    ref = emitter.tensors[call.args[0]]
    emitter.line(f"pto.set_ffts {ref.pointer} : !pto.ptr<i64>", call_span(span, call))


@emits("system.syncall")
def syncall(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    mode = call.kwargs.get("mode", "hard")
    core = {"mix": "mix", "aiv_only": "aiv_only", "aic_only": "aic_only"}.get(call.kwargs.get("core_type", "mix"))
    tail = f"mode = #pto.sync_all_mode<{mode}>, core_type = #pto.sync_core_type<{core}>"
    if mode == "hard":
        emitter.line(f"pto.syncall() {tail}", at)
        return
    workspace = call.args[0]
    ref = emitter.tensor(workspace)
    shape = ref.type.shape
    if all(isinstance(d, ConstInt) for d in shape):
        count = 1
        for dim in shape:
            count *= dim.value
        if count < 16:
            raise user_error(f"a soft syncall workspace needs at least 16 INT32 elements, got {count}", span=at)
    view, kind = emitter.partition(ref, workspace.name_hint, [const_index(0)] * len(shape), shape, at)
    names, kinds = view, kind
    if len(call.args) > 1 and not (isinstance(call.args[1], ConstInt) and call.args[1].value == 0):
        cores = typed_value(emitter, call.args[1], DataType.INT32, span=at)
        names, kinds = f"{view}, {cores}", f"{kind}, i32"
    emitter.line(f"pto.syncall({names} : {kinds}) {tail}", at)
