"""While loop, break and continue inside a scope, driven by scalars read from a tensor."""

import pypto.language as pl
import torch

ROWS, COLS, STRIP = 96, 64, 16


@pl.jit
def loop_control(x: pl.Tensor, limits: pl.Tensor, y: pl.InOut[pl.Tensor], z: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="control"):
        stop = pl.cast(pl.read(limits, [0]), pl.INDEX)
        skip = pl.cast(pl.read(limits, [1]), pl.INDEX)
        for s in pl.range(ROWS // STRIP):
            if s == stop:
                break
            if s == skip:
                continue
            t = pl.load(x, [s * STRIP, 0], [STRIP, COLS])
            y = pl.store(pl.mul(t, 4.0), [s * STRIP, 0], y)
        first = pl.load(x, [0, 0], [STRIP, COLS])
        for n, acc in pl.while_(init_values=(0, first)):
            pl.cond(n < stop)
            count, total = pl.yield_(n + 1, pl.add(acc, 1.0))
        z = pl.store(total, [0, 0], z)
    return y, z


ENTRY = loop_control
OUTPUTS = (2, 3)
ATOL = 1e-5


def inputs():
    g = torch.Generator().manual_seed(31)
    limits = torch.tensor([4, 1], dtype=torch.int32)
    return [
        torch.randn(ROWS, COLS, generator=g),
        limits,
        torch.randn(ROWS, COLS, generator=g),
        torch.zeros(STRIP, COLS),
    ]


def reference(x, limits, y, z):
    stop, skip = int(limits[0]), int(limits[1])
    want = y.clone()
    for s in range(ROWS // STRIP):
        if s == stop:
            break
        if s != skip:
            want[s * STRIP : (s + 1) * STRIP] = x[s * STRIP : (s + 1) * STRIP] * 4
    return want, x[:STRIP] + stop
