"""Flash attention, forward: blocks of keys and values with a running maximum and a running sum (online softmax).

Each key block is three tasks: scores on the cube core, weights and statistics on the vector core, and the product
with the values; a last task of the block rescales the output so far.
"""

from __future__ import annotations

import pypto.language as pl
import torch

QUERIES, KEYS, HEAD, BLOCK = 32, 128, 64, 32
SCALE = HEAD**-0.5


@pl.jit
def flash_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    peak = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
    total = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="start"):
        peak[:] = pl.full([1, QUERIES], dtype=pl.FP32, value=-1.0e30)
        total[:] = pl.full([1, QUERIES], dtype=pl.FP32, value=0.0)
        out[:] = pl.full([QUERIES, HEAD], dtype=pl.FP32, value=0.0)
    for j in pl.range(0, KEYS, BLOCK):
        scores = pl.create_tensor([QUERIES, BLOCK], dtype=pl.FP32)
        weights = pl.create_tensor([QUERIES, BLOCK], dtype=pl.BF16)
        shrink = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
        update = pl.create_tensor([QUERIES, HEAD], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="score"):
            scores[:] = pl.matmul(q, k[j : j + BLOCK, :], out_dtype=pl.FP32, b_trans=True)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="weigh"):
            scaled = pl.mul(scores, SCALE)
            before = pl.mul(peak, 1.0)
            now = pl.maximum(before, pl.reshape(pl.row_max(scaled), [1, QUERIES]))
            exponents = pl.exp(pl.row_expand_sub(scaled, pl.reshape(now, [QUERIES, 1])))
            factor = pl.exp(pl.sub(before, now))
            part = pl.reshape(pl.row_sum(exponents), [1, QUERIES])
            total[:] = pl.add(pl.mul(total, factor), part)
            weights[:] = pl.cast(exponents, pl.BF16)
            shrink[:] = factor
            peak[:] = now
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="apply"):
            update[:] = pl.matmul(weights, v[j : j + BLOCK, :], out_dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="merge"):
            kept = pl.row_expand_mul(pl.mul(out, 1.0), pl.reshape(pl.mul(shrink, 1.0), [QUERIES, 1]))
            out[:] = pl.add(kept, update)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="finish"):
        out[:] = pl.row_expand_div(pl.mul(out, 1.0), pl.reshape(pl.mul(total, 1.0), [QUERIES, 1]))
    return out


ENTRY = flash_attention
OUTPUTS = (3,)
ATOL = 2e-2


def inputs():
    g = torch.Generator().manual_seed(110)
    return [
        torch.randn(QUERIES, HEAD, generator=g).bfloat16(),
        torch.randn(KEYS, HEAD, generator=g).bfloat16(),
        torch.randn(KEYS, HEAD, generator=g).bfloat16(),
        torch.zeros(QUERIES, HEAD),
    ]


def reference(q, k, v, out):
    weights = torch.softmax((q.float() @ k.float().T) * SCALE, dim=1)
    return (weights @ v.float(),)
