"""Registration, lookup, calls, binding of Python arguments, and the queries about operators."""

from __future__ import annotations

import inspect

import pytest
from operand_values import FP16, FP32, INT32, scalar, tensor, tile, valid_of
from pypto.errors import InternalError
from pypto.ir import AtomicType, Call, ConstBool, ConstInt, DataType, MakeTuple, MemorySpace, NotifyOp, Span
from pypto.ops import all_ops, create_op_call, find_op, get_op, is_op_registered, queries
from pypto.ops.kinds import Tile
from pypto.ops.memory_specs import vec
from pypto.ops.registry import _OPS, op, op_ref
from pypto.ops.rules import fresh_like
from pypto.ops.surface import ARRAY, PLD, SYSTEM, TENSOR, TILE

from pypto import ir

PLACE = Span("kernel.py", 12, 15)


def test_lookup():
    assert find_op("nope") is None and not is_op_registered("nope")
    with pytest.raises(ValueError, match="nope"):
        get_op("nope")
    assert {d.name for d in all_ops()} >= {"tile.add", "tensor.matmul", "system.fence"}


def test_a_definition_is_its_decorated_rule():
    @op("test.twice", family="test", memory=vec(1), pto="pto.ttwice", torch=lambda x: x + x)
    def twice(tile: Tile) -> ir.Type:
        """Twice the value."""
        return fresh_like(tile)

    try:
        definition = get_op("test.twice")
        assert (definition.doc, definition.pto, definition.min_operands) == ("Twice the value.", "pto.ttwice", 1)
        assert create_op_call("test.twice", [tile([4, 8])]).type.dtype == FP32
        with pytest.raises(ValueError, match="registered twice"):
            op("test.twice")(twice)
    finally:
        del _OPS["test.twice"]


def test_shapes_and_offsets_are_sequences_and_one_index_is_enough():
    x = tensor([16])
    assert TENSOR.read(x, 3).args[1].elements[0].value == 3
    with pytest.raises(TypeError, match="offsets must be a list or a tuple, got int"):
        TILE.load(x, 0, [8])
    with pytest.raises(TypeError, match="shape must be a list or a tuple, got int"):
        TENSOR.reshape(x, 16)


def test_index_tensors_take_index_scalars():
    n = ir.Var("n", ir.ScalarType(DataType.INDEX))
    assert TENSOR.write(tensor([4], DataType.INDEX), [0], n).args[2] is n
    with pytest.raises(ValueError, match="convert it first"):
        TENSOR.write(tensor([4], INT32), [0], n)


def test_calls_share_their_target():
    call = create_op_call("tile.add", [tile([4, 8]), tile([4, 8])], PLACE)
    assert isinstance(call, Call) and call.op is op_ref("tile.add") and call.span is PLACE


@pytest.mark.parametrize(
    ("args", "text"),
    [([], "exactly 2 positional"), ([tile([4, 8]), scalar()], "rhs must be a TileType"), ([tensor([4])] * 2, "lhs")],
)
def test_wrong_operands_are_value_errors_with_a_place(args, text):
    with pytest.raises(ValueError, match=text) as caught:
        create_op_call("tile.add", args, {}, PLACE)
    assert "kernel.py:12:15" in str(caught.value)


def test_attributes_are_checked():
    a = tensor([4, 4])
    with pytest.raises(TypeError, match=r"Kwarg 'a_trans' for operator 'tensor\.matmul' has incompatible type"):
        create_op_call("tensor.matmul", [a, a], {"a_trans": "yes"})
    with pytest.raises(ValueError, match="requires a 'mode' kwarg"):
        create_op_call("tensor.cast", [a], {"target_type": FP16})
    with pytest.raises(ValueError, match="no kwargs"):
        create_op_call("pld.system.world_size", [], {"x": 1})


def test_internal_errors_stay_internal_and_get_the_place():
    with pytest.raises(InternalError, match=r"kernel\.py:12:15") as caught:
        create_op_call("test.deduce_raises_internal", [scalar()], PLACE)
    assert "deduce_raises_internal" in caught.value.trace, "the trace ends where the error was raised first"
    with pytest.raises(TypeError, match=r"always fails at kernel\.py:12:15$"):
        create_op_call("test.deduce_raises_type", [scalar()], PLACE)


