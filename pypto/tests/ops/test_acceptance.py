"""The acceptance examples of the operator chapter that need no device, by number."""

from __future__ import annotations

import math

import pytest
from operand_values import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
    numbers,
    scalar,
    shape_of,
    tensor,
    tile,
    valid_of,
)
from pypto.ir import AtomicType, ConstFloat, ConstInt, DataType, MemorySpace, NotifyOp, PadValue, TileLayout
from pypto.ops import create_op_call
from pypto.ops.queries import get_op_arg_effect
from pypto.ops.surface import TENSOR, TILE, UNIFIED

from pypto import ir

MAT, LEFT, RIGHT, ACC = MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc


def test_01_add_of_tiles_lives_in_vec():
    call = TILE.add(tile([4, 8]), tile([4, 8]))
    assert (shape_of(call), call.type.dtype, call.type.memory_space) == ([4, 8], FP32, MemorySpace.Vec)


def test_02_03_a_number_takes_the_element_type():
    call = UNIFIED["add"](tile([4, 8], INT32), 5)
    assert (call.op.name, call.args[1].dtype, call.args[1].value) == ("tile.adds", INT32, 5)
    rhs = UNIFIED["add"](tile([4, 8], FP16), 5).args[1]
    assert isinstance(rhs, ConstFloat) and rhs.dtype == FP16


def test_04_05_06_result_types_of_scalar_forms():
    call = TILE.adds(tile([4, 8], INT32), 2.5)
    assert call.type.dtype == INT32 and call.args[1].dtype == FP32
    assert TENSOR.muls(tensor([4], INT32), 2.5).type.dtype == FP32
    assert TENSOR.subs(tensor([4], INT16), 2.5).type.dtype == INT16
    assert TILE.muls(tile([4, 8], BF16), 0.0).type.dtype == BF16


def test_07_an_index_variable_is_no_element():
    with pytest.raises(ValueError, match=r"index.*pl\.cast"):
        TILE.adds(tile([4, 8], INT32), scalar())


def test_08_incompatible_shapes_are_printed():
    with pytest.raises(ValueError, match=r"\[4, 8\].*\[3, 8\]"):
        TENSOR.add(tensor([4, 8]), tensor([3, 8]))


def test_09_a_packed_mask_rounds_rows_to_32_bytes():
    call = TILE.cmp(tile([16, 16]), tile([16, 16]))
    assert (shape_of(call), call.type.dtype, valid_of(call)) == ([16, 32], UINT8, [16, 2])
    assert shape_of(TILE.cmp(tile([8, 257]), tile([8, 257]))) == [8, 64]


def test_11_sels_keeps_the_bits_of_an_unsigned_constant():
    mask, source = TILE.cmps(tile([16, 32], UINT8), 1), tile([16, 32], UINT8)
    call = TILE.sels(mask, source, tile([1, 8], DataType.UINT32), 0x82)
    assert isinstance(call.args[3], ConstInt)
    assert (call.args[3].dtype, call.args[3].value) == (INT8, -126)


def test_12_row_sum_gives_a_column():
    call = TILE.row_sum(tile([8, 32], valid=[5, 32]), tile([8, 32]))
    assert (shape_of(call), valid_of(call)) == ([8, 1], [5, 1])
    assert call.type.get_effective_tile_view().blayout is TileLayout.col_major


def test_13_row_min_names_its_element_types():
    with pytest.raises(ValueError, match=r"\{INT16, INT32, FP16, FP32\}"):
        TILE.row_min(tile([8, 32], BF16), tile([8, 32], BF16))


def test_14_arg_reduction_scratch_matches_exactly():
    with pytest.raises(ValueError, match="exactly match"):
        TILE.row_argmax(tile([8, 32]), tile([8, 64]))


def test_15_column_sum_prints_the_tree_order_only_with_scratch():
    from pypto.ops import get_op

    text = get_op("tile.col_sum").pto_attrs
    assert text(TILE.col_sum(tile([8, 32]))) == ""
    assert text(TILE.col_sum(tile([8, 32]), tile([8, 32]))) == "{isBinary = true}"


