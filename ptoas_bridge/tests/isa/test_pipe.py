"""Pipes between the cores of a block: both places of the ring, all splits, both directions, back-pressure."""

from __future__ import annotations

import numpy as np
import pytest
from isa_oracle import sample

DRIVER = "pipe"
M, N, STEPS = 32, 32, 7
NO_SPLIT, UP_DOWN, LEFT_RIGHT, UP_DOWN_ODD, LEFT_RIGHT_ODD = range(5)


@pytest.fixture(params=["memory of the consumer", "global memory"])
def ring(request):
    return int(request.param == "global memory")


@pytest.mark.parametrize("split", range(5))
@pytest.mark.parametrize("rows, cols", [(32, 32), (16, 24), (31, 32), (32, 31)])
def test_cube_to_vector(driver, rng, ring, split, rows, cols):
    odd = split in (UP_DOWN_ODD, LEFT_RIGHT_ODD)
    extent = rows if split in (UP_DOWN, UP_DOWN_ODD) else cols
    if split != NO_SPLIT and (extent % 2 == 1) != odd:
        pytest.skip("the odd split forms are for odd extents")
    data, out = sample(rng, "f32", (STEPS, M, N)), np.zeros((STEPS, M, N), np.float32)
    driver.call("c2v_f32", [data, out, np.zeros(2 * M * N, np.float32)], [rows, cols, ring, split])
    expected = np.zeros_like(data)
    expected[:, :rows, :cols] = data[:, :rows, :cols] + 1000
    if split in (UP_DOWN, UP_DOWN_ODD):
        half = (rows + 1) // 2
        expected[:, half:rows, :cols] = data[:, half:rows, :cols] + 2000
    if split in (LEFT_RIGHT, LEFT_RIGHT_ODD):
        half = (cols + 1) // 2
        expected[:, :rows, half:cols] = data[:, :rows, half:cols] + 2000
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("form", range(5))
def test_vector_to_cube(driver, rng, ring, form):
    data, out = sample(rng, "f16", (STEPS, M, N)), np.zeros((STEPS, M, N), np.float16)
    driver.call("v2c_f16", [data, out, np.zeros(2 * M * N, np.float16)], [ring, form])
    assert (out == data).all()


def test_both_directions(driver, rng, ring):
    data, out = sample(rng, "f32", (STEPS, M, N)), np.zeros((STEPS, M, N), np.float32)
    driver.call("ping_pong_f32", [data, out, np.zeros(4 * M * N, np.float32)], [ring])
    assert (out == 2 * data).all()


def test_views_of_slots(driver, rng):
    data, out = sample(rng, "f32", (STEPS, M, N)), np.zeros((STEPS, M, N), np.float32)
    driver.call("views_f32", [data, out, np.zeros(2 * M * N, np.float32)], [])
    assert (out == data).all()


def test_a_pipe_outside_the_runtime_is_refused(driver):
    with pytest.raises(RuntimeError, match="cross-core pipes work only inside the task runtime"):
        driver.call("mistakes_f32", [], [0])


def test_a_tile_larger_than_the_slot_is_refused(driver):
    with pytest.raises(
        RuntimeError, match=r"TPUSH: a block of \[32, 32\] elements of 4 bytes exceeds the slot of 1024"
    ):
        driver.call("mistakes_f32", [], [1])


def test_a_core_without_the_memory_is_named(driver):
    with pytest.raises(RuntimeError, match="this core has no Vec memory"):
        driver.call("no_such_memory_f32", [], [])


def test_lane_number(driver):
    lanes = np.full(2, -1, np.int64)
    driver.call("lanes_i64", [lanes], [])
    assert lanes.tolist() == [0, 1]
