"""The dispatchers choose the level and refuse what only the other one knows."""

from __future__ import annotations

import warnings

import pytest
from operand_values import FP16, FP32, INT32, scalar, tensor, tile
from pypto.ir import Cast, DataType, Max, PadValue
from pypto.ir.expr import Add, FloatDiv
from pypto.ops.surface import TENSOR, TILE, UNIFIED

PAIRS = ["add", "sub", "mul", "div", "maximum", "minimum", "part_add", "concat", "and_", "row_expand_mul"]


def operands(build, name):
    dtype = INT32 if name == "and_" else FP32
    return build([4, 8], dtype), build([4, 1], dtype) if name.startswith("row_expand") else build([4, 8], dtype)


@pytest.mark.parametrize("name", PAIRS)
def test_the_level_follows_the_operands(name):
    leaf = name.rstrip("_")
    assert UNIFIED[name](*operands(tile, name)).op.name == f"tile.{leaf}"
    assert UNIFIED[name](*operands(tensor, name)).op.name == f"tensor.{leaf}"


@pytest.mark.parametrize(
    ("name", "tile_form", "tensor_form"),
    [
        ("add", "tile.adds", "tensor.adds"),
        ("maximum", "tile.maximums", "tensor.maximum"),
        ("cmp", "tile.cmps", "tensor.cmp"),
        ("fmod", "tile.fmods", "tensor.fmods"),
    ],
)
def test_a_scalar_on_the_right(name, tile_form, tensor_form):
    assert UNIFIED[name](tile([4, 8]), 1).op.name == tile_form
    assert UNIFIED[name](tensor([4, 8]), 1).op.name == tensor_form


def test_scalars_give_scalar_nodes():
    assert type(UNIFIED["add"](1, 2)) is Add
    assert type(UNIFIED["div"](scalar(FP32), scalar(FP32))) is FloatDiv
    assert type(UNIFIED["max"](scalar(), 2)) is Max
    assert type(UNIFIED["cast"](scalar(), FP32)) is Cast
    with pytest.raises(TypeError, match="does not accept bool"):
        UNIFIED["add"](scalar(DataType.BOOL), scalar(DataType.BOOL))


def test_mixed_and_shapeless_operands():
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        UNIFIED["mul"](tensor([4, 8]), tile([4, 8]))
    with pytest.raises(TypeError, match=r"pl\.exp: expected Tensor or Tile operands, got \(Scalar\)"):
        UNIFIED["exp"](scalar(FP32))


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"),
    [
        ("row_sum", [tile([4, 8])], {}, "Tile inputs require tmp_tile"),
        ("row_sum", [tensor([4, 8]), tile([4, 8])], {}, "must not pass tmp_tile"),
        ("xor", [tile([4, 8], INT32)] * 2, {}, "explicit scratch tile"),
        ("xor", [tensor([4, 8], INT32)] * 2, {"tmp": tile([4, 8], INT32)}, "must not pass tmp"),
        ("row_expand_add", [tensor([4, 8]), tensor([4, 1]), tile([4, 8])], {}, "must not pass tmp"),
        ("slice", [tile([4, 8]), [2, 8], [0, 0]], {"clamp": True}, "clamp=True is not supported for a Tile"),
        ("assemble", [tile([4, 8]), tile([4, 8]), [0, 0]], {"atomic": 1}, "atomic"),
        ("div", [tile([4, 8]), 2.0], {"high_precision": True}, "high_precision"),
        ("batch_matmul", [tensor([2, 4, 4])] * 2, {}, r"pl\.matmul"),
        ("mrgsort", [tensor([1, 128]), tensor([1, 128])], {"tmp": tensor([1, 256])}, "must not pass tmp"),
        ("cast", [scalar(FP32), INT32], {"mode": "floor"}, "non-default mode"),
    ],
)
def test_arguments_of_the_other_level(name, args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        UNIFIED[name](*args, **kwargs)


def test_defaults_of_the_other_level_are_ignored():
    from pypto.ir import MemorySpace

    left, right = tile([16, 32], FP16, space=MemorySpace.Left), tile([32, 64], FP16, space=MemorySpace.Right)
    assert UNIFIED["matmul"](left, right, None, False, False, False).op.name == "tile.matmul"
    assert UNIFIED["matmul"](left, right, out_dtype=FP32).op.name == "tile.matmul"
    with pytest.raises(TypeError, match=r"pl\.cast"):
        UNIFIED["matmul"](left, right, out_dtype=FP16)


def test_keywords_select_the_gather():
    x = tensor([4, 16])
    assert TENSOR.gather(x, -1, tensor([4, 3], INT32)).op.name == "tensor.gather"
    assert TENSOR.gather(x, mask_pattern=1).op.name == "tensor.gather_mask"
    found = TENSOR.gather(x, kvalue=1.0, cmp_mode="gt", out_cols=4)
    assert found.op.name == "tensor.gather_compare" and len(found.type.types) == 2
    with pytest.raises(ValueError, match="mutually exclusive"):
        TENSOR.gather(x, -1, tensor([4, 3], INT32), mask_pattern=1)


def test_scatter_update_forms():
    x, index, source = tile([8, 16]), tile([1, 2], INT32), tile([2, 16])
    calls = [
        UNIFIED["scatter_update"](x, -2, index, source),
        UNIFIED["scatter_update"](x, index, source, dim=-2),
        UNIFIED["scatter_update"](x, -2, index=index, src=source),
    ]
    assert all(c.op.name == "tile.scatter_update" and c.args == calls[0].args for c in calls)


def test_a_useless_pad_value_warns_at_the_call():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        UNIFIED["slice"](tensor([16, 32]), [8, 32], [0, 0], pad_value=PadValue.min)
        TILE.slice(tile([16, 32]), [8, 32], [0, 0], pad_value=0)
    assert [w.filename for w in caught] == [__file__] * 2 and "no effect" in str(caught[0].message)
