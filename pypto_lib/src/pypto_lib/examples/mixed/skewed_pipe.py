"""A mixed kernel inside a pipelined loop: strips are multiplied on the cube core and scaled on the vector core."""

import pypto.language as pl
import torch

STRIPS, STRIP, K, N = 6, 32, 64, 64


@pl.jit
def skewed_pipe(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="skew"):
        for i in pl.pipeline(STRIPS, stage=2):
            strip = a[i * STRIP : i * STRIP + STRIP, :]
            product = pl.matmul(strip, b, out_dtype=pl.FP32)
            c[i * STRIP : i * STRIP + STRIP, :] = pl.add(pl.mul(product, 0.25), 1.0)
    return c


ENTRY = skewed_pipe
OUTPUTS = (2,)
ATOL = 1e-2


def inputs():
    g = torch.Generator().manual_seed(56)
    return [
        torch.randn(STRIPS * STRIP, K, generator=g).half(),
        torch.randn(K, N, generator=g).half(),
        torch.zeros(STRIPS * STRIP, N),
    ]


def reference(a, b, c):
    return ((a.float() @ b.float()) * 0.25 + 1,)
