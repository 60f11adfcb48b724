"""The operation table, part two: pointers, views, allocation, synchronisation, pipes, communication."""

from __future__ import annotations

from .spec import op


def _pointers_and_views() -> None:
    op("addptr", "ptr offset", form="addptr", results=1)
    op("ptrtoint", "ptr", form="cast", results=1)
    op("inttoptr", "address", form="cast", results=1)
    op("castptr", "value", form="cast", results=1)
    op("make_tensor_view", "ptr", form="make_tensor_view", results=1, attrs={"layout": "layout"})
    op("get_tensor_view_dim", "view index", form="view_query", results=1)
    op("get_tensor_view_stride", "view index", form="view_query", results=1)
    op("partition_view", "view", form="partition_view", results=1)
    op("load_scalar", "ptr offset", form="load_scalar", pipe="S", results=1)
    op("store_scalar", "value ptr offset", form="store_scalar", pipe="S")


def _tiles() -> None:
    op("alloc_tile", form="alloc", results=1)
    op("alloc_multi_tile", form="alloc", results=1)
    op("multi_tile_get", "tiles index", form="multi_tile_get", results=1)
    op("subview", "source", form="subview", results=1)
    op("treshape", "source", form="cast", results=1)
    op("bitcast", "source", form="cast", results=1)
    op("set_validshape", "tile rows cols", form="set_validshape", pipe=None)
    op("get_validshape", "tile", form="get_validshape", results=2)
    op("tile_valid_rows", "tile", form="cast", results=1)
    op("tile_valid_cols", "tile", form="cast", results=1)
    op("tassign", "tile address", form="tassign", results=1)


def _synchronisation() -> None:
    for name in ("set_flag", "wait_flag"):
        op(name, form="flag", call=name)
        op(name + "_dyn", "event", form="flag", call=name)
    for name in ("record_event", "wait_event"):
        op(name, form="flag", call=name)
    op("barrier", form="barrier", call="pipe_barrier")
    op("barrier_sync", form="barrier_sync", call="pipe_barrier")
    for name in ("get_buf", "rls_buf"):
        op(name, form="buffer_id", arch="a5", call=name)
    op("sync.set", "event?", form="cross_core", attrs={"ffts_mode": "int"})
    op("sync.wait", "event?", form="cross_core")
    op("set_ffts", "ptr", form="unary_typed", call="set_ffts_base_addr")
    op("syncall", "workspace? cores?", form="syncall")
    op("fence.barrier_all", form="fence")
    op("cmo.cacheinvalid", "target?", form="cacheinvalid")
    op("declare_eventid_array", form="declare", results=1)
    op("eventid_array_get", "array index?", form="event_array_get", results=1)
    op("eventid_array_set", "array index? value", form="event_array_set")


def _pipes() -> None:
    op("reserve_buffer", form="declare", results=1, attrs={
        "name": "str", "size": "int", "location": "address_space", "auto": "bool", "base": "int",
    })  # fmt: skip
    op("import_reserved_buffer", form="declare", results=1, attrs={"name": "str", "peer_func": "symbol"})
    pipe_attrs = dict.fromkeys(("id", "dir_mask", "slot_size", "slot_num", "local_slot_num", "flag_base"), "int")
    for name in ("aic_initialize_pipe", "aiv_initialize_pipe"):
        op(name, form="initialize_pipe", attrs={**pipe_attrs, "nosplit": "bool"}, call="TPipe")
    move_attrs = {"id": "int", "split": "int"}
    for name in ("tpush_to_aiv", "tpush_to_aic"):
        op(name, "tile", form="pipe_push", attrs=move_attrs, call="TPUSH")
    for name in ("tpop_from_aic", "tpop_from_aiv"):
        op(name, "rows? cols?", form="pipe_pop", attrs=move_attrs, results=1, call="TPOP")
    for name in ("tfree_from_aic", "tfree_from_aiv"):
        op(name, form="pipe_free", attrs=move_attrs, call="TFREE")
    for name in ("talloc_to_aiv", "talloc_to_aic"):
        op(name, form="pipe_pop", attrs=move_attrs, results=1, call="TALLOC")


def _runtime_values() -> None:
    for name, call in (
        ("get_block_idx", "get_block_idx"),
        ("get_block_num", "get_block_num"),
        ("get_subblock_idx", "get_subblockid"),
        ("get_subblock_num", "get_subblockdim"),
    ):
        op(name, form="runtime_value", results=1, call=call)
    op("section.cube", form="section")
    op("section.vector", form="section")
    op("print", "args*", form="print")
    op("trap", form="nullary", call="trap")
    op("declare_local_array", form="declare", results=1)
    op("local_array_get", "array", form="array_get", results=1, pipe="S")
    op("local_array_set", "array value", form="array_set", pipe="S")
    op("declare_struct", form="declare", results=1)
    op("struct_get", "struct", form="array_get", results=1)
    op("struct_set", "struct value", form="array_set")
    op("set_quant_scalar", "value", form="paren_call", attrs={"id": "int"})
    op("set_quant_vector", "tile", form="paren_call", attrs={"id": "int"})


def _communication() -> None:
    op("comm.tput", "dst src", form="comm", attrs={"atomicType": "atomic_type"}, pipe="ALL", call="pto::comm::TPUT")
    op("comm.tget", "dst src", form="comm", pipe="ALL", call="pto::comm::TGET")
    op("comm.tnotify", "signal value", form="comm", attrs={"notifyOp": "notify_op"}, call="pto::comm::TNOTIFY")
    op("comm.twait", "signal value", form="comm", attrs={"cmp": "wait_cmp"}, call="pto::comm::TWAIT")
    op("comm.ttest", "signal value", form="comm", attrs={"cmp": "wait_cmp"}, results=1, call="pto::comm::TTEST")
    op("comm.tbroadcast", "src", form="comm", attrs={"root": "int"}, pipe="ALL", call="pto::comm::TBROADCAST")
    op("comm.tgather", "dst", form="comm", attrs={"root": "int"}, pipe="ALL", call="pto::comm::TGATHER")
    op("comm.tscatter", "src", form="comm", attrs={"root": "int"}, pipe="ALL", call="pto::comm::TSCATTER")
    op("comm.treduce", "dst acc", form="comm", attrs={"root": "int", "reduceOp": "reduce_op"}, pipe="ALL",
       call="pto::comm::TREDUCE")  # fmt: skip
    session = dict.fromkeys(("sync_id", "block_bytes", "comm_block_offset", "queue_num", "channel_group_idx"), "int")
    op("comm.build_async_session", "scratch workspace", form="paren_call", results=1, attrs=session)
    for name in ("tput_async", "tget_async"):
        op("comm." + name, "dst src session", form="paren_call", results=1, call=f"pto::comm::{name.upper()}")
    for name in ("wait_async_event", "test_async_event"):
        op("comm." + name, "event session", form="paren_call", results=1)
    op("make_prefetch_async_context", "workspace", form="paren_call", results=1)
    op("get_prefetch_async_session", "context", form="cast", results=1)
    op("tprefetch_async", "src context", form="paren_call", results=1, call="TPREFETCH_ASYNC")


_pointers_and_views()
_tiles()
_synchronisation()
_pipes()
_runtime_values()
_communication()
