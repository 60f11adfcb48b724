"""Loads, stores, moves between layouts, windows, padding, reshapes, and the checks on addresses and windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isa_oracle import COLS, DTYPES, FLOATS, INTS, PITCH, ROWS, assert_block, guarded, is_float, sample, wide

DRIVER = "move"
# Blocks are transposed in registers of the machine's width: target -> flag it needs.
ALSO_MARCH = {"x86-64-v3": "avx2"}
LAYOUTS = {"rows": 0, "columns": 1, "NZ": 2, "ZN": 3, "ZZ": 4, "NN": 5}


def offset(layout: str, dtype: str, i: int, j: int, rows=32, cols=64) -> int:
    """Storage position by the layout formulas of the manual."""
    run = 32 // DTYPES[dtype].itemsize
    if layout == "rows":
        return i * cols + j
    if layout == "columns":
        return j * rows + i
    ir, ic = (16, run) if layout in ("NZ", "ZZ") else (run, 16)
    br, r, bc, c, n = i // ir, i % ir, j // ic, j % ic, ir * ic
    inside = r * ic + c if layout in ("NZ", "ZZ") else c * ir + r
    if layout in ("NZ", "NN"):
        return bc * rows * ic + br * n + inside
    return br * cols * ir + bc * n + inside


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_every_pair_of_layouts(driver, rng, source, target, dtype):
    for rows, cols in [(32, 64), (16, 32), (21, 43), (1, 1)]:
        a, out = sample(rng, dtype, (32, PITCH)), guarded(dtype, (32, PITCH))
        raw = np.zeros(32 * 64, DTYPES[dtype])
        driver.call(f"move_{dtype}", [a, out, raw], [rows, cols, LAYOUTS[target], LAYOUTS[source]])
        assert_block(out, a[:rows, :cols])
        for i, j in [(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 3)]:
            assert raw[offset(target, dtype, i, j)] == a[i, j]


def test_offsets_of_the_manual():
    assert offset("NZ", "f16", 17, 5, 32, 32) == 277
    assert offset("NZ", "f16", 0, 16, 32, 32) == 512
    assert [offset("ZN", "f16", *at, 32, 32) for at in [(1, 0), (0, 1), (0, 16), (16, 0)]] == [1, 16, 256, 512]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
@pytest.mark.parametrize("layout", ["rows", "columns", "NZ", "ZN", "ZZ"])
def test_extract_and_insert_windows(driver, rng, layout, dtype):
    for rows, cols, r, c in [(16, 32, 16, 32), (16, 32, 0, 0), (5, 7, 3, 11), (16, 32, 16, 0)]:
        a, b = sample(rng, dtype, (32, PITCH)), sample(rng, dtype, (32, PITCH))
        small, big = guarded(dtype, (32, PITCH)), guarded(dtype, (32, PITCH))
        driver.call(f"window_{dtype}", [a, small, b, big], [rows, cols, r, c, LAYOUTS[layout]])
        assert_block(small, a[r : r + rows, c : c + cols])
        expected = b[:32, :64].copy()
        expected[r : r + rows, c : c + cols] = a[r : r + rows, c : c + cols]
        assert_block(big, expected)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_transpose(driver, rng, dtype):
    for rows, cols in [(24, 64), (8, 8), (5, 19), (1, 64)]:
        a, out = sample(rng, dtype), guarded(dtype, (64, PITCH))
        driver.call(f"ttrans_{dtype}", [a, out], [rows, cols])
        assert_block(out, a[:rows, :cols].T)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_concatenation_of_valid_columns(driver, rng, dtype):
    a, b, out = sample(rng, dtype), sample(rng, dtype), guarded(dtype, (ROWS, 160))
    driver.call(f"tconcat_{dtype}", [a, b, out], [7, 13, 40])
    assert_block(out, np.concatenate([a[:7, :13], b[:7, :40]], 1))


@pytest.mark.parametrize("dtype", ["f32", "f16", "u8"])
def test_column_vectors_and_column_major_views(driver, rng, dtype):
    rows, cols = 24, 30
    a, dn = sample(rng, dtype), sample(rng, dtype, (40, PITCH))
    vector, plain, boxed, back = guarded(dtype), guarded(dtype), guarded(dtype), guarded(dtype, (40, PITCH))
    driver.call(f"column_{dtype}", [a, vector, dn, plain, boxed, back], [rows, cols])
    assert_block(vector, a[:rows, :1])
    assert_block(plain, dn[:cols, :rows].T)
    assert_block(boxed, dn[:cols, :rows].T)
    assert_block(back, dn[:cols, :rows])


def test_leading_extents_become_rows(driver, rng):
    a, out = sample(rng, "f32", (24, 80)), guarded("f32", (24, 80))
    driver.call("leading_f32", [a, out], [])
    assert_block(out, a[:, :40])


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_packed_views_of_global_memory(driver, rng, dtype):
    c0 = 32 // DTYPES[dtype].itemsize
    logical = sample(rng, dtype, (32, 64))
    nz = np.ascontiguousarray(logical.reshape(2, 16, 64 // c0, c0).transpose(2, 0, 1, 3))
    out, back = guarded(dtype, (32, PITCH)), np.zeros_like(nz)
    driver.call(f"packed_{dtype}", [nz, out, back], [])
    assert_block(out, logical)
    assert (back.view(np.uint8) == nz.view(np.uint8)).all()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
def test_atomic_store_adds(driver, rng, dtype):
    a, out = sample(rng, dtype, low=0, high=2), sample(rng, dtype, low=0, high=2)
    before = out.copy()
    driver.call(f"atomic_{dtype}", [a, out], [6, 33])
    expected = before.copy()
    with np.errstate(over="ignore"):
        expected[:6, :33] = (wide(before[:6, :33]) + wide(a[:6, :33])).astype(a.dtype)
    assert (out == expected).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_accumulator_stores(driver, rng, dtype):
    a = sample(rng, "f32")
    forms = [a, np.maximum(a, 0), a * np.float32(0.25), a]
    for form, value in enumerate(forms):
        out, moved = guarded(dtype), guarded(dtype)
        driver.call(f"accumulator_{dtype}", [a, out, moved], [19, 50, form], [0.25])
        assert_block(out, value[:19, :50].astype(DTYPES[dtype]))
        assert_block(moved, a[:19, :50].astype(DTYPES[dtype]))


def test_quantising_store_saturates(driver, rng):
    a, out = sample(rng, "f32", low=-300, high=300), guarded("i8")
    driver.call("accumulator_i8", [a, out, guarded("i8")], [16, 16, 2], [0.5])
    assert_block(out, np.clip(np.rint(a[:16, :16] * 0.5), -128, 127).astype(np.int8))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("pad", [1, 2, 3])
def test_fill_with_the_pad_value(driver, rng, pad, dtype):
    if is_float(dtype):
        value = [0, np.inf, -np.inf][pad - 1]
    else:
        info = np.iinfo(DTYPES[dtype])
        value = [0, info.max, info.min][pad - 1]
    for rows, cols, form in [(5, 20, 0), (24, 64, 0), (7, 33, 1), (16, 30, 2)]:
        a, out = sample(rng, dtype), guarded(dtype)
        driver.call(f"pad_{dtype}", [a, out], [rows, cols, pad, form])
        expected = np.full((ROWS, COLS), value, DTYPES[dtype])
        expected[:rows, :cols] = a[:rows, :cols]
        assert_block(out, expected)


def test_load_pads_the_last_block_of_a_row(driver, rng):
    a, out = sample(rng, "f32"), guarded("f32")
    driver.call("load_pad_f32", [a, out], [3, 21])
    expected = np.full((3, 24), -np.inf, np.float32)
    expected[:, :21] = a[:3, :21]
    assert_block(out, expected)


def test_matrix_tiles_pad_with_zero(driver, rng):
    a, out = sample(rng, "f16", (32, PITCH)), guarded("f16", (32, PITCH))
    driver.call("mat_pad_f16", [a, out], [19, 37])
    expected = np.zeros((32, 64), np.float16)
    expected[:19, :37] = a[:19, :37]
    assert_block(out, expected)


def test_reshape_shares_storage(driver, rng):
    a, out, element = sample(rng, "f32", (24, 64)), np.zeros((48, 32), np.float32), np.zeros(1, np.float32)
    driver.call("reshape_f32", [a, out, element], [])
    assert (out == a.reshape(48, 32)).all()
    assert element[0] == 42


@pytest.mark.parametrize(
    "case, message",
    [
        (0, "a Vec tile of 6144 bytes at address 262044 exceeds the 262144 bytes of that memory"),
        (2, "a Vec tile is used before TASSIGN"),
        (3, r"valid region \[25, 64\] does not fit a Vec tile of \[24, 64\]"),
        (4, r"TEXTRACT: window \[1, 0\] \+ \[24, 64\] leaves the tile of \[24, 64\]"),
        (5, "element 1536 is outside a tile of 1536 elements"),
    ],
)
def test_mistakes_have_one_clear_message(driver, case, message):
    with pytest.raises(RuntimeError, match=message):
        driver.call("out_of_memory_f32", [], [case])


def test_only_the_valid_region_must_fit_the_memory(driver):
    driver.call("out_of_memory_f32", [], [1])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(0, 32),
    cols=st.integers(0, 64),
    source=st.sampled_from(sorted(LAYOUTS)),
    target=st.sampled_from(sorted(LAYOUTS)),
    dtype=st.sampled_from(["f32", "f16", "i8"]),
)
def test_a_move_keeps_every_element(driver, rows, cols, source, target, dtype):
    a, out = sample(np.random.default_rng(rows * 65 + cols), dtype, (32, PITCH)), guarded(dtype, (32, PITCH))
    raw = np.zeros(32 * 64, DTYPES[dtype])
    driver.call(f"move_{dtype}", [a, out, raw], [rows, cols, LAYOUTS[target], LAYOUTS[source]])
    assert_block(out, a[:rows, :cols])
