"""What operators that create, move, view, multiply, pick and sort accept, refuse and give."""

from __future__ import annotations

import math

import pytest
from operand_values import (
    BF16,
    FP4,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT32,
    indices,
    scalar,
    shape_of,
    tensor,
    tile,
    valid_of,
)
from pypto.ir import DataType, MemorySpace, PadValue, TileLayout
from pypto.ops import create_op_call
from pypto.ops.surface import TENSOR, TILE, UNIFIED

MAT, LEFT, RIGHT, ACC, VEC = MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Vec
ROW, COL = TileLayout.row_major, TileLayout.col_major
E8, F8 = DataType.FP8E8M0, DataType.FP8E4M3FN


def refused(call, text, error=ValueError):
    with pytest.raises(error, match=text):
        call()


def layout_of(call):
    view = call.type.get_effective_tile_view()
    return view.blayout, view.slayout, view.fractal


# -- creation ----------------------------------------------------------------------------------------------------


def test_layout_of_created_tiles():
    assert layout_of(TILE.create([8, 1], FP32)) == (COL, TileLayout.none_box, 512)
    assert layout_of(TILE.create([32, 32], FP16, MAT)) == (COL, ROW, 512)
    assert layout_of(TILE.create([32, 32], FP16, MAT, transpose=True)) == (ROW, COL, 512)
    assert layout_of(TILE.create([32, 32], FP16, MAT, flat_layout=True)) == (ROW, TileLayout.none_box, 512)
    assert create_op_call("tile.create", [indices(4, 8)], {"dtype": FP32}).type.memory_space is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.create([scalar(), 8], FP32), "compile-time constant"),
        (lambda: TENSOR.create_l1([16, 0], FP32), "positive compile-time ConstInt"),
        (lambda: TENSOR.create_l1([scalar(), 8], FP32), "positive compile-time ConstInt"),
        (lambda: TILE.create([16, 2], E8, MemorySpace.LeftScale), "target_memory=LeftScale/RightScale"),
        (lambda: TILE.create([32, 32], FP16, flat_layout=True), "flat_layout=true only for target_memory=Mat"),
        (lambda: TILE.create([32, 32], FP16, MAT, True, flat_layout=True), "exclude each other"),
        (lambda: TILE.ci(5, [1, 8], dtype=FP32), "INT16, INT32, UINT16, UINT32"),
        (lambda: TILE.ci(5, [8, 1]), "innermost dimension"),
        (lambda: TENSOR.ci(5, [2, 8]), "leading dimensions must be 1"),
        (lambda: TENSOR.ci(scalar(INT16), [1, 8]), "start.*dtype"),
        (lambda: TILE.ci(1.5, [1, 8]), "start.*dtype"),
        (lambda: TILE.tri(1, [8]), "2D shape"),
        (lambda: TILE.tri(scalar(INT64), [8, 8]), "INT32 diagonal"),
        (lambda: TILE.tri(1, [8, 8], [0, 8]), "must be positive"),
        (lambda: TILE.tri(1, [8, 8], [9, 8]), "exceeds dimension 0"),
        (lambda: TILE.random(1, 2, 3, 4, 5, 6, [4, 8], rounds=8), "rounds to be 7 or 10"),
        (lambda: TENSOR.random(1, 2, 3, 4, 5, 6, [8]), "2D shape"),
        (lambda: TILE.random(1.5, 2, 3, 4, 5, 6, [4, 8]), "integer keys"),
        (lambda: TENSOR.create([4], FP32, init_value=math.nan), "finite"),
        (lambda: TENSOR.create([4], FP32, init_value=2**53 + 1), "2\\*\\*53"),
        (lambda: create_op_call("tensor.create", [indices(4)], {"dtype": FP32, "init_value": math.inf}), "finite"),
    ],
)
def test_creation_refusals(call, text):
    refused(call, text)


# -- extents and offsets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.load(tensor([64, 64]), [0.5, 0], [32, 32]), "tile.load: offsets 0 must be an integer scalar"),
        (lambda: TILE.load(tensor([64, 64]), [0, scalar(FP32)], [32, 32]), "offsets 1 .*got fp32"),
        (lambda: TENSOR.slice(tensor([64, 64]), [32, 1.5], [0, 0]), "tensor.slice: shape 1 must be an integer"),
        (lambda: TILE.store(tile([8, 8]), [0, tile([4, 4])], tensor([64, 64])), "offsets 1 .*got TileType"),
        (lambda: TENSOR.full([scalar(DataType.BOOL), 4], FP32, 0), "shape 0 .*got bool"),
        (lambda: TILE.set_validshape(tile([4, 8]), 1.5, 8), "integer valid_rows, got fp32"),
    ],
)
def test_extents_and_offsets_are_integers(call, text):
    refused(call, text)


