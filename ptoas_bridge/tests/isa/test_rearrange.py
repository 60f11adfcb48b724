"""Gathers, scatters, sequences, sorts, memory gathers and quantisation."""

from __future__ import annotations

import numpy as np
import pytest
from isa_oracle import COLS, DTYPES, PITCH, ROWS, assert_block, guarded, sample

DRIVER = "rearrange"
PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_gather_and_scatter_by_flat_index(driver, rng, dtype):
    a, target = sample(rng, dtype), sample(rng, dtype)
    index = np.zeros((ROWS, PITCH), np.int32)
    index[:5, :20] = rng.permutation(ROWS * COLS)[:100].reshape(5, 20)
    out, scattered = guarded(dtype), guarded(dtype)
    driver.call(f"tgather_{dtype}", [a, index, out, target, scattered], [5, 20])
    picked = a[:, :COLS].reshape(-1)[index[:5, :20]]
    assert_block(out, picked)
    expected = target[:, :COLS].copy().reshape(-1)
    expected[index[:5, :20]] = picked
    assert_block(scattered, expected.reshape(ROWS, COLS))


def test_gather_outside_the_source_gives_zero(driver, rng):
    a, index = sample(rng, "f32"), np.zeros((ROWS, PITCH), np.int32)
    index[0, :3] = [-1, ROWS * COLS, 0]
    out = guarded("f32")
    with pytest.raises(RuntimeError, match="TSCATTER: index -1 is outside a tile of 1536 elements"):
        driver.call("tgather_f32", [a, index, out, a, guarded("f32")], [1, 3])
    assert out[0, :3].tolist() == [0, 0, a[0, 0]]


