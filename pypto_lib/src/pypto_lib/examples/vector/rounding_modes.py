"""FP32 to INT32 with every rounding mode that differs: nearest even, nearest away, floor, ceiling, truncation."""

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, COLS = 16, 128


@pl.jit
def rounding_modes(
    x: pl.Tensor,
    even: pl.Out[pl.Tensor],
    away: pl.Out[pl.Tensor],
    down: pl.Out[pl.Tensor],
    up: pl.Out[pl.Tensor],
    cut: pl.Out[pl.Tensor],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rounding"):
        even[:] = pl.cast(x, pl.INT32, mode="rint")
        away[:] = pl.cast(x, pl.INT32, mode="round")
        down[:] = pl.cast(x, pl.INT32, mode="floor")
        up[:] = pl.cast(x, pl.INT32, mode="ceil")
        cut[:] = pl.cast(x, pl.INT32, mode="trunc")
    return even, away, down, up, cut


ENTRY = rounding_modes
OUTPUTS = (1, 2, 3, 4, 5)
ATOL = 0.0


def inputs():
    g = torch.Generator().manual_seed(103)
    halves = torch.randint(-9, 9, (ROWS, COLS), generator=g) / 2.0
    return [halves, *(torch.zeros(ROWS, COLS, dtype=torch.int32) for _ in range(5))]


def reference(x, even, away, down, up, cut):
    nearest_away = torch.sign(x) * torch.floor(x.abs() + 0.5)
    return x.round().int(), nearest_away.int(), x.floor().int(), x.ceil().int(), x.trunc().int()
