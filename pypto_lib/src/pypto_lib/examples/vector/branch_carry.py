"""if/else with yielded values inside a loop that carries a tile and a scalar choice read from a tensor (@pl.jit)."""

import pypto.language as pl
import torch

ROWS, COLS, STEPS = 32, 64, 6


@pl.jit
def branch_carry(x: pl.Tensor, plan: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="branch"):
        start = pl.load(x, [0, 0], [ROWS, COLS])
        for i, (state,) in pl.range(STEPS, init_values=(start,)):
            choice = pl.read(plan, [i])
            if choice > 0:
                stepped = pl.yield_(pl.add(state, 0.5))
            else:
                stepped = pl.yield_(pl.mul(state, -1.0))
            final = pl.yield_(stepped)
        y = pl.store(final, [0, 0], y)
    return y


ENTRY = branch_carry
OUTPUTS = (2,)
ATOL = 1e-5


def inputs():
    g = torch.Generator().manual_seed(32)
    return [
        torch.randn(ROWS, COLS, generator=g),
        torch.tensor([1, 0, 1, 1, 0, 1, 0, 0], dtype=torch.int32),
        torch.zeros(ROWS, COLS),
    ]


def reference(x, plan, y):
    for i in range(STEPS):
        x = x + 0.5 if plan[i] > 0 else -x
    return (x,)
