"""Conversions: rounding modes, saturation, wrapping, the 8-bit and 4-bit formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from isa_oracle import DTYPES, PITCH, ROWS, assert_block, guarded, sample, wide

DRIVER = "convert"
NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = range(7)
ON, OFF = 0, 1


def half_away(x):
    return np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0)


def to_odd(x):
    whole = np.trunc(x)
    tie = np.abs(x - whole) == 0.5
    return np.where(tie, np.where(whole % 2 != 0, whole, whole + np.sign(x)), np.rint(x))


ROUNDING = {
    NONE: np.trunc,
    RINT: np.rint,
    ROUND: half_away,
    FLOOR: np.floor,
    CEIL: np.ceil,
    TRUNC: np.trunc,
    ODD: to_odd,
}
FLOAT_TO_INT = [
    ("f32", "i16"),
    ("f32", "i32"),
    ("f32", "i64"),
    ("f16", "i32"),
    ("f16", "i16"),
    ("f16", "i8"),
    ("f16", "u8"),
    ("bf16", "i32"),
]


@pytest.mark.parametrize("mode", ROUNDING)
@pytest.mark.parametrize("source, target", FLOAT_TO_INT)
def test_float_to_integer_rounds_by_the_mode(driver, rng, source, target, mode):
    a = sample(rng, source, low=0 if target == "u8" else -100, high=100)
    a[0, :12] = np.array([2.5, -2.5, 3.5, 0.5, -0.5, 1.5, -1.5, 0.0, -0.0, 0.49999, 7.0, -7.0]).astype(a.dtype)
    if target == "u8":
        a = np.abs(wide(a)).astype(a.dtype)
    for rows, cols in [(24, 64), (3, 21)]:
        out = guarded(target)
        driver.call(f"tcvt_{source}_{target}", [a, out], [rows, cols, mode, OFF, 0])
        expected = ROUNDING[mode](wide(a[:rows, :cols]).astype(np.float64)).astype(DTYPES[target])
        assert_block(out, expected)


@pytest.mark.parametrize("source, target", FLOAT_TO_INT)
def test_float_to_integer_saturates_and_nan_is_zero(driver, source, target):
    a = np.zeros((ROWS, PITCH), DTYPES[source])
    a[0, :5] = np.array([np.inf, -np.inf, np.nan, 6e4, -6e4]).astype(a.dtype)
    out = guarded(target)
    driver.call(f"tcvt_{source}_{target}", [a, out], [1, 5, RINT, OFF, 0])
    info = np.iinfo(DTYPES[target])
    assert out[0, :3].tolist() == [info.max, info.min, 0]
    assert out[0, 3] == min(int(wide(a)[0, 3]), info.max)
    assert out[0, 4] == max(int(wide(a)[0, 4]), info.min)


def test_large_floats_to_integers(driver):
    a = np.zeros((ROWS, PITCH), np.float32)
    a[0, :6] = [2147483520.0, 2147483648.0, -2147483648.0, -3e9, 8388609.0, 16777217.0]
    out = guarded("i32")
    driver.call("tcvt_f32_i32", [a, out], [1, 6, RINT, OFF, 0])
    assert out[0, :6].tolist() == [2147483520, 2147483647, -2147483648, -2147483648, 8388609, 16777216]


@pytest.mark.parametrize("mode", [RINT, ROUND, FLOOR, CEIL, TRUNC, ODD])
def test_float_to_float_rounds_to_integral_values(driver, rng, mode):
    a, out = sample(rng, "f32", low=-50, high=50), guarded("f32")
    a[0, :5] = [np.nan, np.inf, -np.inf, -0.25, 1e30]
    driver.call("tcvt_f32_f32", [a, out], [5, 40, mode, OFF, 0])
    with np.errstate(invalid="ignore"):
        assert_block(out, ROUNDING[mode](a[:5, :40]))


@pytest.mark.parametrize("source, target", [("f32", "f16"), ("f32", "bf16"), ("bf16", "f16")])
@pytest.mark.parametrize("mode", [ROUND, TRUNC])
def test_narrower_floats_round_to_nearest_even_in_every_mode(driver, rng, source, target, mode):
    a = sample(rng, source, low=-1e4, high=1e4)
    a[0, :6] = np.array([65520.0, -1e38, np.nan, 1e-8, np.inf, 2049.0]).astype(a.dtype)
    for rows, cols in [(24, 64), (2, 19)]:
        out = guarded(target)
        driver.call(f"tcvt_{source}_{target}", [a, out], [rows, cols, mode, OFF, 0])
        with np.errstate(over="ignore"):
            assert_block(out, wide(a[:rows, :cols]).astype(DTYPES[target]))


@pytest.mark.parametrize("source, target", [("f16", "f32"), ("bf16", "f32"), ("e4m3", "f32"), ("e5m2", "f32")])
def test_wider_floats_are_exact(driver, rng, source, target):
    a, out = sample(rng, source), guarded(target)
    driver.call(f"tcvt_{source}_{target}", [a, out], [7, 33, RINT, OFF, 0])
    assert_block(out, a[:7, :33].astype(np.float32))


@pytest.mark.parametrize(
    "source, target",
    [("i16", "f16"), ("i16", "f32"), ("i32", "f32"), ("i64", "f32"), ("u8", "f16"), ("i8", "f16"), ("i32", "f16")],
)
def test_integers_to_floats_round_to_nearest_even(driver, rng, source, target):
    a, out = sample(rng, source), guarded(target)
    a[0, 0] = 1
    driver.call(f"tcvt_{source}_{target}", [a, out], [9, 47, ROUND, OFF, 0])
    with np.errstate(over="ignore"):
        assert_block(out, a[:9, :47].astype(DTYPES[target]))


INT_TO_INT = [
    ("i32", "i16"),
    ("i32", "u8"),
    ("i16", "u8"),
    ("i64", "i32"),
    ("u32", "u8"),
    ("i16", "i32"),
    ("i8", "i32"),
    ("i32", "i64"),
]


@pytest.mark.parametrize("source, target", INT_TO_INT)
def test_integers_wrap_without_saturation_and_clamp_with_it(driver, rng, source, target):
    a = sample(rng, source)
    info = np.iinfo(DTYPES[target])
    for saturation in (OFF, ON):
        out = guarded(target)
        driver.call(f"tcvt_{source}_{target}", [a, out], [6, 35, RINT, saturation, 0])
        block = a[:6, :35]
        if saturation == ON:
            block = np.clip(block.astype(np.int64), info.min, info.max)
        assert_block(out, block.astype(DTYPES[target]))


@pytest.mark.parametrize("source, target", [("f16", "f32"), ("f32", "f16"), ("i32", "i64"), ("i16", "f32")])
def test_conversion_in_place(driver, rng, source, target):
    a, out = sample(rng, source), guarded(target)
    driver.call(f"tcvt_{source}_{target}", [a, out], [24, 64, RINT, OFF, 1])
    assert_block(out, a[:24, :64].astype(DTYPES[target]))


def test_column_vectors_convert_in_order(driver, rng):
    a, out = sample(rng, "f32"), guarded("f16")
    driver.call("column_cvt_f16", [a, out], [21])
    assert_block(out, a[:21, :1].astype(np.float16))


@pytest.mark.parametrize("target", ["e4m3", "e5m2"])
def test_eight_bit_floats(driver, rng, target):
    a = sample(rng, "f32", low=-500, high=500)
    a[0, :8] = [448, 464, 1e6, -1e6, 0.001, 0.0019, np.nan, 2.0**-9]
    out = guarded(target)
    driver.call(f"tcvt_f32_{target}", [a, out], [8, 40, RINT, OFF, 0])
    limited = np.clip(a[:8, :40], -448, 448) if target == "e4m3" else a[:8, :40]
    with np.errstate(over="ignore"):
        assert_block(out, limited.astype(DTYPES[target]))


FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e8m0": ml_dtypes.float8_e8m0fnu}


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_of_a_byte_format(driver, name):
    decoded, again = np.zeros(256, np.float32), np.zeros(256, np.uint8)
    driver.call(f"codes_{name}", [decoded, again, decoded, decoded], [0])
    expected = np.arange(256, dtype=np.uint8).view(FORMATS[name]).astype(np.float32)
    np.testing.assert_array_equal(decoded, expected)
    same = ~np.isnan(expected) & ~np.isinf(expected)
    assert (again[same] == np.arange(256)[same]).all()


def test_hifloat8_codes_of_the_manual(driver):
    decoded, again = np.zeros(256, np.float32), np.zeros(256, np.uint8)
    inputs = np.array([1.04, 1.07, 40000.0, 1e9, -3.1, 2.0**-22, 0.0, np.nan], np.float32)
    rounded = np.zeros_like(inputs)
    driver.call("codes_hif8", [decoded, again, inputs, rounded], [inputs.size])
    assert decoded[[0x08, 0x10, 0x6E, 0x6F, 0x01, 0x70, 0x81]].tolist() == [
        1.0, 2.0, 32768.0, np.inf, 2.0**-22, 2.0**-8, -(2.0**-22),
    ]  # fmt: skip
    assert np.isnan(decoded[0x80]) and decoded[0] == 0
    same = ~np.isnan(decoded)
    assert (again[same] == np.arange(256)[same]).all()
    assert rounded[:5].tolist() == [1.0, 1.125, 32768.0, np.inf, -3.0]
    assert rounded[5] == 2.0**-22 and rounded[6] == 0 and np.isnan(rounded[7])


TABLES = {
    "e2m1": [0, 0.5, 1, 1.5, 2, 3, 4, 6],
    "e1m2": [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75],
}


@pytest.mark.parametrize("name", TABLES)
def test_four_bit_pairs_unpack_low_nibble_first_and_pack_back(driver, name):
    packed = np.arange(256, dtype=np.uint8).reshape(8, 32)
    unpacked, back = np.zeros((8, 64), ml_dtypes.bfloat16), np.zeros((8, 32), np.uint8)
    driver.call(f"pairs_{name}", [packed, unpacked, back], [])
    values = np.array(TABLES[name] + [-v for v in TABLES[name]], np.float32)
    expected = np.stack([values[packed & 15], values[packed >> 4]], -1).reshape(8, 64)
    np.testing.assert_array_equal(unpacked.astype(np.float32), expected)
    assert (back == packed).all()
