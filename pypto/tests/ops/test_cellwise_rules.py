"""What cell-by-cell operators, comparisons, reductions and broadcasts accept, refuse and give."""

from __future__ import annotations

import pytest
from operand_values import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT32,
    numbers,
    scalar,
    shape_of,
    tensor,
    tile,
    valid_of,
)
from pypto.ir import ConstBool, ConstFloat, ConstInt, DataType, MemorySpace, PadValue, TileLayout
from pypto.ops import create_op_call
from pypto.ops.pto_text import cmp_mode
from pypto.ops.surface import TENSOR, TILE, UNIFIED

COL = TileLayout.col_major
SCALAR_FORMS = ("adds", "subs", "muls", "divs", "fmods", "maximums", "minimums", "cmps", "expands")

# -- element types -----------------------------------------------------------------------------------------------

#: By the catalogue: floats beat integers, wide beats narrow, signed beats unsigned of one width.
PROMOTIONS = [
    (INT32, FP32, FP32), (INT32, FP16, FP16), (INT64, BF16, BF16), (INT32, INT64, INT64), (INT16, UINT32, UINT32),
    (UINT32, INT32, INT32), (UINT8, INT8, INT8), (FP16, FP32, FP32),
]  # fmt: skip


@pytest.mark.parametrize("leaf", ["add", "sub", "mul", "maximum", "minimum", "fmod", "part_add", "part_max"])
@pytest.mark.parametrize(("left", "right", "result"), PROMOTIONS)
def test_mixed_element_types_are_promoted_at_both_levels(leaf, left, right, result):
    for a, b in ((left, right), (right, left)):
        assert getattr(TILE, leaf)(tile([4, 8], a), tile([4, 8], b)).type.dtype == result
        assert getattr(TENSOR, leaf)(tensor([4, 8], a), tensor([4, 8], b)).type.dtype == result


def test_halves_of_two_kinds_give_the_left_one():
    assert TILE.add(tile([4, 8], FP16), tile([4, 8], BF16)).type.dtype == FP16
    assert TENSOR.add(tensor([4, 8], BF16), tensor([4, 8], FP16)).type.dtype == BF16


@pytest.mark.parametrize("form", SCALAR_FORMS)
def test_scalar_operands_of_tiles(form):
    call = getattr(TILE, form)
    for dtype, value, kind, wanted in (
        (INT32, 5, ConstInt, INT32), (INT8, 300, ConstInt, INT8), (FP16, 5, ConstFloat, FP16),
        (BF16, 2.5, ConstFloat, BF16), (INT32, 2.5, ConstFloat, FP32), (FP32, ConstInt(5, INDEX), ConstFloat, FP32),
    ):  # fmt: skip
        rhs = call(tile([4, 8], dtype), value).args[1]
        assert (type(rhs), rhs.dtype) == (kind, wanted), value
        assert rhs.value == getattr(value, "value", value)
    typed = ConstInt(5, INT32)
    assert call(tile([4, 8], INT8), typed).args[1] is typed
    assert call(tile([4, 8], INT32), scalar(FP32)).args[1].type.dtype == FP32
    with pytest.raises(ValueError, match=r"index.*pl\.cast"):
        call(tile([4, 8], INT32), scalar())


def test_scalar_forms_keep_the_type_of_tiles_and_promote_tensors():
    for form in ("adds", "muls", "divs", "fmods"):
        assert getattr(TILE, form)(tile([4, 8], INT32), 2.5).type.dtype == INT32
        wide = getattr(TENSOR, form)(tensor([4, 8], INT32, valid=[2, 8]), 2.5)
        assert (wide.type.dtype, valid_of(wide)) == (FP32, [2, 8])
        assert getattr(TENSOR, form)(tensor([4, 8], INT16), scalar(INT32)).type.dtype == INT32
    assert TENSOR.maximum(tensor([4, 8], INT32), 2.5).type.dtype == FP32


