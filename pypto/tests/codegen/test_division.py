"""``//`` and ``%`` round down whatever the signs, in kernels and in orchestration functions."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig

ROWS = 7


@pl.jit
def in_kernel(y: pl.Out[pl.Tensor], divisor: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ROWS):
            n = pl.cast(i, pl.INT32) - 3
            pl.write(y, [i, 0], pl.cast(n // divisor, pl.INT32))
            pl.write(y, [i, 1], pl.cast(n % divisor, pl.INT32))
    return y


@pl.jit.incore
def keep(y: pl.Out[pl.Tensor], row: pl.Scalar[pl.INDEX], quotient: pl.Scalar[pl.INT32], rest: pl.Scalar[pl.INT32]):
    pl.write(y, [row, 0], quotient)
    pl.write(y, [row, 1], rest)
    return y


@pl.jit
def in_orchestration(y: pl.Out[pl.Tensor], divisor: pl.Scalar[pl.INT32]):
    for i in pl.range(ROWS):
        n = pl.cast(i, pl.INT32) - 3
        y = keep(y, i, n // divisor, n % divisor)
    return y


@pytest.mark.parametrize("platform", ["torch", "a2a3sim"])
@pytest.mark.parametrize("divisor", [2, -2, 3])
@pytest.mark.parametrize("program", [in_kernel, in_orchestration])
def test_negative_numbers_round_down(program, divisor, platform):
    y = torch.zeros(ROWS, 8, dtype=torch.int32)
    program(y, divisor, config=RunConfig(platform=platform))
    expected = [[n // divisor, n % divisor] for n in range(-3, ROWS - 3)]
    assert y[:, :2].tolist() == expected


def test_what_cannot_be_negative_keeps_the_plain_instructions(pto):
    lines = pto(
        """
        for i in pl.range(4):
            d: pl.Scalar[pl.INDEX] = (i + n) // 2
            r: pl.Scalar[pl.INDEX] = (i + n) % 2
            pl.tensor.write(y, [d, r], 1.0)
        """,
        "y: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
    )
    text = "\n".join(lines)
    assert "arith.divsi" in text and "arith.remsi" in text and "floordivsi" not in text