def test_compiler_only_operators():
    signal = ir.Var("s", ir.DistributedTensorType([2, 1], INT32))
    assert create_op_call("builtin.tensor.barrier", [signal]).type is signal.type
    with pytest.raises(ValueError, match="internal-only"):
        queries.create_op_call("builtin.tensor.barrier", [signal])


def test_memory_specs_and_effects():
    assert queries.get_op_memory_spec("tile.matmul") == {
        "input_constraints": [[MemorySpace.Left], [MemorySpace.Right]],
        "output_memory": MemorySpace.Acc,
    }
    assert queries.get_op_memory_spec("tensor.add") is None
    assert queries.op_has_declared_arg_effects("tile.store") and not queries.op_has_declared_arg_effects("tensor.add")
    assert queries.op_has_declared_arg_effect("pld.system.wait", 7)
    assert not queries.op_has_declared_arg_effect("tile.store", 0)
    assert ir.get_op("tensor.matmul").get_attr_keys() == ["out_dtype", "a_trans", "b_trans", "c_matrix_nz"]


def test_default_attributes_are_left_out_unless_kept():
    assert TILE.log(tile([4, 8]), high_precision=False).kwargs == {}
    assert TILE.store(tile([4, 8]), [0, 0], tensor([4, 8]), atomic=AtomicType.Add).kwargs == {"atomic": 1}
    assert TILE.load(tensor([4, 8]), [0, 0], [4, 8]).kwargs == {"target_memory": MemorySpace.Vec}
    assert TENSOR.matmul(tensor([4, 4]), tensor([4, 4])).kwargs == {
        "a_trans": False,
        "b_trans": False,
        "c_matrix_nz": False,
    }


def test_python_values_become_operands():
    call = TILE.load(tensor([64, 64]), (scalar(), 0), [16, 32], valid_shape=[8, 32])
    assert all(isinstance(a, MakeTuple) for a in call.args[1:]) and valid_of(call) == [8, 32]
    assert isinstance(TENSOR.read(tensor([8]), 3).args[1], MakeTuple)
    assert TILE.cast(tile([4, 8]), FP16.code()).type.dtype == FP16
    assert TILE.adds(tile([4, 8], INT32), True).args[1].value == 1
    assert isinstance(TILE.adds(tile([4, 8], INT32), ConstBool(True)).args[1], ConstBool)
    assert TILE.adds(tile([4, 8]), ir.ConstInt(3, INT32)).args[1].dtype == INT32


def test_a_span_may_stand_anywhere():
    a = tensor([8])
    assert TENSOR.div(a, a, PLACE).span is PLACE and TENSOR.exp(a, span=PLACE).span is PLACE
    line = inspect.currentframe().f_lineno + 1
    call = TENSOR.exp(a)
    assert (call.span.filename, call.span.begin_line) == (__file__, line)


def test_pops_take_their_type_from_the_caller():
    call = SYSTEM.tpop_from_aic(shape=[16, 32], dtype=FP32, split=1)
    assert call.type.dtype == FP32 and call.kwargs == {"split": 1}
    with pytest.raises(ValueError, match="together"):
        SYSTEM.tpop_from_aic(shape=[16, 32])


def test_lane_operators_need_a_region():
    with pytest.raises(RuntimeError, match="split_aiv"):
        TILE.aiv_shard(tile([16, 32]))
    assert valid_of(create_op_call("tile.aiv_shard", [tile([16, 32], valid=[10, 32])], {"split": 1})) == [5, 32]


def test_task_barrier_keeps_its_dependencies_as_an_attribute():
    task = ir.Var("t", ir.ScalarType(DataType.TASK_ID))
    assert SYSTEM.task_dummy(deps=[None, task]).attrs["manual_dep_edges"] == [task]


