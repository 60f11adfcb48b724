"""pl.spmd kernel: six blocks, each block handles one stripe of rows (@pl.jit, loop form)."""

import pypto.language as pl
import torch

BLOCKS, STRIPE, COLS = 6, 16, 128


@pl.jit
def spmd_stripes(x: pl.Tensor, w: pl.Tensor, y: pl.Out[pl.Tensor]):
    for i in pl.spmd(BLOCKS, name_hint="stripes"):
        t = pl.load(x, [i * STRIPE, 0], [STRIPE, COLS])
        weight = pl.load(w, [0, 0], [1, COLS])
        y = pl.store(pl.col_expand_mul(t, weight), [i * STRIPE, 0], y)
    return y


ENTRY = spmd_stripes
OUTPUTS = (2,)
ATOL = 1e-5


def inputs():
    g = torch.Generator().manual_seed(36)
    return [
        torch.randn(BLOCKS * STRIPE, COLS, generator=g),
        torch.randn(1, COLS, generator=g),
        torch.zeros(BLOCKS * STRIPE, COLS),
    ]


def reference(x, w, y):
    return (x * w,)
