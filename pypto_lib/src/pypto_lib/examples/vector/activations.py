"""ReLU, sigmoid, SiLU and GELU (tanh form) of one tile, four outputs of one kernel."""

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, COLS = 32, 128
#: 2 * sqrt(2 / pi): GELU(x) = x * sigmoid(GELU_SCALE * (x + 0.044715 * x**3)).
GELU_SCALE = 1.5957691216057308


@pl.jit
def activations(
    x: pl.Tensor,
    relu: pl.Out[pl.Tensor],
    sigmoid: pl.Out[pl.Tensor],
    silu: pl.Out[pl.Tensor],
    gelu: pl.Out[pl.Tensor],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="activate"):
        relu[:] = pl.maximum(x, 0.0)
        gate = pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0))
        sigmoid[:] = gate
        silu[:] = pl.mul(x, gate)
        cube = pl.mul(pl.mul(x, x), x)
        inner = pl.mul(pl.add(x, pl.mul(cube, 0.044715)), GELU_SCALE)
        gelu[:] = pl.div(x, pl.add(pl.exp(pl.neg(inner)), 1.0))
    return relu, sigmoid, silu, gelu


ENTRY = activations
OUTPUTS = (1, 2, 3, 4)
ATOL = 1e-5


def inputs():
    g = torch.Generator().manual_seed(101)
    return [torch.randn(ROWS, COLS, generator=g) * 2, *(torch.zeros(ROWS, COLS) for _ in range(4))]


def reference(x, relu, sigmoid, silu, gelu):
    functional = torch.nn.functional
    return functional.relu(x), torch.sigmoid(x), functional.silu(x), functional.gelu(x, approximate="tanh")