@pytest.mark.parametrize("dtype", ["f32", "i16"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_mask_patterns(driver, rng, pattern, dtype):
    step, first = PATTERNS[pattern]
    for rows, cols in [(24, 64), (3, 20)]:
        a, target, out, scattered = sample(rng, dtype), sample(rng, dtype), guarded(dtype), guarded(dtype)
        picked = a[:rows, first:cols:step]
        driver.call(f"masked_{dtype}", [a, out, target, scattered], [rows, cols, picked.shape[1], pattern])
        assert_block(out, picked)
        expected = target[:rows, :cols].copy()
        expected[:, first:cols:step] = picked
        assert_block(scattered, expected)


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_gather_by_comparison_counts_and_lists_positions(driver, rng, dtype):
    a = rng.integers(0, 10, (ROWS, PITCH)).astype(DTYPES[dtype])
    out, counts = guarded("i32"), guarded("i32")
    driver.call(f"compared_{dtype}", [a, out, counts], [6, 40], [6])
    expected, number = np.full((6, 8), -1, np.int32), np.zeros((1, 6), np.int32)
    for i in range(6):
        hits = np.flatnonzero(a[i, :40] > 6)
        number[0, i] = hits.size
        expected[i, : min(8, hits.size)] = hits[:8] + 100
    assert_block(out, expected)
    assert_block(counts, number)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_gather_of_blocks_by_byte_offset(driver, rng, dtype):
    size = DTYPES[dtype].itemsize
    a, offsets, out = sample(rng, dtype), np.zeros((ROWS, PITCH), np.uint32), guarded(dtype)
    offsets[:4, :2] = rng.integers(0, ROWS * COLS * size // 32, (4, 2)) * 32
    driver.call(f"tgatherb_{dtype}", [a, offsets, out], [4, 2])
    flat = a[:, :COLS].reshape(-1)
    expected = np.stack(
        [np.concatenate([flat[o // size : o // size + 32 // size] for o in row]) for row in offsets[:4, :2]]
    )
    assert_block(out, expected)


@pytest.mark.parametrize("dtype", ["i32", "i16"])
def test_sequences_and_triangles(driver, dtype):
    up, down, lower, upper = (guarded(dtype) for _ in range(4))
    driver.call(f"sequences_{dtype}", [up, down, lower, upper], [37, 5, 7, 1])
    assert_block(up, np.arange(5, 42, dtype=DTYPES[dtype])[None])
    assert_block(down, np.arange(5, 5 - 37, -1, dtype=DTYPES[dtype])[None])
    assert_block(lower, np.tril(np.ones((5, 7), DTYPES[dtype]), 1))
    assert_block(upper, np.triu(np.ones((5, 7), DTYPES[dtype]), 1))


def test_random_depends_on_the_key_only(driver):
    first, again, other = guarded("u32"), guarded("u32"), guarded("u32")
    driver.call("random_u32", [first], [1])
    driver.call("random_u32", [again], [1])
    driver.call("random_u32", [other], [2])
    assert (first == again).all() and (first[:, :COLS] != other[:, :COLS]).mean() > 0.99
    bits = np.unpackbits(np.ascontiguousarray(first[:, :COLS]).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.02


def records(row: np.ndarray, dtype: str):
    """Values and indices of a row of sort records."""
    per = 8 // DTYPES[dtype].itemsize
    raw = np.ascontiguousarray(row).reshape(-1, per)
    return raw[:, 0], np.ascontiguousarray(raw[:, per // 2 :]).view(np.uint32)[:, 0]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_sort_blocks_then_merge_them(driver, rng, dtype):
    per = 8 // DTYPES[dtype].itemsize
    for cols in (128, 70):
        a = rng.integers(0, 50, (2, 128)).astype(DTYPES[dtype])
        index = np.broadcast_to(np.arange(128, dtype=np.uint32), (2, 128)).copy()
        sorted_, merged = np.zeros((2, 128 * per), a.dtype), np.zeros((2, 128 * per), a.dtype)
        driver.call(f"sort_{dtype}", [a, index, sorted_, merged], [2, cols])
        for i in range(2):
            values, positions = records(sorted_[i, : cols * per], dtype)
            for first in range(0, cols, 32):
                block = slice(first, min(first + 32, cols))
                order = first + np.argsort(-a[i, block].astype(np.float32), kind="stable")
                assert (positions[block] == order).all() and (values[block] == a[i, order]).all()
            values, positions = records(merged[i, : cols * per], dtype)
            order = np.argsort(-a[i, :cols].astype(np.float32), kind="stable")
            assert (positions == order).all() and (values == a[i, order]).all()


@pytest.mark.parametrize("exhausted", [0, 1])
def test_merge_of_three_lists(driver, rng, exhausted):
    lengths = [20, 7, 13]
    lists = []
    for number, length in enumerate(lengths):
        values = np.sort(rng.uniform(0, 10, length).astype(np.float32))[::-1]
        record = np.zeros((1, 128), np.float32)
        record[0, 0 : 2 * length : 2] = values
        record[0, 1 : 2 * length : 2] = np.arange(length, dtype=np.uint32).view(np.float32) if number == 0 else 0
        lists.append(record)
    out, counts = np.zeros((1, PITCH), np.float32), np.zeros(4, np.uint16)
    out = np.zeros((1, 160), np.float32)
    driver.call("merge_f32", [*lists, out, counts], [*lengths, exhausted])
    everything = np.sort(np.concatenate([r[0, 0 : 2 * n : 2] for r, n in zip(lists, lengths)]))[::-1]
    taken = int(counts.sum())
    assert (out[0, 0 : 2 * taken : 2] == everything[:taken]).all()
    if exhausted:
        assert any(int(c) == n for c, n in zip(counts, lengths)) and taken < sum(lengths)
    else:
        assert counts[:3].tolist() == lengths and counts[3] == 0


@pytest.mark.parametrize("policy", range(4))
@pytest.mark.parametrize("elements", [0, 1])
def test_gather_from_memory(driver, rng, elements, policy):
    table, index, out = sample(rng, "f32"), np.zeros((ROWS, PITCH), np.int32), guarded("f32")
    size = 300 if elements else 10
    spread = (0, size) if policy == 0 else (-size, 2 * size)
    index[:] = rng.integers(*spread, index.shape)
    driver.call("mgather_f32", [table, index, out], [6, 30, elements, policy])
    used = index[:6, :30] if elements else index[0, :6]
    inside = (used >= 0) & (used < size)
    resolved = np.clip(used, 0, size - 1) if policy == 1 else used % size
    flat = table[:10, :30].reshape(-1)
    expected = flat[resolved] if elements else table[resolved, :30]
    if policy == 3:
        expected = np.where(inside if elements else inside[:, None], expected, 0)
    assert_block(out, expected.astype(np.float32))


def test_index_outside_memory_without_a_policy_is_an_error(driver, rng):
    index = np.full((ROWS, PITCH), 10, np.int32)
    with pytest.raises(RuntimeError, match=r"MGATHER: index 10 is outside \[0, 10\)"):
        driver.call("mgather_f32", [sample(rng, "f32"), index, guarded("f32")], [2, 30, 0, 0])


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_scatter_to_memory(driver, rng, dtype):
    a = rng.integers(-9, 9, (ROWS, PITCH)).astype(DTYPES[dtype])
    table = rng.integers(-9, 9, (ROWS, PITCH)).astype(DTYPES[dtype])
    index = np.zeros((ROWS, PITCH), np.int32)
    index[0, :4] = [3, 12, 0, 7]
    result = table.copy()
    driver.call(f"mscatter_{dtype}", [result, index, a], [4, 30, 0, 0])
    expected = table.copy()
    expected[[3, 0, 7], :30] = a[[0, 2, 3], :30]
    assert (result == expected).all()
    for form, function in [(1, np.add), (2, np.maximum), (3, np.minimum)]:
        low, high = {1: (0, 300), 2: (-300, 600), 3: (-100, 400)}[form]
        index[:5, :20] = rng.integers(low, high, (5, 20))
        resolved = {1: index, 2: index % 300, 3: np.clip(index, 0, 299)}[form][:5, :20]
        result, flat = table.copy(), table[:10, :30].copy().reshape(-1)
        driver.call(f"mscatter_{dtype}", [result, index, a], [5, 20, 1, form])
        function.at(flat, resolved, a[:5, :20])
        assert (result[:10, :30].reshape(-1) == flat).all()
        assert (result[10:] == table[10:]).all() and (result[:, 30:] == table[:, 30:]).all()


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_quantise_and_back(driver, rng, dtype):
    a, scale, offset = (
        sample(rng, "f32", low=-40, high=40),
        sample(rng, "f32", low=1, high=5),
        np.zeros((ROWS, PITCH), np.float32),
    )
    offset[:] = 3 if dtype == "u8" else 0
    out, back = guarded(dtype), guarded("f32")
    driver.call(f"quantise_{dtype}", [a, scale, offset, out, back], [9, 35])
    info = np.iinfo(DTYPES[dtype])
    q = np.clip(np.rint(a[:9, :35] * scale[:9, :1]) + offset[:9, :1], info.min, info.max)
    assert_block(out, q.astype(DTYPES[dtype]))
    assert_block(back, (q - offset[:9, :1]) * scale[:9, :1], rtol=1e-6)


def test_quantise_groups_of_32_columns(driver, rng):
    a = sample(rng, "f32", low=-1000, high=1000)
    a[1, :32] *= 1e-3
    a[2, :32] = 0
    out, codes = guarded("e4m3"), np.full((ROWS, PITCH), 0x5A, np.uint8)
    top, scaling = guarded("f32"), guarded("f32")
    driver.call("quantise_groups_e4m3", [a, out, codes, top, scaling], [])
    groups = a[:5, :64].reshape(5, 2, 32)
    largest = np.abs(groups).max(2)
    expected = np.maximum((largest.view(np.int32) >> 23) - 8, 0)
    assert (codes[:5, :2] == expected).all()
    assert_block(top, largest)
    assert_block(scaling, np.exp2(127.0 - expected).astype(np.float32))
    values = (groups * np.exp2(127.0 - expected)[..., None]).reshape(5, 64)
    assert_block(out, np.clip(values, -448, 448).astype(np.float32).astype(DTYPES["e4m3"]))


def test_histogram_of_bytes_with_a_filter(driver, rng):
    a = rng.integers(0, 1024, (ROWS, PITCH)).astype(np.uint16)
    chosen = np.zeros((ROWS, PITCH), np.uint8)
    chosen[:8, 0] = rng.integers(0, 4, 8)
    high, low = np.zeros((8, 256), np.uint32), np.zeros((8, 256), np.uint32)
    driver.call("histogram_u16", [a, chosen, high, low], [])
    for i in range(8):
        row = a[i, :50]
        assert (high[i] == np.bincount(row >> 8, minlength=256)).all()
        matching = row[(row >> 8) == chosen[i, 0]]
        assert (low[i] == np.bincount(matching & 255, minlength=256)).all()
