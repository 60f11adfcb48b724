"""Valid regions against brute force over the cells, and proofs over symbols."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operand_values import numbers, scalar
from pypto.ir.expr import const_index
from pypto.ops import regions, shapes


def dims(values):
    return tuple(const_index(v) for v in values)


def cells(shape, valid):
    """Flat positions of the valid cells."""
    found = set()
    for index in itertools.product(*(range(v) for v in valid)):
        flat = 0
        for i, extent in zip(index, shape):
            flat = flat * extent + i
        found.add(flat)
    return found


@st.composite
def boxes(draw, rank=2, largest=6):
    shape = draw(st.lists(st.integers(1, largest), min_size=rank, max_size=rank))
    return shape, [draw(st.integers(0, s)) for s in shape]


@st.composite
def windows(draw):
    shape, valid = draw(boxes())
    offset = [draw(st.integers(0, s - 1)) for s in shape]
    window = [draw(st.integers(1, s - o)) for s, o in zip(shape, offset)]
    requested = [draw(st.integers(0, w)) for w in window]
    return shape, valid, offset, window, requested


@given(windows())
def test_a_window_sees_exactly_the_valid_cells_it_asked_for(case):
    shape, valid, offset, window, requested = case
    region = numbers(regions.window_region(*map(dims, (shape, valid, offset, window, requested))))
    for axis, extent in enumerate(region):
        seen = [i for i in range(window[axis]) if offset[axis] + i < valid[axis] and i < requested[axis]]
        assert extent == len(seen)


@given(boxes(), st.data())
def test_a_reshape_is_exact_or_refused(box, data):
    shape, valid = box
    count = shape[0] * shape[1]
    rows = data.draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
    target = [rows, count // rows]
    try:
        region = numbers(regions.reshape_region("r", dims(shape), dims(valid), dims(target)))
    except ValueError:
        wanted = cells(shape, valid)
        assert all(cells(target, v) != wanted for v in itertools.product(*(range(t + 1) for t in target)))
        return
    assert cells(target, region) == cells(shape, valid)


@given(boxes(), st.data())
def test_a_write_leaves_exactly_the_union_or_is_refused(box, data):
    shape, valid = box
    offset = [data.draw(st.integers(0, s - 1)) for s in shape]
    extent = [data.draw(st.integers(0, s - o)) for s, o in zip(shape, offset)]
    box_of = lambda o, e: set(itertools.product(*(range(a, a + b) for a, b in zip(o, e))))  # noqa: E731
    union = box_of([0, 0], valid) | box_of(offset, extent)
    try:
        region = numbers(regions.write_region("w", dims(shape), dims(valid), dims(offset), dims(extent)))
    except ValueError:
        representable = itertools.product(*(range(s + 1) for s in shape))
        assert all(box_of([0, 0], v) != union for v in representable)
        return
    assert box_of([0, 0], region) == union


def test_symbolic_appends_grow_when_they_provably_abut():
    k, m = scalar(name="k"), scalar(name="m")
    target, written = (k, const_index(128)), (m, const_index(128))
    region = regions.write_region("w", dims([64, 128]), target, (k, const_index(0)), written)
    assert shapes.provably_le(region[0], const_index(64)) and shapes.provably_equal(region[1], const_index(128))
    with pytest.raises(ValueError, match="leaves a gap in dimension 0"):
        regions.write_region("w", dims([64, 128]), target, (scalar(name="j"), const_index(0)), written)


def test_a_symbolic_offset_in_a_full_source_keeps_the_request():
    window = dims([16, 64])
    region = regions.window_region(dims([64, 64]), dims([64, 64]), (scalar(), const_index(0)), window, window)
    assert region == window


def test_column_tags_refuse_partial_reshapes():
    with pytest.raises(ValueError, match="not stored row-major"):
        regions.reshape_region("r", dims([8, 16]), dims([5, 16]), dims([16, 8]), row_major=False)


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-3, 3))
def test_linear_proofs_hold_for_every_value(a, b, factor):
    n = scalar()
    left = shapes.add(shapes.mul(n, const_index(factor)), const_index(a))
    right = shapes.add(shapes.mul(n, const_index(factor)), const_index(b))
    assert shapes.constant_difference(left, right) == a - b
    assert shapes.provably_le(left, right) == (a <= b)
    assert shapes.provably_lt(left, right) == (a < b)
    assert not shapes.provably_le(left, shapes.add(scalar(), right)) or factor == 0


@given(st.integers(0, 40), st.integers(1, 9))
def test_folding_arithmetic(value, divisor):
    expr = const_index(value)
    assert numbers([shapes.ceil_div(expr, divisor), shapes.floor_div(expr, divisor)]) == [
        -(-value // divisor),
        value // divisor,
    ]


def test_minimum_and_maximum_pick_a_provable_side():
    n = scalar()
    bounded = shapes.minimum(n, const_index(32))
    assert shapes.minimum(bounded, const_index(64)) is bounded
    assert shapes.maximum(bounded, const_index(64)).value == 64


@pytest.mark.parametrize(("a", "b", "result"), [([4, 8], [8], [4, 8]), ([4, 1], [8], [4, 8]), ([1, 8], [4, 8], [4, 8])])
def test_broadcast(a, b, result):
    assert numbers(shapes.broadcast(dims(a), dims(b), "op")) == result


def test_unrelated_symbols_do_not_broadcast():
    with pytest.raises(ValueError, match=r"\[M, 8\].*\[N, 8\]"):
        shapes.broadcast((scalar(name="M"), const_index(8)), (scalar(name="N"), const_index(8)), "op")


def test_operands_of_different_ranks_are_left_to_the_flattening_pass():
    from operand_values import tensor, tile
    from pypto.ops.surface import TENSOR, TILE

    target = tile([4, 8, 16])
    assert TILE.assemble(target, tile([8, 16]), [2, 0, 0]).type is target.type
    out = tensor([16, 64])
    assert TENSOR.assemble(out, tensor([1, 16, 64]), [0, 0, 0]).type is out.type
    assert TILE.store(tile([1024]), [0, 0], out).type is out.type
    with pytest.raises(ValueError, match="provably negative"):
        TILE.assemble(target, tile([8, 16]), [-1, 0, 0])
