"""Reductions and broadcasts against numpy, on partial regions and in both forms of their result."""

from __future__ import annotations

import numpy as np
import pytest
from isa_oracle import COLS, DTYPES, FLOATS, PITCH, ROWS, TOLERANCE, assert_block, guarded, is_float, sample, wide

DRIVER = "reduce"
SHAPES = [(ROWS, COLS), (5, 20), (3, 1), (1, 63), (24, 7)]
REDUCED = ("f32", "f16", "i16", "i32")
OPERATIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def expected_reduction(op: str, block: np.ndarray, axis: int) -> np.ndarray:
    source = block.astype(np.float64) if is_float_array(block) else block
    with np.errstate(all="ignore"):
        return OPERATIONS[op].reduce(source, axis=axis, keepdims=True, dtype=source.dtype).astype(block.dtype)


def is_float_array(block: np.ndarray) -> bool:
    return block.dtype.kind not in "iu"


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("op", OPERATIONS)
def test_rows(driver, rng, op, dtype):
    for rows, cols in SHAPES:
        for as_row_major in (0, 1):
            a, out = sample(rng, dtype, low=0.5, high=1.5), guarded(dtype)
            driver.call(f"trow{op}_{dtype}", [a, out], [rows, cols, as_row_major])
            expected = expected_reduction(op, a[:rows, :cols], 1)
            assert_block(out, expected, rtol=TOLERANCE.get(dtype, 0))


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("op", OPERATIONS)
def test_columns(driver, rng, op, dtype):
    for rows, cols in SHAPES:
        a, out = sample(rng, dtype, low=0.5, high=1.5), guarded(dtype)
        driver.call(f"tcol{op}_{dtype}", [a, out], [rows, cols])
        expected = expected_reduction(op, a[:rows, :cols], 0)
        assert_block(out, expected, rtol=4 * TOLERANCE.get(dtype, 0))


def test_column_sum_with_a_tree(driver, rng):
    a, out = sample(rng, "f32"), guarded("f32")
    driver.call("tcolsum_tree_f32", [a, out], [17, 33])
    assert_block(out, a[:17, :33].sum(0, keepdims=True), rtol=1e-5, atol=1e-5)


def test_half_sums_are_rounded_once(driver):
    a = np.full((ROWS, PITCH), 1.0, np.float16)
    a[0, 0] = 2048
    out = guarded("f16")
    driver.call("trowsum_f16", [a, out], [1, 64, 0])
    assert out[0, 0] == np.float16(2048 + 63)


def test_cells_outside_the_region_do_not_count(driver):
    a = np.full((ROWS, PITCH), np.nan, np.float32)
    a[:3, :5] = 1
    out = guarded("f32")
    driver.call("trowmax_f32", [a, out], [3, 5, 0])
    assert_block(out, np.ones((3, 1), np.float32))


@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_keep_nan(driver, op):
    a = np.zeros((ROWS, PITCH), np.float32)
    a[1, 40] = np.nan
    rows, cols = guarded("f32"), guarded("f32")
    driver.call(f"trow{op}_f32", [a, rows], [2, 64, 0])
    driver.call(f"tcol{op}_f32", [a, cols], [2, 64])
    assert rows[0, 0] == 0 and np.isnan(rows[1, 0])
    assert np.isnan(cols[0, 40]) and cols[0, 39] == 0


@pytest.mark.parametrize("dtype", REDUCED)
def test_positions_of_extremes_take_the_lowest_index(driver, rng, dtype):
    for rows, cols in SHAPES:
        a = rng.integers(-3, 4, (ROWS, PITCH)).astype(DTYPES[dtype])
        outs = [guarded("i32") for _ in range(4)]
        driver.call(f"targ_{dtype}", [a, *outs], [rows, cols])
        block = a[:rows, :cols]
        assert_block(outs[0], block.argmax(1, keepdims=True))
        assert_block(outs[1], block.argmin(1, keepdims=True))
        assert_block(outs[2], block.argmax(0, keepdims=True))
        assert_block(outs[3], block.argmin(0, keepdims=True))


def test_an_empty_reduced_extent_is_refused(driver):
    a, out = np.zeros((ROWS, PITCH), np.float32), guarded("f32")
    with pytest.raises(RuntimeError, match="TROWSUM: the reduced extent of the source is 0"):
        driver.call("trowsum_f32", [a, out], [3, 0, 0])
    with pytest.raises(RuntimeError, match="TCOLMAX: the reduced extent of the source is 0"):
        driver.call("tcolmax_f32", [a, out], [0, 3])


def combine(form: int, a: np.ndarray, v: np.ndarray) -> np.ndarray:
    x, y = wide(a), wide(v)
    with np.errstate(all="ignore"):
        if form == 4 and a.dtype.kind == "i":
            return (np.sign(x) * np.sign(y) * (np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64)))).astype(
                a.dtype
            )
        results = [
            lambda: np.broadcast_to(y, x.shape),
            lambda: x + y,
            lambda: x - y,
            lambda: x * y,
            lambda: x / y,
            lambda: np.maximum(x, y),
            lambda: np.minimum(x, y),
            lambda: np.exp(x - y),
        ]
        return results[form]().astype(a.dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "i32"])
@pytest.mark.parametrize("form", range(8))
def test_row_and_column_expansions(driver, rng, form, dtype):
    if form == 7 and not is_float(dtype):
        pytest.skip("no exponential of integers")
    tolerance = TOLERANCE.get(dtype, 0) if form in (4, 7) else 0
    for rows, cols in [(24, 64), (5, 20), (2, 3)]:
        a, v, out = sample(rng, dtype), sample(rng, dtype, low=1, high=3), guarded(dtype)
        v[wide(v) == 0] = 1
        driver.call(f"rowexpand_{dtype}", [a, v, out], [rows, cols, form])
        assert_block(out, combine(form, a[:rows, :cols], v[:rows, :1]), rtol=tolerance)
        out = guarded(dtype)
        driver.call(f"colexpand_{dtype}", [a, v, out], [rows, cols, form])
        assert_block(out, combine(form, a[:rows, :cols], v[:1, :cols]), rtol=tolerance)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_row_expansion_of_a_block(driver, rng, dtype):
    block = 32 // DTYPES[dtype].itemsize
    a, v, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
    driver.call(f"rowexpand_block_{dtype}", [a, v, out], [6, 45])
    repeated = np.tile(v[:6, :block], (1, COLS))[:, :45]
    assert_block(out, (wide(a[:6, :45]) + wide(repeated)).astype(a.dtype))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_positions_of_the_first_nan(driver, dtype):
    a = np.zeros((ROWS, PITCH), DTYPES[dtype])
    a[:, 3] = 9
    a[1, [50, 20, 37]] = np.nan
    a[4, 20] = np.nan
    outs = [guarded("i32") for _ in range(4)]
    driver.call(f"targ_{dtype}", [a, *outs], [6, 64])
    assert outs[0][:6, 0].tolist() == [3, 20, 3, 3, 20, 3]
    assert outs[1][1, 0] == 20
    assert outs[2][0, 20] == 1 and outs[3][0, 20] == 1
