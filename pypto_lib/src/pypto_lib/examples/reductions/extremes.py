"""Largest and smallest value per row and per column."""

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, COLS = 32, 64


@pl.jit
def extremes(
    x: pl.Tensor,
    row_top: pl.Out[pl.Tensor],
    row_low: pl.Out[pl.Tensor],
    col_top: pl.Out[pl.Tensor],
    col_low: pl.Out[pl.Tensor],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="extremes"):
        row_top[:] = pl.row_max(x)
        row_low[:] = pl.row_min(x)
        col_top[:] = pl.col_max(x)
        col_low[:] = pl.col_min(x)
    return row_top, row_low, col_top, col_low


ENTRY = extremes
OUTPUTS = (1, 2, 3, 4)
ATOL = 0.0


def inputs():
    g = torch.Generator().manual_seed(104)
    rows, cols = torch.zeros(ROWS, 1), torch.zeros(1, COLS)
    return [torch.randn(ROWS, COLS, generator=g), rows, rows.clone(), cols, cols.clone()]


def reference(x, row_top, row_low, col_top, col_low):
    return x.amax(1, keepdim=True), x.amin(1, keepdim=True), x.amax(0, keepdim=True), x.amin(0, keepdim=True)