def test_arrays():
    array = ir.Var("a", ARRAY.create(4, INT32).type)
    assert ARRAY.update_element(array, 1, 5).type is array.type
    with pytest.raises(ValueError, match="outside the array"):
        ARRAY.get_element(array, 4)
    with pytest.raises(ValueError, match="requires a value of dtype"):
        ARRAY.update_element(array, 1, scalar(FP32))


def test_window_operators_want_windows():
    window = ir.Var("w", ir.DistributedTensorType([2, 1], INT32))
    call = PLD.system.notify(window, 1, [0, 0], 1, op=NotifyOp.Set)
    assert isinstance(call.args[1], ConstInt) and call.args[1].dtype == INT32 and call.kwargs == {"op": 1}
    with pytest.raises(ValueError, match="DistributedTensor"):
        PLD.system.notify(tensor([2, 1], INT32), 1, [0, 0], 1, op=NotifyOp.Set)
    with pytest.raises(ValueError, match="simple assignment"):
        PLD.tensor.alloc_window_buffer(64)
    sized = PLD.tensor.alloc_window_buffer([4, 8], dtype=FP32, name="room")
    assert (sized.args[0].value, sized.kwargs) == (128, {"name": "room"})


def test_transfers_check_their_region():
    window = ir.Var("w", ir.DistributedTensorType([16, 64], FP16))
    with pytest.raises(ValueError, match="must be provided together"):
        PLD.tensor.put(window, 1, window, dst_offsets=[0, 0])
    with pytest.raises(ValueError, match="requires both chunk_rows>0 and chunk_cols>0"):
        PLD.tensor.put(window, 1, window, pipeline=True, chunk_rows=4)
    with pytest.raises(ValueError, match="dst subregion dimension 0 exceeds dst shape"):
        PLD.tensor.put(window, 1, window, [12, 0], [0, 0], [8, 64])


@pytest.mark.parametrize("definition", list(all_ops()), ids=lambda d: d.name)
def test_definitions_are_consistent(definition):
    assert definition.doc and definition.family
    count = len(definition.params)
    indices = [*definition.no_alias_args, *(definition.effects or {})]
    if definition.result_is_arg is not None:
        indices.append(definition.result_is_arg)
        assert definition.declares_effects, "an in-place operator declares what it does to the operand"
    variadic = count and definition.params[-1].variadic
    assert variadic or all(i < count for i in indices)
    if definition.converts_to not in (None, "custom"):
        assert is_op_registered(definition.converts_to)
    if definition.scalar_form:
        assert is_op_registered(definition.scalar_form)


def test_a_region_may_follow_a_single_stage():
    window, stage = ir.Var("w", ir.DistributedTensorType([16, 64], FP16)), tile([1, 64], FP16)
    named = PLD.tile.put(window, 1, window, stage, None, [3, 0], [1, 0], [1, 64])
    direct = PLD.tile.put(window, 1, window, stage, [3, 0], [1, 0], [1, 64])
    assert len(named.args) == len(direct.args) == 7 and direct.kwargs == {"atomic": 0}
    assert PLD.tile.put(window, 1, window, tile([16, 64], FP16), AtomicType.Add).kwargs == {"atomic": 1}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"valid_shape": [1.5, 8]}, r"valid_shape\[0\] to be an integer extent"),
        ({"valid_shape": [1, 8], "transpose": True}, "does not support a valid_shape together with transpose"),
        ({"shapes": [ir.Var("n", ir.ScalarType(DataType.INDEX)), 8]}, "Pass a dynamic row count through valid_shape"),
    ],
)
def test_row_gathers_are_checked_where_they_are_written(options, text):
    accumulator, source = tensor([16, 8]), tensor([64, 8])
    with pytest.raises(ValueError, match=text):
        TENSOR.gather_row(accumulator, source, [0, 0], [0, 0], **{"shapes": [4, 8], **options})


def test_transposed_tiles_live_in_mat():
    with pytest.raises(ValueError, match="only for a 2D tile with target_memory=Mat"):
        TILE.create([16, 32], FP16, MemorySpace.Vec, True)
