"""What operators between cores and between ranks accept, refuse and give."""

from __future__ import annotations

import pytest
from operand_values import (
    FP16,
    FP32,
    INDEX,
    INT32,
    INT64,
    UINT8,
    indices,
    scalar,
    shape_of,
    tensor,
    tile,
    valid_of,
    window,
)
from pypto.ir import AtomicType, ConstInt, DataType, MemorySpace, NotifyOp, PipeType, ReduceOp, TileType, Var, WaitCmp
from pypto.ops import create_op_call
from pypto.ops.surface import ARRAY, PLD, PREFETCH, SYSTEM, TILE

from pypto import ir

WINDOW, SIGNAL = window([16, 64]), window([2, 1], INT32, "s")


def refused(call, text, error=ValueError):
    with pytest.raises(error, match=text):
        call()


def one(value):
    return ConstInt(value, INT32)


# -- lanes and pipes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "make"), [("tile", tile), ("tensor", tensor)])
def test_lanes_take_halves(level, make):
    shard = lambda x, **kw: create_op_call(f"{level}.aiv_shard", [x], kw)  # noqa: E731
    half = shard(make([16, 32], valid=[10, 32]), split=1)
    assert (shape_of(half), valid_of(half)) == ([8, 32], [5, 32])
    assert shape_of(shard(make([15, 32]), split=1)) == [8, 32] and shape_of(shard(make([16, 32]), split=0)) == [16, 32]
    whole = create_op_call(f"{level}.aic_gather", [make([16, 32], valid=[5, 32])], {"split": 1})
    assert (shape_of(whole), valid_of(whole)) == ([32, 32], [10, 32])
    refused(lambda: shard(make([16, 31]), split=2), "odd number of columns")
    refused(lambda: shard(make([2, 16, 32]), split=1), f"2D {level}")
    refused(lambda: shard(make([16, 32]), split=3), "split must be 0, 1 or 2")
    refused(lambda: shard(make([16, 32]), split=True), "incompatible type", TypeError)
    refused(lambda: shard(make([16, 32])), "requires a 'split' kwarg")


def test_a_pop_says_its_type_in_one_way():
    kind = TileType([16, 32], FP16, None, None, MemorySpace.Vec)
    assert TILE.tpop_from_aic(result_type=kind, split=1).type is kind
    assert SYSTEM.tpop_from_aiv(shape=[16, 32], dtype=FP16).type.dtype == FP16
    refused(lambda: SYSTEM.tpop_from_aiv(dtype=FP16), "shape and dtype together")
    refused(lambda: TILE.tpop_from_aic(result_type=kind, shape=[16, 32], dtype=FP16), "not both")


@pytest.mark.parametrize("split", range(6))
def test_split_codes_of_pushes(split):
    for push, last in ((SYSTEM.tpush_to_aiv, 4), (SYSTEM.tpush_to_aic, 2)):
        if split <= last:
            assert push(tile([16, 32]), split=split).kwargs == {"split": split}
        else:
            refused(lambda push=push, last=last: push(tile([16, 32]), split=split), f"split in 0 to {last}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dir_mask": 4}, "dir_mask 1"), ({"slot_num": 0}, "slot_num > 0"), ({"slot_size": 0}, "slot_size > 0"),
        ({"slot_num": 4, "local_slot_num": 5}, "local_slot_num <= slot_num"),
    ],
)  # fmt: skip
def test_pipes(options, text):
    pipe = SYSTEM.aic_initialize_pipe
    assert [a.dtype for a in pipe(dir_mask=1, slot_size=512).args] == [INT32, INT32]
    refused(lambda: pipe(**{"dir_mask": 1, "slot_size": 512, **options}), text)


# -- synchronisation ---------------------------------------------------------------------------------------------

WORKSPACE = tensor([16], INT32)


