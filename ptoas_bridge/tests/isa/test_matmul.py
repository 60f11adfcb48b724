"""Matrix products over element types, layouts, ragged extents and accumulation forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isa_oracle import assert_block, guarded, sample

DRIVER = "matmul"
# Machines without products of bfloat16 pairs and byte quads, and without 512-bit registers: target -> flag it needs.
ALSO_MARCH = {"x86-64-v4": "avx512vl", "x86-64-v3": "avx2"}
EXTENTS = [(64, 96, 96), (64, 96, 96), (16, 512, 32), (16, 64, 32)]
TYPES = ["f32", "f16", "bf16", "i8", "e4m3"]


def run(driver, rng, dtype, case, m, k, n, form):
    big_m, big_k, big_n = EXTENTS[case]
    result = "i32" if dtype == "i8" else "f32"
    a = sample(rng, dtype, (big_m, big_k), -2, 2)
    b = sample(rng, dtype, (big_k, big_n), -2, 2)
    # What lies outside the valid region must not reach the result.
    if dtype not in ("i8", "e4m3"):
        a[m:], a[:, k:], b[k:], b[:, n:] = np.nan, np.nan, np.nan, np.nan
    bias = sample(rng, result, (1, big_n), -2, 2)
    out = guarded(result, (big_m, big_n))
    driver.call(f"product_{dtype}", [a, b, out, bias], [m, k, n, form, case])
    exact_type = np.int64 if dtype == "i8" else np.float64
    exact = a[:m, :k].astype(exact_type) @ b[:k, :n].astype(exact_type)
    if form in (1, 3):
        exact = 2 * exact
    if form == 2:
        exact = exact + bias[:, :n]
    if dtype == "i8":
        assert_block(out, exact.astype(np.int32))
    else:
        assert_block(out, exact.astype(np.float32), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("form", range(4))
def test_full_products(driver, rng, form, case, dtype):
    run(driver, rng, dtype, case, *EXTENTS[case], form)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", [0, 1])
def test_ragged_products(driver, rng, case, dtype):
    for m, k, n in [(1, 1, 1), (17, 33, 49), (63, 95, 79), (5, 96, 16), (64, 7, 80), (64, 96, 48), (3, 50, 2)]:
        run(driver, rng, dtype, case, m, k, n, 0)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    m=st.integers(1, 64),
    k=st.integers(1, 96),
    n=st.integers(1, 80),
    dtype=st.sampled_from(TYPES),
    case=st.sampled_from([0, 1]),
    form=st.integers(0, 3),
)
def test_any_valid_extents(driver, m, k, n, dtype, case, form):
    run(driver, np.random.default_rng(m * 10007 + k * 101 + n), dtype, case, m, k, n, form)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_infinities_and_nans_of_the_operands_reach_the_result(driver, rng, dtype):
    a, b = sample(rng, dtype, (16, 64), 1, 2), sample(rng, dtype, (64, 32), 1, 2)
    a[3, 5], a[4, 63], b[7, 9] = np.inf, np.nan, -np.inf
    out = guarded("f32", (16, 32))
    driver.call(f"product_{dtype}", [a, b, out, guarded("f32", (1, 32))], [16, 64, 32, 0, 3])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5)


def test_bytes_of_all_values_multiply_exactly(driver):
    a = np.arange(-128, 128).astype(np.int8).reshape(4, 64).repeat(4, 0)
    b = np.arange(2048).astype(np.uint8).view(np.int8).reshape(64, 32)
    out = guarded("i32", (16, 32))
    driver.call("product_i8", [a, b, out, guarded("i32", (1, 32))], [16, 64, 32, 0, 3])
    assert (out == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_integer_products_wrap_like_int32(driver):
    a = np.full((16, 512), -128, np.int8)
    b = np.full((512, 32), -128, np.int8)
    out, bias = guarded("i32", (16, 32)), np.full((1, 32), 2**31 - 1, np.int32)
    driver.call("product_i8", [a, b, out, bias], [16, 512, 32, 2, 2])
    assert (out == np.int32((512 * 128 * 128 + 2**31 - 1) - 2**32)).all()


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_single_row_products(driver, rng, dtype):
    a, b, out = sample(rng, dtype, (1, 64), -2, 2), sample(rng, dtype, (64, 32), -2, 2), guarded("f32", (16, 32))
    driver.call(f"gemv_{dtype}", [a, b, out], [])
    assert_block(out, 2 * (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_transposed_view_of_the_left_operand(driver, rng, dtype):
    a, b, out = sample(rng, dtype, (64, 32), -2, 2), sample(rng, dtype, (64, 32), -2, 2), guarded("f32", (32, 32))
    driver.call(f"transposed_left_{dtype}", [a, b, out], [])
    assert_block(out, (a.T.astype(np.float64) @ b.astype(np.float64)).astype(np.float32), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["e4m3", "e5m2"])
@pytest.mark.parametrize("form", [0, 1, 2])
def test_block_scaled_products(driver, rng, form, dtype):
    a, b = sample(rng, dtype, (32, 128), -2, 2), sample(rng, dtype, (128, 64), -2, 2)
    left, right = rng.integers(120, 134, (32, 4)).astype(np.uint8), rng.integers(120, 134, (4, 64)).astype(np.uint8)
    bias, out = sample(rng, "f32", (1, 64)), guarded("f32", (32, 64))
    driver.call(f"scaled_{dtype}", [a, b, left, right, out, bias], [form])
    wide_a = a.astype(np.float64) * np.repeat(2.0 ** (left.astype(int) - 127), 32, 1)
    wide_b = b.astype(np.float64) * np.repeat(2.0 ** (right.astype(int) - 127), 32, 0)
    expected = wide_a @ wide_b * (2 if form == 1 else 1) + (bias if form == 2 else 0)
    assert_block(out, expected.astype(np.float32), rtol=1e-5, atol=2e-3)
