"""Calls of every operator survive printing and parsing: name, operands, attributes and deduced type."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import pypto.language as pl  # noqa: E402
from operand_values import FP16, FP32, INT32, INT64, UINT32, scalar, tensor, tile, window  # noqa: E402
from operator_samples import SAMPLES, Draw  # noqa: E402
from pypto.ir import (  # noqa: E402
    DataType,
    FunctionType,
    MemorySpace,
    NotifyOp,
    ParamDirection,
    PipeType,
    TileType,
    Var,
    WaitCmp,
)
from pypto.ops import create_op_call  # noqa: E402
from pypto.ops.surface import ARRAY, PLD, PREFETCH, SYSTEM, TENSOR, TILE  # noqa: E402

from pypto import ir  # noqa: E402

PLACE = ir.Span.unknown()
WINDOW, SIGNAL, SMALL = window([16, 64]), window([2, 1], INT32, "s"), window([2, 64])
STAGE, X, POSITIONS = tile([16, 64]), tile([16, 32]), tensor([1, 8], INT32, name="i")
CONTEXT = Var("c", PREFETCH.make_context().type)
COMMUNICATION = Var("g", PLD.system.get_comm_ctx(WINDOW).type)
NUMBERS = Var("a", ARRAY.create(4, INT32).type)

#: Operators without a torch meaning, or whose result has several parts.
CALLS = {
    "tile.gather_compare": lambda: TILE.gather_compare(X, 5, X, cmp_mode="gt", out_cols=8, count_dtype=UINT32),
    "tensor.gather_compare": lambda: TENSOR.gather(tensor([16, 32]), kvalue=1, cmp_mode="eq", out_cols=4, offset=2),
    "tile.mgather": lambda: TILE.mgather(tensor([64, 32], name="m"), tile([1, 8], INT32), gather_oob="zero"),
    "tile.mgather to Mat": lambda: TILE.mgather(
        tensor([64, 32], name="m"),
        POSITIONS,
        "elem",
        target_memory=MemorySpace.Mat,
        scratch=tensor([16, 8], name="s"),
        valid_shape=[1, 6],
    ),
    "tile.tquant_mx": lambda: TILE.quant_mx(tile([16, 64])),
    "tile.tget_scale_addr": lambda: TILE.tget_scale_addr(
        tile([128, 2], DataType.FP8E8M0, space=MemorySpace.LeftScale, name="s"),
        tile([128, 64], DataType.FP8E4M3FN, space=MemorySpace.Left),
    ),
    "tile.aiv_shard": lambda: create_op_call("tile.aiv_shard", [X], {"split": 1, "lane_stride": 8}),
    "tile.aic_gather": lambda: create_op_call("tile.aic_gather", [X], {"split": 2}),
    "tensor.aiv_shard": lambda: create_op_call("tensor.aiv_shard", [tensor([16, 32])], {"split": 1}),
    "tensor.aic_gather": lambda: create_op_call("tensor.aic_gather", [tensor([16, 32])], {"split": 0}),
    "tile.tpop_from_aic": lambda: TILE.tpop_from_aic(
        result_type=TileType([16, 32], FP16, None, None, MemorySpace.Vec), split=1, id=2
    ),
    "tile.get_block_idx": TILE.get_block_idx,
    "tensor.get_subblock_idx": TENSOR.get_subblock_idx,
    "system.import_peer_buffer": lambda: SYSTEM.import_peer_buffer(name="b", peer_func="f"),
    "system.reserve_buffer": lambda: SYSTEM.reserve_buffer(name="b", size=64),
    "system.task_invalid": SYSTEM.task_invalid,
    "system.task_is_valid": lambda: SYSTEM.task_is_valid(scalar(DataType.TASK_ID)),
    "array.create": lambda: ARRAY.create(4, INT32),
    "array.get_element": lambda: ARRAY.get_element(NUMBERS, 1),
    "array.update_element": lambda: ARRAY.update_element(NUMBERS, scalar(), 5),
    "prefetch.make_context": PREFETCH.make_context,
    "prefetch.async_prefetch": lambda: PREFETCH.async_prefetch(tensor([1, 64]), CONTEXT),
    "prefetch.session": lambda: PREFETCH.session(CONTEXT),
    "pld.system.get_comm_ctx": lambda: PLD.system.get_comm_ctx(WINDOW),
    "pld.system.rank": lambda: PLD.system.rank(COMMUNICATION),
    "pld.tile.remote_load": lambda: PLD.tile.remote_load(WINDOW, scalar(INT32), [8, 0], [16, 64], [8, 64]),
    "pld.tensor.allreduce": lambda: PLD.tensor.allreduce(WINDOW, SIGNAL, core_num=2),
    "pld.tensor.barrier": lambda: PLD.tensor.barrier(SIGNAL),
    "pld.tensor.broadcast": lambda: PLD.tensor.broadcast(WINDOW, SIGNAL, root=1),
    "pld.tensor.allgather": lambda: PLD.tensor.allgather(tensor([1, 64]), SMALL, SIGNAL),
    "pld.tensor.reduce_scatter": lambda: PLD.tensor.reduce_scatter(SMALL, SIGNAL),
    "pld.tensor.all_to_all": lambda: PLD.tensor.all_to_all(tensor([2, 64]), SMALL, SIGNAL),
}
#: Operators called for their effect: statements of their own.
STATEMENTS = {
    "tile.tpush_to_aiv": lambda: SYSTEM.tpush_to_aiv(X, split=3, lane_stride=8, id=1),
    "tile.tpush_to_aic": lambda: SYSTEM.tpush_to_aic(X, split=1),
    "system.tfree_to_aic": lambda: SYSTEM.tfree_to_aic(X, id=1),
    "system.aic_initialize_pipe": lambda: SYSTEM.aic_initialize_pipe(dir_mask=3, slot_size=512, slot_num=4, id=1),
    "system.aiv_initialize_pipe": lambda: SYSTEM.aiv_initialize_pipe(scalar(INT32), dir_mask=1, slot_size=512),
    "system.sync_src": lambda: SYSTEM.sync_src(set_pipe=PipeType.MTE2, wait_pipe=PipeType.V, event_id=3),
    "system.bar_all": SYSTEM.bar_all,
    "system.fence": SYSTEM.fence,
    "system.cacheinvalid": SYSTEM.cacheinvalid,
    "system.cacheinvalid of a region": lambda: SYSTEM.cacheinvalid(tensor([4, 8]), [1, 8], [scalar(), 0]),
    "system.syncall": lambda: SYSTEM.syncall(core_type="aiv_only"),
    "system.syncall soft": lambda: SYSTEM.syncall(mode="soft", gm_workspace=tensor([16], INT32), used_cores=4),
    "system.sync_set": lambda: SYSTEM.sync_set(3, pipe=PipeType.V, ffts_mode=1, core_type="aiv"),
    "system.sync_wait": lambda: SYSTEM.sync_wait(scalar(), pipe=PipeType.M),
    "system.set_ffts": lambda: SYSTEM.set_ffts(tensor([256], INT64)),
    "pld.system.notify": lambda: PLD.system.notify(SIGNAL, 1, [scalar(), 0], -1, op=NotifyOp.Set),
    "pld.system.wait": lambda: PLD.system.wait(SIGNAL, [0, 0], 1, cmp=WaitCmp.Ge),
    "pld.tile.remote_store": lambda: PLD.tile.remote_store(X, WINDOW, 1, [0, 0], atomic=ir.AtomicType.Add),
    "pld.tensor.put": lambda: PLD.tensor.put(WINDOW, 1, tensor([16, 64]), chunk_rows=4, chunk_cols=32, pipeline=True),
    "pld.tensor.get": lambda: PLD.tensor.get(tensor([16, 64]), 1, WINDOW, [0, 0], [8, 0], [8, 64]),
    "pld.tile.put": lambda: PLD.tile.put(WINDOW, 1, tensor([16, 64]), STAGE, tile([16, 64], name="u")),
    "pld.tile.get": lambda: PLD.tile.get(tensor([16, 64]), 1, WINDOW, tile([4, 64]), None, [0, 0], [0, 0], [4, 64]),
}


def variables(expr):
    if isinstance(expr, Var):
        return [expr]
    return [v for member in getattr(expr, "elements", ()) for v in variables(member)]


def program_of(call, *, bound=True):
    """A program of one function that makes the call and, when it has a value, binds it."""
    parameters = list({id(v): v for a in call.args for v in variables(a)}.values())
    if bound:
        result = Var("result", call.type, PLACE)
        statements = [ir.AssignStmt(result, call, PLACE), ir.ReturnStmt([result], PLACE)]
    else:
        statements = [ir.EvalStmt(call, PLACE)]
    returns = [call.type] if bound else []
    body = ir.SeqStmts(statements, PLACE) if bound else statements[0]
    arguments = [(p, ParamDirection.In) for p in parameters]
    function = ir.Function("kernel", arguments, returns, body, PLACE, FunctionType.InCore)
    return ir.Program([function], "P", PLACE)


def reread(call, *, bound=True):
    """The call after printing and parsing; the text of what was parsed is the same text again."""
    text = ir.python_print(program_of(call, bound=bound))
    parsed = pl.parse(text)
    again = ir.python_print(parsed)
    assert ir.python_print(pl.parse(again)) == again
    body = next(iter(parsed.functions.values())).body
    statement = body.stmts[0] if isinstance(body, ir.SeqStmts) else body
    return statement.value if bound else statement.expr


def check(call, back):
    assert back.op.name == call.op.name
    assert len(back.args) == len(call.args)
    assert call.kwargs.items() <= back.kwargs.items()  # the surface writes some defaults out
    assert ir.structural_equal(back.type, call.type, enable_auto_mapping=True)


@pytest.mark.parametrize("choice", [0, 1, 3])
@pytest.mark.parametrize("name", SAMPLES)
def test_values(name, choice):
    call = SAMPLES[name](Draw(4, 16, choice)).call()
    check(call, reread(call))


@pytest.mark.parametrize("name", CALLS)
def test_other_values(name):
    call = CALLS[name]()
    back = reread(call)
    check(call, back)
    assert back.kwargs == call.kwargs


@pytest.mark.parametrize("name", STATEMENTS)
def test_effects(name):
    call = STATEMENTS[name]()
    back = reread(call, bound=False)
    check(call, back)
    assert back.kwargs == call.kwargs


def test_numbers_keep_their_element_type():
    for call in (TILE.adds(X, 3), TILE.adds(tile([16, 32], INT32), 2.5), TILE.sels(tile([16, 32], UINT32), X, X, 9)):
        back = reread(call)
        for mine, theirs in zip(call.args, back.args):
            if not isinstance(mine, Var):
                assert (type(theirs), theirs.dtype, theirs.value) == (type(mine), mine.dtype, mine.value)
    assert reread(TILE.lrelu(tile([16, 32], FP16), 1)).args[1].dtype == FP32