@pytest.mark.parametrize(
    ("options", "text", "error"),
    [
        ({"gm_workspace": tensor([16])}, "INT32 workspace", ValueError),
        ({"used_cores": scalar()}, "INT32 scalar", ValueError),
        ({"used_cores": -1}, "INT32 range", ValueError),
        ({"used_cores": 2**31}, "INT32 range", ValueError),
        ({"used_cores": True}, "used_cores must be an int", TypeError),
        ({"used_cores": 1.0}, "used_cores must be an int", TypeError),
        ({"used_cores": None}, "explicit used_cores", ValueError),
        ({"core_type": "all"}, "core_type to be one of", ValueError),
        ({"mode": "hard"}, "hard mode takes neither", ValueError),
        ({"mode": "firm"}, "hard", ValueError),
    ],
)
def test_soft_barriers(options, text, error):
    base = {"mode": "soft", "gm_workspace": WORKSPACE, "used_cores": 4}
    assert len(SYSTEM.syncall(**base).args) == 2 and len(SYSTEM.syncall(**{**base, "used_cores": 0}).args) == 1
    refused(lambda: SYSTEM.syncall(**{**base, **options}), text, error)


def test_a_hard_barrier_has_no_operands_in_text_either():
    refused(lambda: create_op_call("system.syncall", [WORKSPACE], {"core_type": "mix"}), "hard mode takes neither")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: SYSTEM.sync_set(14, pipe=PipeType.V), "event_id in 0 to 13"),
        (lambda: SYSTEM.sync_set(scalar(INT32), pipe=PipeType.V), r"ScalarType\(INDEX\)"),
        (lambda: SYSTEM.sync_set(True, pipe=PipeType.V), r"ScalarType\(INDEX\)"),
        (lambda: SYSTEM.sync_set(1, pipe=PipeType.V, ffts_mode=3), "ffts_mode 0 to 2"),
        (lambda: SYSTEM.sync_wait(1, pipe=PipeType.V, core_type="cube"), "core_type aic or aiv"),
        (lambda: SYSTEM.set_ffts(tensor([255], INT64)), "at least 256"),
        (lambda: SYSTEM.cacheinvalid(tensor([4, 8]), [1, 1]), "together"),
        (lambda: SYSTEM.cacheinvalid(tensor([4, 8]), [scalar(FP32), 1], [0, 0]), "integer shapes"),
        (lambda: SYSTEM.task_is_valid(scalar(INT32)), "TASK_ID scalar"),
        (lambda: create_op_call("system.bar_all", [scalar()]), "no positional arguments"),
    ],
)
def test_synchronisation_refusals(call, text):
    refused(call, text)


def test_pipes_travel_as_numbers():
    call = SYSTEM.sync_src(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=0)
    assert call.kwargs == {"set_pipe": 1, "wait_pipe": 4, "event_id": 0}
    assert all(type(v) is int for v in call.kwargs.values())


# -- arrays and prefetch -----------------------------------------------------------------------------------------


def test_arrays_hold_integers_bools_and_tasks():
    for dtype in (INT32, UINT8, DataType.BOOL, DataType.TASK_ID):
        assert ARRAY.create(4, dtype).type.dtype == dtype
    refused(lambda: ARRAY.create(4, FP32), "integer")
    for extent in (0, -1, scalar()):
        refused(lambda extent=extent: ARRAY.create(extent, INT32), "extent")
    for extent in (True, 4.0):
        refused(lambda extent=extent: ARRAY.create(extent, INT32), "extent must be an int", TypeError)


def test_prefetches_pull_one_contiguous_row():
    context = Var("c", PREFETCH.make_context().type)
    assert isinstance(PREFETCH.async_prefetch(tensor([1, 64]), context).type, ir.AsyncEventType)
    strided = ir.TensorType([1, 64], FP32, None, ir.TensorView([128, 2], ir.TensorLayout.ND))
    refused(lambda: PREFETCH.async_prefetch(Var("x", strided), context), "contiguous")
    refused(lambda: PREFETCH.async_prefetch(tensor([2, 64]), context), "but the last to be 1")
    refused(lambda: PREFETCH.async_prefetch(tensor([scalar()]), context), "static shape")


# -- between ranks -----------------------------------------------------------------------------------------------

