"""Concatenation of two tiles along their columns, then a scale."""

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, LEFT, RIGHT = 32, 64, 64


@pl.jit
def join_columns(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="join"):
        both = pl.concat(pl.load(a, [0, 0], [ROWS, LEFT]), pl.load(b, [0, 0], [ROWS, RIGHT]))
        out = pl.store(pl.mul(both, 2.0), [0, 0], out)
    return out


ENTRY = join_columns
OUTPUTS = (2,)
ATOL = 0.0


def inputs():
    g = torch.Generator().manual_seed(102)
    return [
        torch.randn(ROWS, LEFT, generator=g),
        torch.randn(ROWS, RIGHT, generator=g),
        torch.zeros(ROWS, LEFT + RIGHT),
    ]


def reference(a, b, out):
    return (torch.cat([a, b], dim=1) * 2.0,)