def test_windows_of_packed_elements_start_at_a_whole_byte():
    for call in (
        lambda c: TILE.load(tensor([64, 64], FP4), [0, c], [32, 32]),
        lambda c: TILE.slice(tile([64, 64], FP4), [32, 32], [0, c]),
        lambda c: TENSOR.slice(tensor([64, 64], FP4), [32, 32], [0, c]),
    ):
        assert shape_of(call(2)) == [32, 32]
        refused(lambda call=call: call(1), "whole byte, got column 1")


# -- movement and views ------------------------------------------------------------------------------------------


def test_loads_cut_the_region_of_their_source():
    source = tensor([64, 64], valid=[40, 50])
    assert valid_of(TILE.load(source, [24, 32], [32, 32])) == [16, 18]
    assert valid_of(TILE.load(source, [48, 32], [16, 32])) == [0, 18]
    assert valid_of(TILE.load(tensor([64, 64]), [40, 0], [32, 32], [24, 32])) == [24, 32]
    refused(lambda: TILE.load(source, [-1, 0], [32, 32], clamp=True), "provably negative")
    refused(lambda: TILE.load(source, [0, 0], [32, 32], [33, 32]), "exceeds the window extent")
    refused(lambda: TILE.load(source, [0, 0], [32, 32], valid_shapes=[8, 8]), "valid_shapes", TypeError)
    refused(lambda: TILE.load(source, [0, 0], [32, 32], target_memory=LEFT), "Vec or Mat")


@pytest.mark.parametrize(
    ("source", "target", "layout"),
    [
        (tile([32, 32], FP16, space=MAT), LEFT, (COL, ROW, 512)),
        (tile([32, 1], FP16, space=MAT), RIGHT, (ROW, COL, 512)),
        (tile([32, 32], space=ACC), VEC, (COL, ROW, 512)),
        (tile([1, 32], space=MAT), MemorySpace.Bias, (COL, ROW, 512)),
        (tile([32, 32]), ACC, (COL, ROW, 1024)),
        (tile([32, 32]), VEC, (ROW, TileLayout.none_box, 512)),
    ],
)
def test_layout_after_a_move(source, target, layout):
    assert layout_of(TILE.move(source, target)) == layout


def test_element_access():
    assert TILE.write(tile([4, 8], FP16), [1, 2], 1).args[2].dtype == FP16
    refused(lambda: TILE.read(tile([4, 8], space=MAT), [0, 0]), "Vec tiles only")
    refused(lambda: TILE.read(tile([4, 8]), [0, 0, 0]), "requires 2 indices")
    refused(lambda: TILE.read(tile([4, 8]), [0.5, 0]), "integer indices")
    refused(lambda: TILE.write(tile([4, 8], INT32), [1, 2], 1.5), "value of dtype int32")


def test_dropped_axes_are_unit_axes():
    assert shape_of(TILE.slice(tile([4, 1, 64]), [1, 1, 32], [0, 0, 0], drop_dims=[-2])) == [1, 32]
    refused(lambda: TILE.slice(tile([4, 64]), [2, 32], [0, 0], drop_dims=[0]), "static unit dimension")
    unsure = tile([4, 64], valid=[scalar(), 64])
    refused(lambda: TILE.slice(unsure, [1, 32], [0, 0], drop_dims=[0]), "not provably 1")
    refused(lambda: TENSOR.slice(tensor([4, 4]), [1, 1], [0, 0], drop_dims=[0, 1]), "cannot erase every dimension")
    refused(lambda: UNIFIED["slice"](tile([4, 4]), [2, 2], [0, 0], clamp=True), "not supported for a Tile", TypeError)


def test_reinterpreted_extents_follow_the_contiguous_axis():
    assert shape_of(TILE.reinterpret_view(tile([8, 1]), FP16)) == [16, 1]
    assert shape_of(TILE.reinterpret_view(tile([8, 4]), FP16)) == [8, 8]
    refused(lambda: TILE.reinterpret_view(tile([4, 7], FP16), FP32), "not divisible by")
    refused(lambda: TILE.reinterpret_view(tile([32, 32], space=MAT), INT32), "only supports flat tiles")
    refused(lambda: TILE.reinterpret_view(tile([4, 32], UINT8), F8), "does not support target dtype")
    refused(lambda: TILE.reinterpret_view(tile([4, 8]), FP32), "differ")