GE = {"cmp": WaitCmp.Ge}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: create_op_call("pld.system.world_size", [scalar()]), "no positional arguments"),
        (lambda: create_op_call("pld.system.get_comm_ctx", [WINDOW], {"a": 1}), "no kwargs"),
        (lambda: create_op_call("pld.system.get_comm_ctx", [WINDOW, WINDOW]), "exactly 1 positional"),
        (lambda: PLD.system.get_comm_ctx(tensor([4])), "DistributedTensor"),
        (lambda: create_op_call("pld.system.get_comm_ctx", [tile([4])]), "DistributedTensor"),
        (lambda: PLD.system.rank(WINDOW), "CommCtx"),
        (lambda: PLD.system.notify(SIGNAL, 1, [0], 1, op=NotifyOp.Set), "offsets rank"),
        (lambda: PLD.system.notify(SIGNAL, 1, [0.5, 0], 1, op=NotifyOp.Set), "offsets 0 must be an integer"),
        (lambda: create_op_call("pld.system.notify", [SIGNAL, WINDOW, indices(0, 0), one(1)]), "peer must be a scalar"),
        (lambda: create_op_call("pld.system.notify", [SIGNAL, one(0), one(0), one(1)]), "offsets must be a tuple"),
        (lambda: create_op_call("pld.system.notify", [SIGNAL, one(0), indices(0, 0), one(1)], {"op": 2}), "op must be"),
        (lambda: PLD.system.defer_wait(WINDOW, [0, 0], 1, **GE), "signal dtype must be INT32"),
        (lambda: PLD.system.defer_wait(SIGNAL, [0, 0], 1, cmp=WaitCmp.Eq), "only supports WaitCmp.Ge"),
        (lambda: PLD.system.defer_wait(SIGNAL, [0, 0.5], 1, **GE), "offset 1 must be an integer or index scalar"),
        (lambda: PLD.system.defer_wait(SIGNAL, [0, 0], 1.5, **GE), "expected must be an integer or index scalar"),
        (lambda: PLD.system.defer_wait(SIGNAL, [0, 0], -1, **GE), r"expected must be in \[0, INT32_MAX\]"),
        (lambda: PLD.tensor.alloc_window_buffer([4, 0], dtype=FP32, name="b"), "must be positive"),
        (lambda: PLD.tensor.alloc_window_buffer([4, scalar(FP32)], dtype=FP32, name="b"), "integer scalars"),
        (lambda: PLD.tensor.window(WINDOW, [4], dtype=FP32), "Ptr"),
    ],
)
def test_signal_and_window_refusals(call, text):
    refused(call, text)


def test_window_sizes_are_integers():
    for size in (True, 1.5):
        refused(lambda size=size: PLD.tensor.alloc_window_buffer(size, name="b"), "sizes must be integers", TypeError)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: PLD.tile.remote_load(WINDOW, 1, [10, 0], [8, 32]), "reads past the end of dimension 0"),
        (lambda: PLD.tile.remote_load(WINDOW, 1, [0, 0], [8]), "shape rank"),
        (lambda: PLD.tile.remote_load(WINDOW, 1, [0, 0], [8, 32], [8, -1]), "valid_shape 1 is provably negative"),
        (lambda: PLD.tile.remote_load(WINDOW, 1, [0, 0], [8, 32], [8, 1.5]), "valid_shape 1 must be an integer scalar"),
        (lambda: PLD.tile.remote_load(WINDOW, 1, [0, 0], [8, 32], [9, 32]), "exceeds the window extent"),
        (lambda: PLD.tile.remote_store(tensor([8, 32]), WINDOW, 1, [0, 0]), "src_tile must be a TileType"),
        (lambda: PLD.tensor.remote_store(tile([8, 32]), WINDOW, 1, [0, 0]), r"pld\.tile\.remote_store"),
        (lambda: PLD.tensor.remote_store(WINDOW, WINDOW, 1, [0, 0]), r"pld\.tensor\.put"),
        (lambda: PLD.tile.remote_store(tile([2, 8, 32]), WINDOW, 1, [0, 0]), "src leading dimension 0 must be 1"),
        (lambda: PLD.tile.remote_store(tile([8, 32]), window([2, 16, 64]), 1, [0, 0, 40]), "region in dimension 2"),
        (lambda: PLD.tile.remote_store(tile([8, 32], UINT8), window([16, 64], UINT8), 1, [0, 0], atomic=AtomicType.Add),
         "requires an fp32/bf16/fp16/int32/int16/int8 dtype"),
        (lambda: PLD.tensor.put(WINDOW, 1, tensor([16, 64], FP16)), "element type"),
        (lambda: PLD.tensor.put(WINDOW, 1, WINDOW, [0, 0], [0, 0], [0, 8]), "positive"),
        (lambda: PLD.tensor.put(WINDOW, 1, WINDOW, [0, -1], [0, 0], [8, 8]), "dst_offsets dimension 1"),
        (lambda: create_op_call("pld.tensor.get", [WINDOW, one(1), WINDOW], {"atomic": 0}), "Unknown kwarg 'atomic'"),
        (lambda: PLD.tile.put(WINDOW, 1, WINDOW, tile([16, 64]), tile([16, 64], FP16)), "stage2 dtype must match"),
        (lambda: PLD.tile.put(WINDOW, 1, WINDOW, tile([1, 16, 64])), "2D VEC staging tile"),
    ],
)  # fmt: skip
def test_transfer_refusals(call, text):
    refused(call, text)