@pytest.mark.parametrize("dtype", [INT64, UINT32, BOOL, DataType.FP8E4M3FN])
def test_subs_names_the_scalar_types_it_takes(dtype):
    for call in (lambda s: TILE.subs(tile([4, 8]), s), lambda s: TENSOR.subs(tensor([4, 8]), s)):
        with pytest.raises(ValueError, match="requires scalar dtype in"):
            call(scalar(dtype))


def test_a_bool_is_a_one_next_to_tiles_and_no_number_between_scalars():
    assert TILE.adds(tile([4, 8], INT32), True).args[1].value == 1
    for name in ("add", "sub", "mul", "div"):
        for operands in ((True, 1), (1, False), (scalar(INT32), True)):
            with pytest.raises(TypeError, match="does not accept bool"):
                UNIFIED[name](*operands)
        assert UNIFIED[name](1, 2).type.dtype == INDEX


@pytest.mark.parametrize("leaf", ["maximum", "minimum", "part_add", "exp"])
def test_a_number_is_no_tile(leaf):
    operands = (2.0,) if leaf == "exp" else (tile([4, 8]), 2.0)
    with pytest.raises(TypeError, match="must be a tile, got float"):
        getattr(TILE, leaf)(*operands)


# -- arithmetic with scratch --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rhs", "tmp", "text"),
    [
        (tile([4, 8]), tile([1, 8], INT32), "same dtype"),
        (tile([4, 8]), tile([1, 4]), "valid columns"),
        (tile([4, 8]), tile([1, 8], valid=[0, 8]), "at least one valid row"),
        (tile([4, 8]), tile([8, 8], blayout=COL), "row_major scratch"),
        (tile([4, 5]), tile([1, 8]), r"\[4, 8\] and \[4, 5\]"),
    ],
)
def test_remainder_operands(rhs, tmp, text):
    assert TILE.rem(tile([4, 8]), tile([4, 8]), tile([1, 8])).type.dtype == FP32
    with pytest.raises(ValueError, match=text):
        TILE.rem(tile([4, 8]), rhs, tmp)


@pytest.mark.parametrize("tmp", [tile([4, 4], INT32), tile([4, 8], INT16), tile([1, 4, 8], INT32)])
def test_scratch_of_exclusive_or_looks_like_the_result(tmp):
    x = tile([4, 8], INT32)
    assert TILE.xor(tile([4, 8], INT16), x, x).type.dtype == INT32
    for call in (lambda: TILE.xor(x, x, tmp), lambda: TILE.xors(x, 3, tmp)):
        with pytest.raises(ValueError, match="requires tmp of"):
            call()


def test_a_slope_is_an_fp32_number():
    slope = TILE.lrelu(tile([4, 8], FP16), 1).args[1]
    assert isinstance(slope, ConstFloat) and slope.dtype == FP32
    with pytest.raises(ValueError, match=r"index.*pl\.cast"):
        TILE.lrelu(tile([4, 8], FP16), scalar())


# -- bits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ["and_", "or_", "shl", "shr"])
def test_bit_operators_want_integers(leaf):
    name = leaf.rstrip("_")
    with pytest.raises(ValueError, match=f"tile.{name} requires integer tile dtype"):
        getattr(TILE, leaf)(tile([4, 8]), tile([4, 8]))
    with pytest.raises(ValueError, match=f"tensor.{name} requires an integer tensor dtype"):
        getattr(TENSOR, leaf)(tensor([4, 8]), tensor([4, 8]))
    for call in (getattr(TILE, f"{name}s"), getattr(TILE, leaf)):
        with pytest.raises(ValueError, match="integer"):
            call(tile([4, 8], INT32), 2.5)
    with pytest.raises(ValueError, match=r"same shape.*\[4, 8\] and \[1, 8\]"):
        getattr(TENSOR, leaf)(tensor([4, 8], INT32), tensor([1, 8], INT32))
    kept = getattr(TILE, leaf)(tile([4, 8], INT16), tile([4, 8], INT32)).type.dtype
    assert kept == (INT16 if name.startswith("sh") else INT32)
    assert getattr(TILE, leaf)(tile([4, 8], INT16), 3).op.name == f"tile.{name}s"