# -- products ----------------------------------------------------------------------------------------------------

A, B = tile([16, 32], FP16, space=LEFT), tile([32, 64], FP16, space=RIGHT)
ROW_OPERAND = tile([1, 32], FP16, space=LEFT)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.matmul(A, tile([16, 64], FP16)), "matching physical inner dimensions"),
        (lambda: TILE.matmul(A, tile([32, 64], FP16, valid=[20, 64])), "cover lhs valid K"),
        (lambda: TILE.matmul_acc(tile([16, 64], valid=[10, 64]), A, B), "acc valid M to cover lhs valid M"),
        (lambda: TILE.matmul_acc(tile([16, 64]), A, B, scalar(INT32)), "BOOL"),
        (lambda: TILE.matmul_bias(A, B, tile([1, 64], FP16)), "requires bias dtype fp32"),
        (lambda: TILE.matmul_bias(A, B, tile([1, 64], valid=[1, 32])), "bias valid N"),
        (lambda: TILE.gemv(A, B), "exactly one row"),
        (lambda: TILE.gemv(tile([1, 32], INT16), tile([32, 64], INT16)), "supports only INT8"),
        (lambda: TILE.gemv(ROW_OPERAND, B, "last"), "acc_phase"),
        (lambda: TILE.gemv_acc(tile([16, 64]), ROW_OPERAND, B), r"valid shape \[1, 64\]"),
        (lambda: TILE.gemv_bias(ROW_OPERAND, B, tile([2, 64])), r"bias of shape \[1, 64\]"),
        (lambda: TILE.gemv_bias(ROW_OPERAND, B, tile([64])), "bias to be 2D"),
        (lambda: TILE.batch_matmul(tile([2, 16, 32], FP16), tile([3, 32, 64], FP16)), "batch"),
        (lambda: TILE.batch_matmul_acc(tile([1, 16, 64]), tile([2, 16, 32], FP16), tile([2, 32, 64], FP16)),
         "acc batch dim"),
        (lambda: TENSOR.matmul(tensor([32]), tensor([32, 8]), a_trans=True), "a_trans does not apply"),
        (lambda: TENSOR.matmul_acc(tensor([2, 16, 64]), tensor([2, 16, 32]), tensor([2, 32, 64]), init_cond=True),
         "init_cond only for 2D"),
    ],
)  # fmt: skip
def test_product_refusals(call, text):
    refused(call, text)


def test_a_wider_bias_serves_a_narrow_product():
    narrow = tile([32, 64], FP16, valid=[32, 20])
    assert valid_of(TILE.gemv_bias(ROW_OPERAND, narrow, tile([1, 64]))) == [1, 20]
    accumulator = tile([16, 64], valid=[1, 20], space=ACC)
    assert TILE.gemv_acc(accumulator, ROW_OPERAND, narrow).type is accumulator.type


def test_a_bound_scale_has_become_a_scale():
    data = tile([128, 64], F8, space=LEFT)
    scale = tile([128, 2], E8, space=MemorySpace.LeftScale)
    assert TILE.tget_scale_addr(scale, data).type is scale.type
    for dtype in (UINT8, FP16):
        raw = tile([128, 2], dtype, space=MemorySpace.LeftScale)
        refused(lambda raw=raw: TILE.tget_scale_addr(raw, data), "dst_scale dtype FP8E8M0")


# -- gathers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.gather(tile([4, 16]), tile([4, 8], INT16), tile([1, 8])), "16-bit src"),
        (lambda: TILE.gather_mask(tile([4, 16]), 8), "mask_pattern in range"),
        (lambda: TILE.gather_mask(tile([4, 18]), 3), "divisible by 4"),
        (lambda: TILE.gather_mask(tile([4, 16]), 1, output_dtype=FP16), "same bit width"),
        (lambda: TILE.gather_compare(tile([4, 16]), scalar(FP16), tile([4, 16]), out_cols=8), "kvalue dtype"),
        (lambda: create_op_call("tensor.gather_compare", [tensor([4, 16]), scalar(FP32)],
                                {"cmp_mode": 6, "out_cols": 8}), "cmp_mode must be one of"),
        (lambda: TENSOR.gather(tensor([4, 16]), 0, tensor([4, 8], INT32), mask_pattern=1), "mutually exclusive"),
        (lambda: TENSOR.gather(tensor([4, 16]), -1, tensor([4, 8], INT32), output_dtype=INT32), "mutually exclusive"),
        (lambda: TENSOR.gather(tensor([4, 16]), -1, tensor([4, 8], INT32), offset=2), "mutually exclusive"),
        (lambda: TENSOR.gather(tensor([4, 16]), output_dtype=INT32), "together with mask_pattern"),
        (lambda: TENSOR.gather(tensor([4, 4]), 2, tensor([4, 4], INT32)), "out of range"),
        (lambda: TENSOR.gather(tensor([4, 4]), 1, tensor([5, 4], INT32)), "must not exceed input"),
        (lambda: TILE.gatherb(tile([4, 64]), tile([4, 7], UINT32)), "multiple of 8"),
    ],
)  # fmt: skip
def test_gather_refusals(call, text):
    refused(call, text)