def test_16_a_cast_changes_the_type():
    with pytest.raises(ValueError, match="same-dtype cast is not a valid operation"):
        TILE.cast(tile([4, 8]), FP32)


@pytest.mark.parametrize(
    ("mode", "up", "down"), [("rint", 2, -2), ("round", 3, -3), ("floor", 2, -3), ("ceil", 3, -2), ("trunc", 2, -2)]
)
def test_17_rounding_modes(mode, up, down):
    torch = pytest.importorskip("torch")
    from pypto.ops.torch_values import cast
    from pypto.ops.unary import rounding_mode

    result = cast(torch.tensor([2.5, -2.5]), INT32, rounding_mode(mode))
    assert result.tolist() == [up, down]


def test_18_precise_division_of_integers():
    with pytest.raises(ValueError, match="high_precision only for FP16 or FP32"):
        TILE.div(tile([4, 8], INT32), tile([4, 8], INT32), high_precision=True)


def test_19_tensor_only_flags_on_tiles():
    with pytest.raises(TypeError, match="high_precision"):
        UNIFIED["rsqrt"](tile([4, 8]), high_precision=True)
    with pytest.raises(TypeError, match="b_trans"):
        UNIFIED["matmul"](tile([16, 32], FP16, space=LEFT), tile([32, 64], FP16, space=RIGHT), b_trans=True)


def test_20_fillpad_is_fully_valid_and_keeps_the_policy():
    call = TILE.fillpad(tile([4, 8], valid=[2, 8]), PadValue.min)
    assert valid_of(call) == [4, 8] and call.type.get_effective_tile_view().pad is PadValue.min


@pytest.mark.parametrize(("value", "error"), [(True, TypeError), (math.nan, ValueError), (3, ValueError)])
def test_21_pad_values(value, error):
    with pytest.raises(error):
        TILE.fillpad(tile([4, 8]), value)


def test_22_23_slices_cut_the_region_and_stay_inside():
    assert valid_of(TILE.slice(tile([64, 64], valid=[40, 50]), [32, 32], [24, 32])) == [16, 18]
    with pytest.raises(ValueError, match="reads past the end of dimension 0"):
        TILE.slice(tile([64, 64]), [32, 64], [48, 0])


def test_24_reshape_maps_whole_rows():
    assert valid_of(TILE.reshape(tile([8, 16], valid=[5, 16]), [16, 8])) == [10, 8]
    with pytest.raises(ValueError, match="do not fill a whole number of rows"):
        TILE.reshape(tile([8, 16], valid=[5, 16]), [4, 32])


def test_25_matmul_accumulates_wide():
    call = TILE.matmul(tile([16, 32], FP16, space=LEFT), tile([32, 64], FP16, space=RIGHT))
    assert (shape_of(call), call.type.dtype, call.type.memory_space) == ([16, 64], FP32, ACC)
    ints = TILE.matmul(tile([16, 32], INT8, space=LEFT), tile([32, 64], INT8, space=RIGHT))
    assert ints.type.dtype == INT32


def test_26_a_true_condition_restarts_the_accumulator():
    torch = pytest.importorskip("torch")
    from pypto.ops import get_op

    value = get_op("tile.matmul_acc").torch
    seven, a, b = torch.full((2, 2), 7.0), torch.eye(2), torch.ones(2, 2)
    assert value(seven, a, b, True).tolist() == (a @ b).tolist()
    assert value(seven, a, b, False).tolist() == (7 + a @ b).tolist()


def test_27_tensor_matmul_shapes():
    assert shape_of(TENSOR.matmul(tensor([128, 64]), tensor([128]), a_trans=True)) == [64]
    with pytest.raises(ValueError, match="lhs K=128 and rhs K=64"):
        TENSOR.matmul(tensor([128, 64]), tensor([64]), a_trans=True)


def test_31_42_dimension_of_scatters():
    update = TENSOR.scatter_update(tensor([8, 4]), -2, tensor([1, 2], INT32), tensor([2, 4]))
    assert shape_of(update) == [8, 4]
    with pytest.raises(ValueError, match="dim=-1"):
        TENSOR.scatter(tensor([8, 4]), dim=0, index=tensor([8, 2], INT32), src=tensor([8, 2]))


