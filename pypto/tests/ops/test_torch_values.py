"""Reference values of operators against plain definitions."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from operand_values import FP32, INT8, INT16, INT32, UINT8  # noqa: E402
from pypto.ir import DataType, PadValue  # noqa: E402
from pypto.ops import all_ops, get_op  # noqa: E402
from pypto.ops import torch_values as T  # noqa: E402
from pypto.ops.fillpad import fill  # noqa: E402

seeds = st.integers(0, 2**16)


def data(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def value(name, *args, **kwargs):
    return get_op(name).torch(*args, **kwargs)


@settings(max_examples=20)
@given(seeds, st.integers(1, 40), st.sampled_from(range(6)))
def test_packed_masks_select_like_the_comparison(seed, cols, mode):
    a, b = data(seed, 3, cols).round(), data(seed + 1, 3, cols).round()
    mask = value("tile.cmp", a, b, cmp_type=mode)
    assert mask.dtype == torch.uint8 and mask.shape == (3, -(-cols // 256) * 32)
    assert torch.equal(value("tile.sel", mask, a, b, None), torch.where(T.COMPARE[mode](a, b), a, b))


def test_bits_are_little_endian():
    assert T.pack_bits(torch.tensor([[1, 0, 0, 1, 0, 0, 0, 0, 1]]) > 0)[0, :2].tolist() == [0b1001, 1]


def test_sels_takes_the_scalar_where_the_bit_is_clear():
    mask = torch.full((1, 32), 0xAA, dtype=torch.uint8)
    source = torch.arange(8.0).reshape(1, 8)
    assert value("tile.sels", mask, source, None, 9).tolist() == [[9, 1, 9, 3, 9, 5, 9, 7]]
    unsigned = torch.zeros(1, 8, dtype=torch.uint8)
    assert value("tile.sels", mask, unsigned, None, -126)[0, 0].item() == 0x82


@settings(max_examples=30)
@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=8), st.sampled_from(range(7)))
def test_casts_round_by_mode(numbers, mode):
    reference = {0: math.trunc, 1: round, 3: math.floor, 4: math.ceil, 5: math.trunc}
    result = T.cast(torch.tensor(numbers), INT32, mode).tolist()
    for number, got in zip(numbers, result):
        if mode in reference:
            assert got == reference[mode](number)
        elif mode == 2:
            assert got == math.copysign(math.floor(abs(number) + 0.5), number)
        else:
            exact = number == math.trunc(number)
            assert abs(got - number) <= 1 and (got == number if exact else got % 2 == 1)


def test_casts_saturate_from_floats_and_wrap_between_integers():
    wide = torch.tensor([1e20, -1e20, math.nan, math.inf])
    assert T.cast(wide, INT16, 2).tolist() == [32767, -32768, 0, 32767]
    assert T.cast(wide, DataType.INT64, 2)[0].item() == 2**63 - 1
    assert T.cast(torch.tensor([32768]), INT16, 5).tolist() == [-32768]


def test_half_arithmetic_rounds_once():
    a = torch.tensor([0.1], dtype=torch.float16)
    wide = (a.float() * a.float()).to(torch.float16)
    assert torch.equal(value("tile.mul", a, a), wide)


def test_integer_tiles_truncate_scalars_and_quotients():
    ints = torch.tensor([7, -7], dtype=torch.int32)
    assert value("tile.adds", ints, 2.5).tolist() == [9, -5]
    assert value("tile.divs", ints, 2).tolist() == [3, -3]
    assert value("tensor.muls", ints, 2.5).tolist() == [17.5, -17.5]
    assert value("tensor.subs", ints, 2.5).tolist() == [5, -9]


def test_remainders():
    a, b = torch.tensor([7, -7]), torch.tensor([3, 3])
    assert value("tile.rem", a, b, None).tolist() == [1, 2]
    assert value("tile.fmod", a, b).tolist() == [1, -1]
    assert value("tile.subc", a, b, b).tolist() == [7, -7]


@settings(max_examples=20)
@given(seeds)
def test_reductions_keep_their_axis(seed):
    x = data(seed, 3, 5)
    for kind, reference in (("sum", x.sum), ("prod", x.prod)):
        assert torch.allclose(value(f"tile.row_{kind}", x, None), reference(1, keepdim=True))
        assert torch.allclose(value(f"tile.col_{kind}", x), reference(0, keepdim=True))
    assert torch.equal(value("tensor.col_max", x), x.amax(0, keepdim=True))


@settings(max_examples=20)
@given(seeds)
def test_arg_reductions_name_the_first_extremum(seed):
    x = torch.randint(0, 3, (4, 6), generator=torch.Generator().manual_seed(seed))
    rows = value("tile.row_argmax", x, None)
    columns = value("tile.col_argmin", x, None)
    assert rows.dtype == torch.int32
    assert rows.reshape(-1).tolist() == [r.index(max(r)) for r in x.tolist()]
    assert columns.reshape(-1).tolist() == [c.index(min(c)) for c in x.T.tolist()]


def test_a_row_of_lanes_repeats_across_the_columns():
    wide, lanes = torch.zeros(2, 16), torch.arange(8.0).repeat(2, 1)
    assert value("tile.row_expand_add", wide, lanes)[0].tolist() == [*range(8), *range(8)]


@pytest.mark.parametrize(
    ("pattern", "columns"), [(1, [0, 2, 4, 6]), (2, [1, 3, 5, 7]), (3, [0, 4]), (5, [2, 6]), (7, list(range(8)))]
)
def test_mask_patterns(pattern, columns):
    row = torch.arange(8.0).reshape(1, 8)
    gathered = value("tile.gather_mask", row, mask_pattern=pattern)
    assert gathered.tolist() == [columns]
    spread = value("tile.scatter_mask", torch.full((1, 8), 9.0), gathered, mask_pattern=pattern)
    assert spread.tolist() == [[float(c) if c in columns else 9.0 for c in range(8)]]


def test_gathers_and_scatters_by_position():
    x = torch.arange(8.0).reshape(2, 4)
    assert value("tensor.gather", x, torch.tensor([[3, 0], [1, 1]]), dim=-1).tolist() == [[3, 0], [5, 5]]
    assert value("tile.gather", x, torch.tensor([[7, 0]]), None).tolist() == [[7, 0]]
    assert value("tile.scatter", x, torch.tensor([[9.0]]), torch.tensor([[5]]))[1, 1].item() == 9
    updated = value("tile.scatter_update", torch.zeros(8, 4), torch.tensor([[1, 3]]), torch.ones(2, 4))
    assert updated.sum(1).tolist() == [0, 4, 0, 4, 0, 0, 0, 0]


def test_comparing_gather_lists_columns_and_counts():
    x = torch.tensor([[1.0, 5.0, 1.0], [2.0, 2.0, 2.0]])
    positions, counts = value("tile.gather_compare", x, 1.0, None, cmp_mode=0, offset=10, out_cols=2, count_dtype=INT32)
    assert positions.tolist() == [[10, 12], [0, 0]] and counts.tolist() == [[2, 0]]


def test_blocks_of_32_bytes():
    x = torch.arange(16.0).reshape(1, 16)
    offsets = torch.tensor([[32, 0]], dtype=torch.uint32)
    assert value("tile.gatherb", x, offsets).tolist() == [[*range(8, 16), *range(8)]]


def test_out_of_bounds_policies_of_mgather():
    memory = torch.arange(4.0)
    index = torch.tensor([[5, 1]])
    for policy, first in ((1, 3.0), (2, 1.0), (3, 0.0)):
        assert value("tile.mgather", memory, index, coalesce=1, gather_oob=policy).tolist() == [[first, 1.0]]


@settings(max_examples=10)
@given(seeds)
def test_sorting_pairs_and_merging_them(seed):
    x = data(seed, 1, 128)
    index = torch.arange(128, dtype=torch.int32).reshape(1, 128)
    pairs = value("tile.sort32", x, index)
    merged = value("tile.mrgsort_format1", pairs, 64)
    values = merged.reshape(-1, 2)[:, 0]
    positions = merged.reshape(-1, 2)[:, 1].contiguous().view(torch.int32)
    order = x.reshape(-1).argsort(descending=True, stable=True)
    assert torch.equal(values, x.reshape(-1)[order]) and torch.equal(positions, order.to(torch.int32))


def test_sequences_triangles_and_random_words():
    assert value("tile.ci", 5, (1, 4), dtype=INT32, descending=True).tolist() == [[5, 4, 3, 2]]
    strict = value("tile.tri", 1, (3, 3), None, dtype=FP32, upper=True)
    assert strict.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    draw = lambda *seed: value("tile.random", *seed, (2, 8), dtype=DataType.UINT32, rounds=10)  # noqa: E731
    assert torch.equal(draw(1, 2, 0, 0, 0, 0), draw(1, 2, 0, 0, 0, 0))
    assert not torch.equal(draw(1, 2, 0, 0, 0, 0), draw(1, 3, 0, 0, 0, 0))


def test_padding_values():
    x = torch.ones(4, 8)
    assert fill(x, (2, 8), PadValue.min)[2:].eq(-math.inf).all()
    assert fill(torch.ones(2, 2, dtype=torch.int32), (1, 2), PadValue.max)[1, 0].item() == 2**31 - 1
    assert value("tile.fillpad_expand", x, (5, 9), pad_value=PadValue.zero).sum().item() == 32


def test_stores_accumulate_only_when_atomic():
    out, ones = torch.ones(4, 4), torch.ones(2, 2)
    assert value("tile.store", ones, (1, 1), out, atomic=1).sum().item() == 20
    assert value("tile.store", ones * 3, (1, 1), out).sum().item() == 24
    assert out.sum().item() == 16


@settings(max_examples=10)
@given(seeds)
def test_products(seed):
    a, b = data(seed, 3, 4), data(seed + 1, 4, 5)
    assert torch.allclose(value("tile.matmul", a.half(), b.half()), a.half().float() @ b.half().float())
    ints = torch.tensor([[100, 100]], dtype=torch.int8)
    assert value("tile.matmul", ints, ints.mT).item() == 20000
    half = value("tensor.matmul", a.half(), b.half())
    assert half.dtype == torch.float16
    assert torch.allclose(value("tensor.matmul", a, b.mT, b_trans=True), a @ b)


def test_block_scaled_quantisation_round_trips_exact_payloads():
    from pypto.ops.mx import scaled

    x = torch.zeros(16, 64)
    x[:, 0], x[:, 32] = 448.0 * 4, 448.0
    payload, codes = value("tile.tquant_mx", x)
    assert codes.view(torch.uint8)[0].tolist() == [129, 127]
    assert torch.equal(scaled(payload, codes, 1), x)


def test_reinterpreted_bytes():
    x = torch.tensor([[1.0, 2.0]])
    assert value("tile.reinterpret_view", x, dtype=DataType.UINT32).tolist() == [[0x3F800000, 0x40000000]]


def test_every_tile_compute_operator_has_a_reference():
    without = {
        d.name for d in all_ops()
        if d.name.startswith("tile.") and d.torch is None and d.pto and not d.name.endswith("tget_scale_addr")
    }  # fmt: skip
    assert not without


def test_element_types_without_torch_are_named():
    assert T.torch_dtype(UINT8) == torch.uint8 and T.torch_dtype(INT8) == torch.int8
    with pytest.raises(NotImplementedError, match="hf8"):
        T.torch_dtype(DataType.HF8)
