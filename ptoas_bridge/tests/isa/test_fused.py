"""Powers and fused forms, windows, signals and transfers, barriers, synchronisation that has nothing to do."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from isa_oracle import COLS, DTYPES, assert_block, guarded, sample, wide

DRIVER = "fused"


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32"])
@pytest.mark.parametrize("form", range(6))
def test_fused_forms(driver, rng, form, dtype):
    a, b, d = sample(rng, dtype, low=0.5, high=3), sample(rng, dtype, low=0.5, high=3), sample(rng, dtype)
    if form >= 4 and dtype == "i32":
        a, b = rng.integers(-4, 5, a.shape).astype(np.int32), rng.integers(0, 6, a.shape).astype(np.int32)
    out = guarded(dtype)
    driver.call(f"fused_{dtype}", [a, b, d, out], [6, 37, form])
    x, y, z = (wide(v[:6, :37]) for v in (a, b, d))
    with np.errstate(all="ignore"):
        forms = [
            lambda: x * y + z,
            lambda: x * z + y,
            lambda: np.maximum(x * z + y, 0),
            lambda: np.maximum(x - y, 0),
            lambda: x**y,
            lambda: x**3,
        ]
        expected = forms[form]()
    assert_block(out, expected.astype(DTYPES[dtype]), rtol=2e-3 if dtype == "f16" else 2e-6, atol=1e-5)


def test_subview_shares_storage_and_pitch(driver, rng):
    a, out = sample(rng, "f32"), guarded("f32")
    driver.call("subview_f32", [a, out], [3, 8, 5, 20])
    expected = a[:, :COLS].copy()
    expected[3:8, 8:28] += 100
    assert_block(out, expected)
    with pytest.raises(RuntimeError, match=r"TSUBVIEW: window \[20, 0\] \+ \[5, 20\] leaves the tile of \[24, 64\]"):
        driver.call("subview_f32", [a, out], [20, 0, 5, 20])


def test_signals(driver):
    memory = np.zeros(64, np.int32)
    driver.call("signals_i32", [memory], [])
    assert memory[0] == 7 and memory[1] == 1 and memory[2] == 0
    assert memory[16:32].tolist() == [8, 9, 9, 0, 0, 0, 0, 0, 9, 9, 9, 0, 0, 0, 0, 0]


def test_transfers_and_collectives(driver, rng):
    a, copied, added = sample(rng, "f32"), guarded("f32"), sample(rng, "f32")
    before, total, gathered = added.copy(), guarded("f32"), guarded("f32")
    driver.call("transfer_f32", [a, copied, added, total, gathered], [])
    assert_block(copied, a[:5, :33])
    assert (added[:5, :33] == before[:5, :33] + a[:5, :33]).all() and (added[5:] == before[5:]).all()
    assert_block(total, a[:5, :33] + added[:5, :33])
    assert_block(gathered, np.concatenate([a[:5, :33], added[:5, :33]]))


def test_soft_barrier_waits_for_all(driver):
    workspace, arrived, seen = np.zeros(16, np.int32), [], []

    def core(number):
        for _ in range(3):
            arrived.append(number)
            driver.call("barrier_i32", [workspace], [3])
            seen.append(len(arrived))

    threads = [threading.Thread(target=core, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(count >= 3 for count in seen) and workspace[0] == 9


def test_barriers_that_cannot_work_say_so(driver):
    with pytest.raises(RuntimeError, match="SYNCALL: the hard all-core barrier needs hardware"):
        driver.call("barrier_i32", [np.zeros(16, np.int32)], [0])


def test_synchronisation_inside_a_core_is_accepted(driver):
    driver.call("synchronisation_i32", [], [])