def test_shift_counts():
    assert TILE.shls(tile([4, 8], INT32), -1).args[1].value == -1
    for call in (lambda: TILE.shrs(tile([4, 8], INT32), -1), lambda: TENSOR.shls(tensor([4, 8], INT32), -1)):
        with pytest.raises(ValueError, match="requires a non-negative shift count"):
            call()


# -- comparison ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [6, -1])
def test_a_comparison_without_instruction_is_refused_where_text_is_written(code):
    for call in (TILE.cmp(tile([16, 32]), tile([16, 32]), code), TILE.cmps(tile([16, 32]), 0, code)):
        assert call.kwargs == {"cmp_type": code}
        with pytest.raises(ValueError, match=f"no comparison for cmp_type={code}; use one of 0 eq, 1 ne"):
            cmp_mode(call)
    with pytest.raises(ValueError, match=f"pl.cmp has no comparison for cmp_type={code}"):
        UNIFIED["cmp"](tile([16, 32]), 0, code)
    assert cmp_mode(TILE.cmps(tile([16, 32]), 0, 5)) == "{cmpMode = #pto<cmp ge>}"


@pytest.mark.parametrize("code", [1.0, True, "lt"])
def test_a_comparison_is_an_int(code):
    with pytest.raises(TypeError, match=r"Kwarg 'cmp_type' for operator 'tile\.cmp' has incompatible type"):
        TILE.cmp(tile([16, 32]), tile([16, 32]), code)


def test_compared_tensors_are_fully_valid_numbers_of_the_left_type():
    call = TENSOR.cmp(tensor([4, 8], FP16, valid=[2, 8]), 0, 4)
    assert (call.type.dtype, valid_of(call), call.args[1].dtype) == (FP16, [4, 8], FP16)


# -- one operand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ["neg", "abs", "exp", "sqrt", "recip", "rsqrt", "relu"])
@pytest.mark.parametrize("dtype", [FP32, BF16, INT32, UINT8])
def test_unary_results_keep_type_and_region_but_not_the_pad(leaf, dtype):
    call = getattr(TILE, leaf)(tile([4, 8], dtype, valid=[2, 4], pad=PadValue.min))
    view = call.type.get_effective_tile_view()
    assert (call.type.dtype, valid_of(call), view.pad) == (dtype, [2, 4], PadValue.null)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: TILE.sin(tile([4, 8], FP16)), r"tile\.sin.*FP32"),
        (lambda: TENSOR.cos(tensor([4, 8], FP16)), r"tensor\.cos.*FP32"),
        (lambda: TILE.log(tile([4, 8], BF16)), "requires an FP16 or FP32"),
        (lambda: TILE.recip(tile([4, 8], BF16), high_precision=True), "high_precision only for FP16 or FP32"),
        (lambda: TENSOR.rsqrt(tensor([4, 8], INT32), high_precision=True), "high_precision only for FP16 or FP32"),
        (lambda: TILE.rsqrt(tile([4, 8]), tile([4, 4])), "shape mismatch"),
        (lambda: TILE.cast(tile([4, 8]), FP16, "RINT"), "Invalid rounding mode"),
        (lambda: TILE.cast(tile([4, 8]), FP16, 7), "Invalid rounding mode"),
        (lambda: create_op_call("tile.cast", [tile([4, 8])], {"target_type": FP16}), "requires a 'mode' kwarg"),
        (lambda: create_op_call("tile.cast", [tile([4, 8])], {"mode": 2}), "requires a 'target_type' kwarg"),
        (lambda: TILE.not_(tile([4, 8], INT32)), "int16 or uint16"),
    ],
)
def test_unary_refusals(call, text):
    with pytest.raises(ValueError, match=text):
        call()