@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_gathered_rows(level):
    make = tile if level == "tile" else tensor
    gather = (TILE if level == "tile" else TENSOR).gather_row
    target, memory = make([16, 32], FP16), tensor([64, 32], FP16, name="m")
    assert gather(target, memory, [15, 0], [63, 0], [4, 32], valid_shape=[1, 32]).type is target.type
    refused(lambda: gather(target, memory, [-1, 0], [0, 0], [2, 32]), "dst: the offset of dimension 0")
    refused(lambda: gather(target, memory, [0, 0], [-1, 0], [2, 32]), "src: the offset of dimension 0")
    refused(lambda: gather(target, memory, [0, 0], [0, 0], [2, 32], valid_shape=[3, 32]), "provably exceeds physical")
    refused(lambda: gather(target, memory, [0, 0], [0, 0], [2, 32], valid_shape=[-1, 32]), "must be >= 0")


def test_destinations_of_gathered_rows():
    memory, turned = tensor([64, 32], FP16), tile([32, 16], FP16, space=MAT, blayout=ROW, slayout=COL)
    gather = TILE.gather_row
    assert gather(turned, memory, [0, 15], [7, 0], [1, 32], True).kwargs == {"transpose": True}
    refused(lambda: gather(tile([32, 16], FP16), memory, [0, 0], [7, 0], [1, 32], True), "Mat destination, got Vec")
    refused(lambda: gather(tile([16, 32], FP16, space=LEFT), memory, [0, 0], [7, 0], [1, 32]), "Vec or Mat, got Left")


MEMORY, POSITIONS = tensor([64, 32], name="m"), tile([1, 8], INT32)
GLOBAL_POSITIONS = tensor([1, 8], INT32, name="i")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"idx": tile([4, 8], INT32)}, r"idx of shape \[1, R\]"),
        ({"idx": tile([1, 8], INT64)}, "idx dtype INT32"),
        ({"mem": tensor([64])}, "mem of rank >= 2"),
        ({"mem": tensor([64, scalar()])}, "static shape of mem"),
        ({"idx": tensor([8, 1], INT32), "target_memory": MAT}, r"idx of shape \[1, R\]"),
        ({"idx": POSITIONS, "target_memory": MAT}, "global INT32 tensor"),
        ({"idx": GLOBAL_POSITIONS}, "idx to be a tile"),
        ({"idx": GLOBAL_POSITIONS, "target_memory": MAT, "coalesce": "elem"}, "requires scratch"),
        ({"idx": GLOBAL_POSITIONS, "target_memory": MAT, "coalesce": "elem", "scratch": MEMORY}, "must not overlap"),
        ({"idx": GLOBAL_POSITIONS, "target_memory": MAT, "coalesce": "elem", "scratch": tensor([4, 8], name="s")},
         "at least 128 elements"),
        ({"idx": GLOBAL_POSITIONS, "target_memory": MAT, "valid_shape": [17, 32]}, "exceeds the window"),
        ({"scratch": tensor([16, 8], name="s")}, "scratch only for elements"),
        ({"coalesce": "column"}, "coalesce must be one of"),
        ({"gather_oob": 4}, "gather_oob must be one of"),
    ],
)  # fmt: skip
def test_global_gather_refusals(options, text):
    refused(lambda: TILE.mgather(**{"mem": MEMORY, "idx": POSITIONS, **options}), text)


def test_global_gathers():
    assert shape_of(TILE.mgather(MEMORY, POSITIONS)) == shape_of(TILE.mgather(MEMORY, tile([8, 1], INT32))) == [8, 32]
    call = TILE.mgather(MEMORY, GLOBAL_POSITIONS, target_memory=MAT, valid_shape=[6, 32])
    assert (shape_of(call), valid_of(call), layout_of(call)) == ([16, 32], [6, 32], (COL, ROW, 512))
    many = tensor([16, 16], INT32, name="i")
    scratch = tensor([256], name="s")
    assert shape_of(TILE.mgather(MEMORY, many, "elem", target_memory=MAT, scratch=scratch)) == [16, 16]


