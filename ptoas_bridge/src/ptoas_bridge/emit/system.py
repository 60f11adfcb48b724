"""Synchronisation, cache control, communication and debug operations."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.enums import EVENT_PIPES, EnumAttr
from ..dialect.ir import Operation, Value
from .cpp_types import cpp_type, enum_value
from .function import FunctionEmitter, emits


def _event(e: FunctionEmitter, op: Operation) -> str:
    """The event operand: a constant id, or `event_t eN = (event_t) index;` for one chosen at run time."""
    if not op.ins:
        return op.attrs["event"].value
    name = e.fresh()
    e.line(f"event_t {name} = (event_t) {e.use(op.ins[0])};")
    return name


@emits("pto.set_flag", "pto.wait_flag", "pto.set_flag_dyn", "pto.wait_flag_dyn")
def _flag(e: FunctionEmitter, op: Operation) -> None:
    event = _event(e, op)
    e.line(f"{op.spec.call}({op.attrs['src'].value}, {op.attrs['dst'].value}, {event});")


@emits("pto.record_event", "pto.wait_event")
def _event_flag(e: FunctionEmitter, op: Operation) -> None:
    call = "set_flag" if op.name == "pto.record_event" else "wait_flag"
    source, target = EVENT_PIPES[op.attrs["src"].value], EVENT_PIPES[op.attrs["dst"].value]
    event = _event(e, op)
    e.line(f"{call}({source}, {target}, {event});")


@emits("pto.barrier")
def _barrier(e: FunctionEmitter, op: Operation) -> None:
    pipe = op.attrs["pipe"].value
    if not (e.arch == "a5" and pipe == "PIPE_V"):
        e.line(f"pipe_barrier({pipe});")


@emits("pto.barrier_sync")
def _barrier_sync(e: FunctionEmitter, op: Operation) -> None:
    pipe = EVENT_PIPES[op.attrs["event_type"].value]
    if not (e.arch == "a5" and pipe == "PIPE_V"):
        e.line(f"pipe_barrier({pipe});")


@emits("pto.get_buf", "pto.rls_buf")
def _buffer_id(e: FunctionEmitter, op: Operation) -> None:
    pipe = EVENT_PIPES[op.attrs["event_type"].value]
    e.line(f"{op.spec.call}({pipe}, {op.attrs['buffer']}, {op.attrs.get('mode', 0)});")


@emits("pto.sync.set", "pto.sync.wait")
def _cross_core(e: FunctionEmitter, op: Operation) -> None:
    """A3: FFTS flags; A5: intra-block flags, of which a cube core signals one per vector lane."""
    pipe = op.attrs["pipe"].value
    event = e.settled(op.ins[0]) if op.ins else str(op.attrs["event"])
    sets = op.name == "pto.sync.set"
    if e.arch == "a5":
        call = "set_intra_block" if sets else "wait_intra_block"
        e.line(f"{call}({pipe}, {event});")
        if e.function.kind == "cube":
            e.line(f"{call}({pipe}, {event} + 16);")
    elif sets:
        mode = op.attrs.get("ffts_mode", 2)
        e.line(f"ffts_cross_core_sync({pipe}, getFFTSMsg({mode}, {event}));")
    else:
        e.line(f"wait_flag_dev({event});")


@emits("pto.set_ffts")
def _set_ffts(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"set_ffts_base_addr((uint64_t) {e.use(op.ins[0])});")


@emits("pto.syncall")
def _syncall(e: FunctionEmitter, op: Operation) -> None:
    core = enum_value(op.attrs["core_type"])
    if op.attrs["mode"].value == "hard":
        e.line(f"SYNCALL<{core}>();")
        return
    cores = e.use(op.ins[1]) if len(op.ins) > 1 else "int32_t{0}"
    e.line(f"SYNCALL<SyncAllMode::Soft, {core}>({_workspace(e, op.ins[0])}, {cores});")


def _workspace(e: FunctionEmitter, value: Value) -> str:
    """The soft barrier takes a GlobalTensor; a bare pointer becomes one of the least size, 16 words."""
    if isinstance(value.type, T.ViewType):
        return e.use(value)
    name = e.fresh()
    type_ = "GlobalTensor<int32_t, pto::Shape<1, 1, 1, 1, 16>, pto::Stride<16, 16, 16, 16, 1>, pto::Layout::ND>"
    e.line(f"{type_} {name} = {type_}({e.use(value)});")
    return name


@emits("pto.fence.barrier_all")
def _fence(e: FunctionEmitter, op: Operation) -> None:
    e.line("pipe_barrier(PIPE_ALL);")
    e.line("dsb(DSB_DDR);")


@emits("pto.cmo.cacheinvalid")
def _cacheinvalid(e: FunctionEmitter, op: Operation) -> None:
    if not op.ins:
        e.line("dcci((__gm__ void*)0, cache_line_t::ENTIRE_DATA_CACHE);")
        return
    target = e.use(op.ins[0])
    if isinstance(op.ins[0].type, T.ViewType):
        target = f"PTOAS__GLOBAL_TENSOR_DATA({target})"
    e.line(f"PTOAS__DCCI_SINGLE_CACHE_LINE({target});")


@emits("pto.declare_eventid_array")
def _declare_events(e: FunctionEmitter, op: Operation) -> None:
    e.helpers.add("PTOAS_EventIdArray")
    name = e.fresh()
    e.note(op.result)
    e.line(f"{cpp_type(op.result.type)} {name};")
    e.expr[op.result] = name


def _slot(e: FunctionEmitter, op: Operation, at: int) -> str:
    return e.use(op.ins[at]) if "index" not in op.attrs else str(op.attrs["index"])


@emits("pto.eventid_array_get")
def _event_get(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, f"{e.use(op.ins[0])}[{_slot(e, op, 1)}]")


@emits("pto.eventid_array_set")
def _event_set(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"{e.use(op.ins[0])}[{_slot(e, op, 1)}] = {e.use(op.ins[-1])};")


@emits("pto.print")
def _print(e: FunctionEmitter, op: Operation) -> None:
    arguments = [f'"{op.attrs["format"]}"', *(e.use(v) for v in op.ins)]
    e.line(f"cce::printf({', '.join(arguments)});")


@emits("pto.trap")
def _trap(e: FunctionEmitter, op: Operation) -> None:
    e.line("trap();")


# --- communication -----------------------------------------------------------------------------------------------


@emits("pto.comm.tput", "pto.comm.tget")
def _put_get(e: FunctionEmitter, op: Operation) -> None:
    arguments = [e.use(v) for v in [*op.ins, *op.named["buf"]]]
    atomic = op.attrs.get("atomicType")
    template = ""
    if op.name == "pto.comm.tput":
        template = f"<{enum_value(atomic or EnumAttr('atomic_type', 'atomic_none'))}>"
    e.line(f"{op.spec.call}{template}({', '.join(arguments)});")


@emits("pto.comm.tnotify")
def _notify(e: FunctionEmitter, op: Operation) -> None:
    mode = e.fresh()
    e.line("pipe_barrier(PIPE_ALL);")
    e.line(f"pto::comm::NotifyOp {mode} = {enum_value(op.attrs.get('notifyOp', EnumAttr('notify_op', 'set')))};")
    e.line(f"pto::comm::TNOTIFY({e.use(op.ins[0])}, {e.use(op.ins[1])}, {mode});")


@emits("pto.comm.twait", "pto.comm.ttest")
def _wait(e: FunctionEmitter, op: Operation) -> None:
    mode = e.fresh()
    e.line(f"pto::comm::WaitCmp {mode} = {enum_value(op.attrs.get('cmp', EnumAttr('wait_cmp', 'eq')))};")
    call = f"{op.spec.call}({e.use(op.ins[0])}, {e.use(op.ins[1])}, {mode})"
    if op.results:
        e.declare(op.result, call)
    else:
        e.line(f"{call};")


@emits("pto.comm.tbroadcast", "pto.comm.tgather", "pto.comm.tscatter", "pto.comm.treduce")
def _collective(e: FunctionEmitter, op: Operation) -> None:
    group_values = op.named["group"]
    member = e.tensor_type[group_values[0]]
    members = [e.use(v) for v in group_values]
    array, group = e.fresh(), e.fresh()
    e.line(f"{member} {array}[] = {{{', '.join(members)}}};")
    root = op.attrs.get("root", 0)
    e.line(f"pto::comm::ParallelGroup<{member}> {group}({array}, {len(members)}, {root});")
    arguments = [group, *(e.use(v) for v in [*op.ins, *op.named["recv"]])]
    if op.name == "pto.comm.treduce":
        arguments.append(enum_value(op.attrs.get("reduceOp", EnumAttr("reduce_op", "sum"))))
    e.line(f"{op.spec.call}({', '.join(arguments)});")


@emits("pto.comm.build_async_session")
def _session(e: FunctionEmitter, op: Operation) -> None:
    """Trailing arguments are printed only when an attribute asks for them; the defaults are the instruction set's."""
    name = e.fresh()
    e.note(op.result)
    e.line(f"pto::comm::AsyncSession {name};")
    scratch, workspace = op.ins
    arguments = [e.use(scratch), f"(__gm__ uint8_t*) {e.use(workspace)}", name]
    config = [str(op.attrs.get(k, d)) for k, d in (("block_bytes", 32768), ("comm_block_offset", 0), ("queue_num", 1))]
    configured = any(k in op.attrs for k in ("block_bytes", "comm_block_offset", "queue_num", "channel_group_idx"))
    if configured or "sync_id" in op.attrs:
        arguments.append(str(op.attrs.get("sync_id", 0)))
    if configured:
        arguments.append(f"pto::comm::sdma::SdmaBaseConfig{{{', '.join(config)}}}")
    if "channel_group_idx" in op.attrs:
        arguments.append(str(op.attrs["channel_group_idx"]))
    e.line(f"pto::comm::BuildAsyncSession<pto::comm::DmaEngine::SDMA>({', '.join(arguments)});")
    e.expr[op.result] = name


