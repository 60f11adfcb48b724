"""Matrix product with a bias row added by the cube core: DDR -> Mat -> Left, Right, Bias -> Acc -> DDR."""

from __future__ import annotations

import pypto.language as pl
import torch

M, K, N = 32, 64, 48


@pl.jit
def with_bias(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="biased"):
        left = pl.move(pl.load(a, [0, 0], [M, K], target_memory=pl.MemorySpace.Mat), target_memory=pl.MemorySpace.Left)
        right = pl.move(
            pl.load(b, [0, 0], [K, N], target_memory=pl.MemorySpace.Mat), target_memory=pl.MemorySpace.Right
        )
        row = pl.move(
            pl.load(bias, [0, 0], [1, N], target_memory=pl.MemorySpace.Mat), target_memory=pl.MemorySpace.Bias
        )
        c = pl.store(pl.matmul_bias(left, right, row), [0, 0], c)
    return c


ENTRY = with_bias
OUTPUTS = (3,)
ATOL = 1e-3


def inputs():
    g = torch.Generator().manual_seed(105)
    return [
        torch.randn(M, K, generator=g).half(),
        torch.randn(K, N, generator=g).half(),
        torch.randn(1, N, generator=g),
        torch.zeros(M, N),
    ]


def reference(a, b, bias, c):
    return (a.float() @ b.float() + bias,)