ROW, TARGET = tensor([1, 64]), window([2, 64])
BLOCKS, COUNTS, RECEIVED = window([8, 64]), tensor([2], INT32), window([2, 1], INT32, "r")


@pytest.mark.parametrize(
    ("call", "text", "error"),
    [
        (lambda: PLD.tensor.allreduce(window([16, 64], INT32), SIGNAL), "FP16 or FP32", ValueError),
        (lambda: PLD.tensor.allreduce(WINDOW, None), "signal cannot be None", TypeError),
        (lambda: PLD.tensor.allreduce(WINDOW, mode="ring"), "requires an explicit signal", ValueError),
        (lambda: PLD.tensor.allreduce(WINDOW, SIGNAL, core_num=True), "compile-time int", TypeError),
        (lambda: PLD.tensor.allreduce(WINDOW, SIGNAL, core_num=0), "must be positive", ValueError),
        (lambda: PLD.tensor.broadcast(WINDOW, SIGNAL, root=-1), "root rank must be non-negative", ValueError),
        (lambda: PLD.tensor.allgather(tensor([2, 64]), TARGET, SIGNAL), "one row", ValueError),
        (lambda: PLD.tensor.allgather(TARGET, TARGET, SIGNAL), "different buffers", ValueError),
        (lambda: PLD.tensor.allgather(ROW, TARGET, window([3, 1], INT32)), "must equal target dim 0", ValueError),
        (lambda: PLD.tensor.reduce_scatter(TARGET, SIGNAL, op=ReduceOp.Max), "must be ReduceOp.Sum", ValueError),
        (lambda: create_op_call("pld.tensor.all_to_all_v", [ROW, TARGET]), "requires 5 args", ValueError),
        (lambda: PLD.tensor.all_to_all_v(tensor([8, 64]), BLOCKS, SIGNAL, tensor([3], INT32), RECEIVED),
         "send_counts dim 0", ValueError),
        (lambda: PLD.tensor.all_to_all_v(tensor([8, 64]), BLOCKS, SIGNAL, COUNTS, window([3, 1], INT32)),
         "recv_counts dim 0", ValueError),
    ],
)  # fmt: skip
def test_collective_refusals(call, text, error):
    refused(call, text, error)


def test_collectives_return_their_window():
    assert PLD.tensor.allgather(ROW, TARGET, SIGNAL).type is TARGET.type
    assert PLD.tensor.all_to_all_v(tensor([8, 64]), BLOCKS, SIGNAL, COUNTS, RECEIVED).type is BLOCKS.type
    assert PLD.tensor.allreduce(WINDOW).kwargs == {"op": 0, "mode": "mesh", "core_num": 1}
    assert PLD.tensor.barrier(SIGNAL).type is SIGNAL.type
    assert PLD.system.notify(SIGNAL, 1, [0, 0], -1, op=NotifyOp.AtomicAdd).args[3].dtype == INT32
    assert PLD.system.defer_wait(SIGNAL, [scalar(), 0], scalar(), **GE).args[2].type.dtype == INDEX
