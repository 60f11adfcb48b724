"""A linear layer with its activation in one scope: product on the cube core, bias and SiLU on the vector core."""

from __future__ import annotations

import pypto.language as pl
import torch

M, K, N = 64, 128, 64


@pl.jit
def fused_linear(x: pl.Tensor, weight: pl.Tensor, bias: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="linear"):
        product = pl.matmul(x, weight, out_dtype=pl.FP32)
        shifted = pl.col_expand_add(product, bias)
        gate = pl.recip(pl.add(pl.exp(pl.neg(shifted)), 1.0))
        y[:] = pl.mul(shifted, gate)
    return y


ENTRY = fused_linear
OUTPUTS = (3,)
ATOL = 1e-3


def inputs():
    g = torch.Generator().manual_seed(106)
    return [
        torch.randn(M, K, generator=g).bfloat16(),
        (torch.randn(K, N, generator=g) / K**0.5).bfloat16(),
        torch.randn(1, N, generator=g),
        torch.zeros(M, N),
    ]


def reference(x, weight, bias, y):
    return (torch.nn.functional.silu(x.float() @ weight.float() + bias),)