# -- reductions and broadcasts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_scratch_of_row_reductions(kind):
    reduce, x = getattr(TILE, f"row_{kind}"), tile([8, 32], valid=[5, 20])
    call = reduce(x, tile([16, 64]))
    assert (shape_of(call), valid_of(call), call.type.memory_space) == ([8, 1], [5, 1], MemorySpace.Vec)
    assert call.type.get_effective_tile_view().blayout is COL
    for tmp in (tile([8, 16]), tile([1, 8, 32]), tile([8, 32], FP16)):
        with pytest.raises(ValueError, match="requires tmp_tile"):
            reduce(x, tmp)
    with pytest.raises(ValueError, match="valid extent on axis 1 is 0"):
        reduce(tile([8, 32], valid=[8, 0]), tile([8, 32]))
    with pytest.raises(TypeError, match="Tile inputs require tmp_tile"):
        UNIFIED[f"row_{kind}"](x)
    with pytest.raises(TypeError, match="must not pass tmp_tile"):
        UNIFIED[f"row_{kind}"](tensor([8, 32]), tile([8, 32]))


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_reduced_axes_of_tensors(kind):
    source = tensor([2, 8, 32], valid=[2, 5, 20])
    row, col = getattr(TENSOR, f"row_{kind}")(source), getattr(TENSOR, f"col_{kind}")(source)
    assert (shape_of(row), valid_of(row), row.kwargs) == ([2, 8, 1], [2, 5, 1], {})
    assert (shape_of(col), valid_of(col)) == ([2, 1, 32], [2, 1, 20])
    other = create_op_call(f"tensor.row_{kind}", [source], {"axis": 0, "keep_dim": False})
    assert shape_of(other) == [8, 32]
    with pytest.raises(TypeError, match="incompatible type"):
        create_op_call(f"tensor.row_{kind}", [source], {"axis": 1.0})


@pytest.mark.parametrize(
    ("vector", "text"),
    [
        (tile([8, 1], FP16), "same dtype"),
        (tile([4, 1]), "valid rows of src1"),
        (tile([8, 16]), "exactly 8 lanes"),
        (tile([8, 8], valid=[8, 4]), "exactly 8 lanes"),
    ],
)
def test_row_expand_add_takes_a_column_or_one_block_of_lanes(vector, text):
    for good in (tile([8, 1]), tile([8, 8]), tile([8, 16], blayout=COL, valid=[8, 1])):
        assert shape_of(TILE.row_expand_add(tile([8, 32]), good)) == [8, 32]
    with pytest.raises(ValueError, match=text):
        TILE.row_expand_add(tile([8, 32]), vector)


@pytest.mark.parametrize("kind", ["sub", "div", "mul", "max", "min", "expdif", "add"])
def test_vectors_spread_over_the_region_of_the_wide_operand(kind):
    row, col = getattr(TILE, f"row_expand_{kind}"), getattr(TILE, f"col_expand_{kind}")
    wide = tile([8, 32], valid=[5, 20])
    assert valid_of(row(wide, tile([8, 1], valid=[5, 1]))) == valid_of(col(wide, tile([1, 32]))) == [5, 20]
    for call in (lambda: row(wide, tile([4, 1])), lambda: col(wide, tile([1, 16])), lambda: col(wide, tile([32]))):
        with pytest.raises(ValueError, match=rf"(row|col)_expand_{kind}"):
            call()
    spread = getattr(TENSOR, f"row_expand_{kind}")(tensor([8, 32], valid=[5, 20]), tensor([8, 1]))
    assert (shape_of(spread), valid_of(spread)) == ([8, 32], [8, 32])


def test_values_without_axes_are_refused_where_an_axis_is_meant():
    for call in (
        lambda: TENSOR.row_expand_mul(tensor([]), tensor([])),
        lambda: TENSOR.row_sum(tensor([])),
        lambda: TILE.col_sum(tile([])),
        lambda: TILE.cmps(tile([]), 0),
        lambda: TENSOR.reinterpret_view(tensor([]), INT32),
    ):
        with pytest.raises(ValueError):
            call()


def test_numbers_of_an_expression_stay_symbols():
    m = scalar(name="m")
    call = TILE.add(tile([16, 32], valid=[m, 32]), tile([16, 32]))
    assert numbers(call.type.valid_shape) == [m, 32]
    assert isinstance(TILE.adds(tile([4, 8], INT32), ConstBool(True)).args[1], ConstBool)
