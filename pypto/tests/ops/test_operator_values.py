"""Every operator with a torch meaning: the type rule and the values agree with a numpy expression."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from operator_sample import BASIC  # noqa: E402
from operator_samples import DTYPE_OF, SAMPLES, TOLERANCE, Draw, Sample, as_numbers  # noqa: E402
from pypto.ops import all_ops, get_op  # noqa: E402

from pypto import ir  # noqa: E402


def check_type(sample: Sample, value: object, kind: ir.Type) -> None:
    """The dense value has the shape and the element type that the rule deduced."""
    if isinstance(kind, ir.TupleType):
        assert len(value) == len(kind.types)
        for part, part_kind in zip(value, kind.types):
            check_type(sample, part, part_kind)
        return
    if isinstance(kind, ir.ScalarType):
        assert not hasattr(value, "shape") or value.dim() == 0
        return
    shape = [int(d.value) for d in kind.shape]
    if sample.name.startswith("tile.gemv"):
        assert list(value.shape)[1:] == shape[1:]  # one valid row of sixteen
    else:
        assert list(value.shape) == shape
    assert DTYPE_OF[value.dtype] == kind.dtype


def check_value(value: object, expected: object) -> None:
    if isinstance(value, tuple):
        for part, wanted in zip(value, expected, strict=True):
            check_value(part, wanted)
        return
    if not isinstance(value, torch.Tensor):
        assert value == expected
        return
    got, wanted = as_numbers(value), np.asarray(expected)
    assert got.shape == wanted.shape
    if value.is_floating_point():
        limit = TOLERANCE.get(value.dtype, 0)
        assert np.allclose(got, wanted, rtol=limit, atol=limit, equal_nan=True)
    else:
        assert np.array_equal(got, wanted)


#: Operators without a shaped result; ``test_torch_values`` has them.
ELSEWHERE = {"array.create", "array.get_element", "array.update_element"}


def test_every_torch_meaning_has_a_sample():
    assert {d.name for d in all_ops() if d.torch is not None} == set(SAMPLES) | ELSEWHERE


#: Operators whose result is defined cell by cell: a region of all operands is the region of the result.
FAMILIES = ("elementwise_binary", "elementwise_scalar", "unary", "bitwise")
CELLWISE = [name for name in SAMPLES if name.startswith("tile.") and get_op(name).family in FAMILIES]


@pytest.mark.parametrize("name", CELLWISE)
@settings(max_examples=6)
@given(st.data(), st.integers(0, 13))
def test_cells_outside_the_valid_region_stay_outside(name, data, choice):
    rows, cols = 6, 16
    region = (data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols)))
    sample = SAMPLES[name](Draw(rows, cols, choice))
    sample.valid = tuple(region if isinstance(o, torch.Tensor) else None for o in sample.operands)
    deduced = [int(d.value) for d in sample.call().type.valid_shape]
    assert deduced == list(region)
    clean = sample.value()
    for operand in sample.operands:
        if isinstance(operand, torch.Tensor):
            garbage = torch.ones_like(operand)
            garbage[: region[0], : region[1]] = operand[: region[0], : region[1]]
            operand.copy_(garbage)
    dirty = sample.value()
    window = (slice(0, region[0]), slice(0, region[1]))
    assert torch.equal(clean[window].nan_to_num(), dirty[window].nan_to_num())


@pytest.mark.parametrize("name", [n for n in SAMPLES if n.startswith("tile.") and get_op(n).family == "reduction"])
@settings(max_examples=6)
@given(st.integers(1, 6), st.integers(1, 16), st.integers(0, 3))
def test_reductions_see_the_valid_cells_only(name, valid_rows, valid_cols, choice):
    from pypto.debug import torch_support as rt

    sample = SAMPLES[name](Draw(6, 16, choice))
    source = sample.operands[0]
    sample.valid = ((valid_rows, valid_cols), *([None] * (len(sample.operands) - 1)))
    kind = sample.call().type
    by_row = ".row_" in name
    assert [int(d.value) for d in kind.valid_shape] == ([valid_rows, 1] if by_row else [1, valid_cols])
    shape = [int(d.value) for d in kind.shape]
    value = rt.op(name, *sample.operands, _regions=sample.valid, _shape=shape)
    reduce = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[name.rpartition("_")[2]]
    expected = reduce(as_numbers(source)[:valid_rows, :valid_cols], axis=1 if by_row else 0, keepdims=True)
    check_value(value[:valid_rows, :1] if by_row else value[:1, :valid_cols], expected)


PARTIAL = [n for n in SAMPLES if n.startswith("tile.part_")]


@pytest.mark.parametrize("name", PARTIAL)
@settings(max_examples=8)
@given(st.integers(1, 6), st.integers(1, 16), st.integers(1, 6), st.integers(1, 16), st.integers(0, 3))
def test_partial_operators_take_the_operand_that_is_valid(name, rows, cols, other_rows, other_cols, choice):
    from pypto.debug import torch_support as rt

    sample = SAMPLES[name](Draw(6, 16, choice))
    sample.valid = ((rows, cols), (other_rows, other_cols))
    assert [int(d.value) for d in sample.call().type.valid_shape] == [rows, cols]
    left, right = (as_numbers(o) for o in sample.operands)
    value = rt.op(name, *sample.operands, _regions=sample.valid, _shape=[6, 16])
    expected = np.where(False, left, right)
    for row in range(6):
        for col in range(16):
            first, second = row < rows and col < cols, row < other_rows and col < other_cols
            if first:
                expected[row, col] = sample.expected[row, col] if second else left[row, col]
    seen = (slice(0, rows), slice(0, cols))
    check_value(value[seen], expected[seen])
    only = (slice(rows, max(rows, other_rows)), slice(0, other_cols))
    check_value(value[only], right[only])


PADS = {ir.PadValue.zero: 0, ir.PadValue.max: np.inf, ir.PadValue.min: -np.inf}


@settings(max_examples=30)
@given(st.sampled_from(list(PADS)), st.integers(0, 4), st.integers(0, 16), st.integers(0, 3))
def test_padding_covers_exactly_the_cells_outside(pad, rows, cols, choice):
    from pypto.debug import torch_support as rt

    source = Draw(4, 16, choice).cells(BASIC[choice])
    number, expected = PADS[pad], as_numbers(source).copy()
    if not source.is_floating_point() and number:
        limits = np.iinfo(expected.dtype)
        number = limits.max if number > 0 else limits.min
    outside = np.ones((4, 16), dtype=bool)
    outside[:rows, :cols] = False
    expected[outside] = number
    assert np.array_equal(as_numbers(rt.fillpad(source, (rows, cols), pad)), expected)


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=8)
@given(st.integers(2, 9), st.sampled_from([8, 16, 24, 32, 40]), st.integers(0, 13), st.integers(0, 2**16))
def test_types_and_values(name, rows, cols, choice, seed):
    sample = SAMPLES[name](Draw(rows, cols, choice, seed))
    kind, value = sample.call().type, sample.value()
    check_type(sample, value, kind)
    if sample.expected is not None:
        check_value(value, sample.expected)