@emits("pto.comm.tput_async", "pto.comm.tget_async")
def _async_transfer(e: FunctionEmitter, op: Operation) -> None:
    call = f"{op.spec.call}<pto::comm::DmaEngine::SDMA>({', '.join(e.use(v) for v in op.ins)})"
    e.declare(op.result, call, "pto::comm::AsyncEvent")


@emits("pto.tprefetch_async")
def _async_prefetch(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, f"TPREFETCH_ASYNC({', '.join(e.use(v) for v in op.ins)})", "pto::comm::AsyncEvent")


@emits("pto.comm.wait_async_event", "pto.comm.test_async_event")
def _async_event(e: FunctionEmitter, op: Operation) -> None:
    method = "Wait" if op.name.endswith("wait_async_event") else "Test"
    e.declare(op.result, f"{e.use(op.ins[0])}.{method}({e.use(op.ins[1])})", "bool")


@emits("pto.make_prefetch_async_context")
def _prefetch_context(e: FunctionEmitter, op: Operation) -> None:
    name = e.fresh()
    e.note(op.result)
    e.line(f"pto::PrefetchAsyncContext {name}({e.use(op.ins[0])});")
    e.expr[op.result] = name


@emits("pto.get_prefetch_async_session")
def _prefetch_session(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, f"{e.use(op.ins[0])}.GetSession()", "auto&")