def test_pages():
    table, index = tensor([16], INT32, name="t"), tensor([8], INT32, name="i")
    gather = lambda **more: TENSOR.paged_gather(tensor([64, 32], FP16), index, table, 4, 16, 8, **more)  # noqa: E731
    assert shape_of(gather(is_trans=True)) == [16, 8]
    refused(lambda: gather(col_off=20), r"columns 20 to 36 lie outside src \[64, 32\]")
    refused(lambda: gather(col_off=-1), "lie outside src")
    refused(lambda: gather(is_trans=True, space=VEC), "requires space Mat")
    refused(lambda: TENSOR.paged_gather(tensor([64, 32], FP16), tensor([9], INT32), table, 4, 16, 8), "max_indices")


# -- scatters and sorting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.scatter(tile([8, 8]), tile([4, 8]), tile([4, 8], INT16)), "index dtype int32"),
        (lambda: TILE.scatter(tile([8, 8], INT8), tile([4, 8], INT8), tile([4, 8], INT32)), "index dtype int16"),
        (lambda: TILE.scatter_mask(tile([4, 8]), tile([4, 8]), 1), "mask_pattern=1"),
        (lambda: TILE.scatter_mask(tile([4, 8]), tile([4, 8]), 9), r"mask_pattern in \[1, 7\]"),
        (lambda: TENSOR.scatter(tensor([4, 8]), -1, tensor([5, 4], INT32), tensor([5, 4])), "at most the 4 rows"),
        (lambda: TENSOR.scatter(tensor([4, 8]), -1, tensor([4, 9], INT32), tensor([4, 9])), "at most the 8 columns"),
        (lambda: TENSOR.scatter_update(tensor([8, 4]), -1, tensor([1, 2], INT32), tensor([2, 4])), "dim=-2"),
        (lambda: TENSOR.scatter_update(tensor([4, 8, 1, 16]), -2, tensor([1, 2], INT32), tensor([2, 2, 1, 16])),
         r"src \[1, 2, 1, 16\]"),
        (lambda: TENSOR.scatter_update(tensor([4, 8, 2, 16]), -2, tensor([1, 2], INT32), tensor([1, 2, 2, 16])),
         "of rank 4 requires"),
        (lambda: TILE.mscatter(tile([4, 8]), tile([4, 8], INT16), tensor([4])), "idx dtype INT32"),
        (lambda: TILE.sort32(tile([1, 32], BF16), tile([1, 32], UINT32)), "FP16 or FP32"),
        (lambda: TILE.mrgsort(tile([1, 256]), block_len=63), "multiple of 64"),
        (lambda: TILE.mrgsort(tile([1, 256]), tile([1, 256]), block_len=64), "mutually exclusive"),
        (lambda: TILE.mrgsort(tile([1, 64]), tile([1, 64], FP16), tmp=tile([1, 128])), "matching dtype"),
        (lambda: TENSOR.mrgsort(tensor([2, 64]), tensor([1, 64])), "the same rows"),
        (lambda: TENSOR.mrgsort(tensor([1, 64]), tensor([1, 64]), src3=tensor([1, 64])), "requires src2"),
    ],
)  # fmt: skip
def test_scatter_and_sort_refusals(call, text):
    refused(call, text)


def test_blocks_are_replaced_by_blocks():
    call = TENSOR.scatter_update(tensor([4, 8, 1, 16]), -2, tensor([1, 2], INT32), tensor([1, 2, 1, 16]))
    assert shape_of(call) == [4, 8, 1, 16] and call.kwargs == {"dim": -2}


def test_padding_keeps_its_policy_on_tiles():
    call = TILE.fillpad_expand(tile([4, 8], valid=[2, 8]), [8, 16], PadValue.max)
    assert (valid_of(call), call.type.get_effective_tile_view().pad) == ([8, 16], PadValue.max)
    refused(lambda: TILE.fillpad_expand(tile([4, 8]), [2, 16]), "must be >= source dimension")
    refused(lambda: create_op_call("tile.fillpad", [tile([4, 8])], {"pad_value": PadValue.null}), "null names no value")
    refused(lambda: create_op_call("tile.fillpad", [tile([4, 8])], {"pad_value": 0}), "incompatible type", TypeError)
