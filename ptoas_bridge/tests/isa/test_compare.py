"""Packed predicates and selection by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isa_oracle import COLS, DTYPES, FLOATS, INTS, PITCH, ROWS, assert_block, guarded, is_float, sample, wide

DRIVER = "compare"
MODES = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


def few_values(rng, dtype):
    return rng.integers(0, 4, (ROWS, PITCH)).astype(DTYPES[dtype])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("mode", range(6))
def test_compare_and_select(driver, rng, mode, dtype):
    for rows, cols in [(24, 64), (5, 33), (3, 7)]:
        a, b, mask, out = few_values(rng, dtype), few_values(rng, dtype), np.zeros((ROWS, 32), np.uint8), guarded(dtype)
        driver.call(f"tcmp_{dtype}", [a, b, mask, out], [rows, cols, mode, 0])
        holds = MODES[mode](wide(a[:rows, :cols]), wide(b[:rows, :cols]))
        packed = np.packbits(holds, axis=1, bitorder="little")
        assert (mask[:rows, : packed.shape[1]] == packed).all()
        assert_block(out, np.where(holds, a[:rows, :cols], b[:rows, :cols]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "u8"])
@pytest.mark.parametrize("mode", range(6))
def test_compare_with_a_scalar(driver, rng, mode, dtype):
    a, b, mask, out = few_values(rng, dtype), few_values(rng, dtype), np.zeros((ROWS, 32), np.uint8), guarded(dtype)
    driver.call(f"tcmp_{dtype}", [a, b, mask, out], [6, 50, mode, 1])
    holds = MODES[mode](wide(a[:6, :50]), wide(b)[0, 0])
    assert_block(out, np.where(holds, a[:6, :50], b[0, 0]).astype(a.dtype))


def test_mask_bits_of_the_manual(driver):
    a = np.zeros((ROWS, PITCH), np.float32)
    a[0, :9] = range(1, 10)
    b = np.full((ROWS, PITCH), 4.5, np.float32)
    mask = np.full((ROWS, 32), 0xFF, np.uint8)
    driver.call("tcmp_f32", [a, b, mask, guarded("f32")], [1, 9, 2, 0])
    assert mask[0, :2].tolist() == [0x0F, 0x00]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_only_unequal(driver, dtype):
    a = np.full((ROWS, PITCH), np.nan, DTYPES[dtype])
    b = np.zeros((ROWS, PITCH), DTYPES[dtype])
    for mode in range(6):
        mask = np.zeros((ROWS, 32), np.uint8)
        driver.call(f"tcmp_{dtype}", [a, b, mask, guarded(dtype)], [1, 8, mode, 0])
        assert mask[0, 0] == (0xFF if mode == 1 else 0)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_select_with_a_given_mask(driver, rng, dtype):
    mask = np.full((ROWS, 32), 0xAA, np.uint8)
    a, out = sample(rng, dtype), guarded(dtype)
    driver.call(f"tsels_{dtype}", [mask, a, out], [4, 43])
    odd = np.arange(43) % 2 == 1
    assert_block(out, np.where(odd, a[:4, :43], np.array(9, a.dtype)).astype(a.dtype))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, ROWS),
    cols=st.integers(1, COLS),
    dtype=st.sampled_from([*FLOATS, *INTS]),
    mode=st.integers(0, 5),
)
def test_selection_by_a_comparison_with_itself(driver, rows, cols, dtype, mode):
    a = sample(np.random.default_rng(rows + 100 * cols), dtype)
    mask, out = np.zeros((ROWS, 32), np.uint8), guarded(dtype)
    driver.call(f"tcmp_{dtype}", [a, a, mask, out], [rows, cols, mode, 0])
    assert_block(out, a[:rows, :cols])
    assert is_float(dtype) or bool(mask[0, 0] & 1) == (mode in (0, 3, 5))