@pytest.mark.parametrize("shape", [[2, 4], [4, 1]])
def test_33_a_sequence_is_one_row(shape):
    assert shape_of(TILE.ci(5, [1, 4])) == [1, 4]
    with pytest.raises(ValueError):
        TILE.ci(5, shape)


def test_38_a_row_is_gathered_in_place():
    destination = tile([16, 32], FP16, space=MAT)
    call = TILE.gather_row(destination, tensor([64, 32], FP16), [3, 0], [7, 0], [1, 32])
    assert call.type is destination.type


def test_39_41_effects_follow_the_attributes():
    assert get_op_arg_effect("tile.store", 2) is ir.ArgEffect.Write
    assert get_op_arg_effect("tile.store", 2, atomic=int(AtomicType.Add)) is ir.ArgEffect.ReadWrite
    assert get_op_arg_effect("pld.system.notify", 0) is ir.ArgEffect.ReadWrite
    assert get_op_arg_effect("pld.system.notify", 0, op=NotifyOp.Set) is ir.ArgEffect.Write


def test_43_only_division_compares_regions():
    x, y = tile([4, 8], valid=[2, 8]), tile([4, 8], valid=[3, 8])
    assert valid_of(TILE.add(x, y)) == [2, 8]
    with pytest.raises(ValueError, match="same valid_shape"):
        TILE.div(x, y)


def test_44_left_layout_depends_on_the_producer():
    source = tile([32, 32], FP16, space=MAT)
    moved = TILE.move(source, LEFT).type.get_effective_tile_view()
    cut = TILE.extract(source, 0, 0, [16, 16], target_memory=LEFT).type.get_effective_tile_view()
    assert (moved.blayout, moved.slayout) == (TileLayout.col_major, TileLayout.row_major)
    assert (cut.blayout, cut.slayout) == (TileLayout.row_major, TileLayout.row_major)


def test_45_reduced_axes_of_rank_three():
    assert shape_of(TILE.col_sum(tile([2, 8, 32]))) == [1, 8, 32]
    assert shape_of(TILE.row_sum(tile([2, 8, 32]), tile([2, 8, 32]))) == [2, 8, 1]


def test_46_assembly_grows_one_box():
    assert valid_of(TILE.assemble(tile([16, 16], valid=[0, 0]), tile([8, 16]), [0, 0])) == [8, 16]
    assert valid_of(TILE.assemble(tile([16, 16], valid=[8, 16]), tile([4, 16]), [8, 0])) == [12, 16]
    with pytest.raises(ValueError, match="gap"):
        TILE.assemble(tile([16, 16], valid=[4, 16]), tile([4, 16]), [8, 0])


def test_47_a_store_stays_inside():
    with pytest.raises(ValueError, match=r"offset 60 \+ extent 5"):
        TILE.store(tile([8, 32], valid=[5, 20]), [60, 0], tensor([64, 64]))


def test_48_matmul_needs_one_type():
    with pytest.raises(ValueError, match="identical lhs and rhs data types"):
        TILE.matmul(tile([16, 32], FP16, space=LEFT), tile([32, 64], BF16, space=RIGHT))


def test_49_a_clamped_load_is_cut_at_the_edge():
    assert valid_of(TILE.load(tensor([60, 64]), [32, 0], [32, 32], clamp=True)) == [28, 32]
    with pytest.raises(ValueError, match="clamp=True"):
        TILE.load(tensor([60, 64]), [32, 0], [32, 32])


def test_50_unknown_attributes():
    with pytest.raises(ValueError, match="Unknown kwarg 'zz'"):
        create_op_call("tensor.matmul", [tensor([4, 4]), tensor([4, 4])], {"zz": 1})
    assert create_op_call("tile.add", [tile([4, 8]), tile([4, 8])], {"zz": 1}).kwargs == {"zz": 1}


def test_slices_of_rank_two_keep_their_numbers():
    assert numbers(TENSOR.slice(tensor([64, 64]), [1, 64], [scalar(), 0], drop_dims=[0]).type.shape) == [64]
