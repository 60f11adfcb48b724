"""Elementwise instructions against numpy: every element type, partial regions, in-place use, wrapping and NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isa_oracle import COLS, DTYPES, FLOATS, INTS, PITCH, ROWS, TOLERANCE, assert_block, guarded, is_float, sample, wide

DRIVER = "elementwise"
SHAPES = [(ROWS, COLS), (5, 20), (1, 1), (3, 33), (24, 16)]
ALL = FLOATS + INTS


def truncated_div(a, b):
    q = np.floor_divide(np.abs(a.astype(np.int64)), np.abs(b.astype(np.int64)))
    return (q * np.sign(a.astype(np.int64)) * np.sign(b.astype(np.int64))).astype(a.dtype)


def reference(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    kind = a.dtype
    with np.errstate(all="ignore"):
        if op == "div" and kind.kind in "iu":
            return truncated_div(a, b)
        x, y = wide(a), wide(b)
        functions = {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x * y,
            "div": lambda: x / y,
            "max": lambda: np.maximum(x, y),
            "min": lambda: np.minimum(x, y),
            "rem": lambda: np.mod(x, y),
            "fmod": lambda: np.fmod(x, y),
            "and": lambda: x & y,
            "or": lambda: x | y,
            "xor": lambda: x ^ y,
            "prelu": lambda: np.where(x > 0, x, x * y),
        }
        return functions[op]().astype(kind)


def nonzero(array: np.ndarray) -> np.ndarray:
    return np.where(wide(array) == 0, np.array(3, array.dtype), array)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min", "rem", "fmod"])
def test_binary_matches_numpy(driver, rng, op, dtype):
    for rows, cols in SHAPES:
        a, b, out = sample(rng, dtype), nonzero(sample(rng, dtype)), guarded(dtype)
        driver.call(f"t{op}_{dtype}", [a, b, out], [rows, cols, 0])
        expected = reference(op, a[:rows, :cols], b[:rows, :cols])
        assert_block(out, expected, rtol=2e-7 if dtype == "f32" else 0)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_bitwise_matches_numpy(driver, rng, op, dtype):
    a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
    driver.call(f"t{op}_{dtype}", [a, b, out], [7, 50, 0])
    assert_block(out, reference(op, a[:7, :50], b[:7, :50]))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("direction", ["shl", "shr"])
def test_shifts(driver, rng, direction, dtype):
    bits = DTYPES[dtype].itemsize * 8
    a, out = sample(rng, dtype), guarded(dtype)
    b = rng.integers(0, bits, (ROWS, PITCH)).astype(DTYPES[dtype])
    driver.call(f"t{direction}_{dtype}", [a, b, out], [9, 45, 0])
    left, right = a[:9, :45], b[:9, :45]
    expected = np.left_shift(left, right) if direction == "shl" else np.right_shift(left, right)
    assert_block(out, expected)
    out = guarded(dtype)
    driver.call(f"t{direction}s_{dtype}", [a, out], [9, 45, 0], [3])
    three = DTYPES[dtype].type(3)
    assert_block(out, np.left_shift(left, three) if direction == "shl" else np.right_shift(left, three))


@pytest.mark.parametrize("dtype", ["i8", "i32", "u32"])
def test_shift_counts_at_or_above_the_width(driver, dtype):
    bits = DTYPES[dtype].itemsize * 8
    a = np.full((ROWS, PITCH), -5 if dtype != "u32" else 5, DTYPES[dtype])
    b = np.full((ROWS, PITCH), bits, DTYPES[dtype])
    left, right = guarded(dtype), guarded(dtype)
    driver.call(f"tshl_{dtype}", [a, b, left], [1, 8, 0])
    driver.call(f"tshr_{dtype}", [a, b, right], [1, 8, 0])
    assert (left[0, :8] == 0).all()
    assert (right[0, :8] == (-1 if dtype != "u32" else 0)).all()


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i8"])
def test_destination_may_be_a_source(driver, rng, dtype):
    for rows, cols in [(24, 64), (5, 33)]:
        a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
        driver.call(f"tsub_{dtype}", [a, b, out], [rows, cols, 1])
        assert_block(out, reference("sub", a[:rows, :cols], b[:rows, :cols]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_maximum_and_minimum_keep_nan(driver, dtype):
    kind = DTYPES[dtype]
    a = np.zeros((ROWS, PITCH), kind)
    b = np.ones((ROWS, PITCH), kind)
    a[0, 0] = np.nan
    b[0, 1] = np.nan
    for op in ("max", "min"):
        out = guarded(dtype)
        driver.call(f"t{op}_{dtype}", [a, b, out], [2, 20, 0])
        assert np.isnan(wide(out[0, :2])).all()
        assert not np.isnan(wide(out[1, :20])).any()


def test_float_division_by_zero_is_ieee_and_integer_division_does_not_trap(driver):
    a = np.zeros((ROWS, PITCH), np.float32)
    a[0, :3] = [1, -1, 0]
    out = guarded("f32")
    driver.call("tdiv_f32", [a, np.zeros_like(a), out], [1, 3, 0])
    assert out[0, 0] == np.inf and out[0, 1] == -np.inf and np.isnan(out[0, 2])
    least = np.full((ROWS, PITCH), np.iinfo(np.int32).min, np.int32)
    quotient = guarded("i32")
    driver.call("tdiv_i32", [least, np.full_like(least, -1), quotient], [1, 8, 0])
    driver.call("tdiv_i32", [least, np.zeros_like(least), guarded("i32")], [1, 8, 0])
    assert (quotient[0, :8] == np.iinfo(np.int32).min).all()


def test_remainder_signs(driver):
    a = np.full((ROWS, PITCH), -7, np.float32)
    b = np.full((ROWS, PITCH), 3, np.float32)
    rem, fmod = guarded("f32"), guarded("f32")
    driver.call("trem_f32", [a, b, rem], [1, 4, 0])
    driver.call("tfmod_f32", [a, b, fmod], [1, 4, 0])
    assert (rem[0, :4] == 2).all() and (fmod[0, :4] == -1).all()


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "min"])
def test_scalar_forms(driver, rng, op, dtype):
    value = 2.5 if is_float(dtype) else 3
    for rows, cols in [(24, 64), (6, 37)]:
        a, out = sample(rng, dtype), guarded(dtype)
        driver.call(f"t{op}s_{dtype}", [a, out], [rows, cols, 0], [value])
        b = np.full((rows, cols), value, DTYPES[dtype])
        assert_block(out, reference(op, a[:rows, :cols], b), rtol=2e-7 if dtype == "f32" else 0)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32"])
def test_division_by_and_of_a_scalar(driver, rng, dtype):
    a = nonzero(sample(rng, dtype))
    quotient = guarded(dtype)
    driver.call(f"tdivs_{dtype}", [a, quotient], [4, 30, 0], [4])
    four = np.full((4, 30), 4, DTYPES[dtype])
    assert_block(quotient, reference("div", a[:4, :30], four), rtol=2e-7)
    if dtype != "i32":
        inverse = guarded(dtype)
        driver.call(f"trdivs_{dtype}", [a, inverse], [4, 30, 0], [4])
        assert_block(inverse, reference("div", four, a[:4, :30]), rtol=2e-7)
    for op in ("rem", "fmod"):
        out = guarded(dtype)
        driver.call(f"t{op}s_{dtype}", [a, out], [4, 30, 0], [3])
        assert_block(out, reference(op, a[:4, :30], np.full((4, 30), 3, DTYPES[dtype])))


def test_float_scalar_on_an_integer_tile_is_truncated(driver, rng):
    a, out = sample(rng, "i32"), guarded("i32")
    driver.call("tadds_float_i32", [a, out], [2, 9], [2.5])
    assert_block(out, a[:2, :9] + np.int32(2))


@pytest.mark.parametrize("dtype", FLOATS)
def test_leaky_and_parametric_relu(driver, rng, dtype):
    a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
    driver.call(f"tlrelu_{dtype}", [a, out], [3, 21, 0], [0.1])
    x = wide(a[:3, :21])
    assert_block(out, np.where(x > 0, x, x * np.float32(0.1)).astype(a.dtype), rtol=2e-7)
    out = guarded(dtype)
    driver.call(f"tprelu_{dtype}", [a, b, out], [3, 21, 0])
    assert_block(out, reference("prelu", a[:3, :21], b[:3, :21]))


@pytest.mark.parametrize("dtype", ALL)
def test_fill_with_a_scalar(driver, dtype):
    out = guarded(dtype)
    driver.call(f"texpands_{dtype}", [np.zeros((ROWS, PITCH), DTYPES[dtype]), out], [5, 41, 0], [7])
    assert_block(out, np.full((5, 41), 7, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_three_operand_forms(driver, rng, dtype):
    a, b, c = (sample(rng, dtype) for _ in range(3))
    x = DTYPES[dtype].type(3)
    r = (slice(0, 5), slice(0, 19))
    expected = [a + b + c, a - b + c, a + x + b, a - x + b, c + x * a]
    for form, value in enumerate(expected):
        out = guarded(dtype)
        driver.call(f"three_{dtype}", [a, b, c, out], [5, 19, form], [3])
        assert_block(out, value[r], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", ALL)
def test_simple_unary(driver, rng, dtype):
    a = sample(rng, dtype)
    with np.errstate(all="ignore"):
        expected = {"abs": np.abs(wide(a)), "neg": -wide(a), "relu": np.maximum(wide(a), 0)}
    for op, value in expected.items():
        for rows, cols in [(24, 64), (2, 5)]:
            out = guarded(dtype)
            driver.call(f"t{op}_{dtype}", [a, out], [rows, cols, 0])
            assert_block(out, value[:rows, :cols].astype(a.dtype))
    if not is_float(dtype):
        out = guarded(dtype)
        driver.call(f"tnot_{dtype}", [a, out], [3, 40, 0])
        assert_block(out, ~a[:3, :40])


FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(driver, rng, name, dtype):
    low = -9 if name == "exp" else 0.01
    for rows, cols in [(24, 64), (4, 27), (1, 3)]:
        a, out = sample(rng, dtype, low=low, high=9), guarded(dtype)
        driver.call(f"t{name}_{dtype}", [a, out], [rows, cols, 0])
        exact = FUNCTIONS[name](a[:rows, :cols].astype(np.float64))
        assert_block(out, exact.astype(np.float32), rtol=TOLERANCE[dtype], atol=1e-7)


def test_exponential_over_the_whole_range(driver):
    x = np.zeros((ROWS, PITCH), np.float32)
    values = np.concatenate([np.linspace(-110, 95, 1500), [0.0, -0.0, 88.72283, -87.33655, -103.9]]).astype(np.float32)
    block = np.zeros(ROWS * COLS, np.float32)
    block[: values.size] = values
    x[:, :COLS] = block.reshape(ROWS, COLS)
    out = guarded("f32")
    driver.call("texp_f32", [x, out], [ROWS, COLS, 0])
    exact = np.exp(x[:, :COLS].astype(np.float64))
    with np.errstate(over="ignore"):
        assert_block(out, exact.astype(np.float32), rtol=3e-7, atol=1.5e-45)


def test_special_values_of_functions(driver):
    special = np.zeros((ROWS, PITCH), np.float32)
    special[0, :7] = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-40, 3.4e38]
    with np.errstate(all="ignore"):
        for name, function in FUNCTIONS.items():
            out = guarded("f32")
            driver.call(f"t{name}_f32", [special, out], [1, 7, 0])
            assert_block(out, function(special[:1, :7].astype(np.float64)).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_operands_in_different_layouts(driver, rng, dtype):
    a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
    driver.call(f"mixed_add_{dtype}", [a, b, out], [11, 23])
    assert_block(out, reference("add", a[:11, :23], b[:11, :23]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32"])
def test_partial_operands(driver, rng, dtype):
    operations = [np.add, np.multiply, np.maximum, np.minimum]
    for (r0, c0), (r1, c1) in [((4, 20), (4, 20)), ((4, 20), (2, 20)), ((3, 9), (4, 20)), ((4, 20), (4, 7))]:
        for form, operation in enumerate(operations):
            a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
            driver.call(f"tpart_{dtype}", [a, b, out], [4, 20, r0, c0, r1, c1, form])
            expected = np.zeros((4, 20), a.dtype)
            expected[:r0, :c0] = a[:r0, :c0]
            expected[:r1, :c1] = b[:r1, :c1]
            r, c = min(r0, r1), min(c0, c1)
            with np.errstate(all="ignore"):
                expected[:r, :c] = operation(wide(a[:r, :c]), wide(b[:r, :c])).astype(a.dtype)
            assert_block(out, expected)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(0, ROWS), cols=st.integers(0, COLS), dtype=st.sampled_from(ALL), seed=st.integers(0, 1000))
def test_any_valid_region_touches_only_itself(driver, rows, cols, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype)
    driver.call(f"tadd_{dtype}", [a, b, out], [rows, cols, seed % 2])
    assert_block(out, reference("add", a[:rows, :cols], b[:rows, :cols]))


def test_remainder_of_extreme_operands(driver):
    a, b = np.ones((ROWS, PITCH), np.float32), np.ones((ROWS, PITCH), np.float32)
    a[0, :10] = [1e30, 5.5, -0.0, np.inf, 3.0, 16777215.0, 1e-40, 7.0, -7.0, np.nan]
    b[0, :10] = [3.0, np.inf, 2.0, 2.0, 0.0, 2.0, 3e-45, -0.1, 0.1, 1.0]
    # Rows without extremes take the register path; exact results either way.
    rng = np.random.default_rng(5)
    a[1:] = rng.uniform(-1e6, 1e6, a[1:].shape)
    b[1:] = rng.uniform(0.3, 20, b[1:].shape)
    out = guarded("f32")
    driver.call("tfmod_f32", [a, b, out], [ROWS, COLS, 0])
    with np.errstate(all="ignore"):
        assert_block(out, np.fmod(a[:, :COLS], b[:, :COLS]))
    assert np.signbit(out[0, 2])


def test_negative_zero_scalars_keep_their_sign(driver):
    a, out = np.ones((ROWS, PITCH), np.float32), guarded("f32")
    driver.call("tmuls_f32", [a, out], [1, 20, 0], [-0.0])
    assert np.signbit(out[0, :20]).all()
