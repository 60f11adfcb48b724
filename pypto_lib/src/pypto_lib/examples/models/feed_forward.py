"""A two-layer feed-forward network: linear, ReLU, linear. The hidden activations are an intermediate tensor."""

from __future__ import annotations

import pypto.language as pl
import torch

TOKENS, WIDTH, HIDDEN = 32, 64, 128


@pl.jit
def feed_forward(x: pl.Tensor, up: pl.Tensor, down: pl.Tensor, y: pl.Out[pl.Tensor]):
    hidden = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="expand"):
        raised = pl.maximum(pl.matmul(x, up, out_dtype=pl.FP32), 0.0)
        hidden[:] = pl.cast(raised, pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="contract"):
        y[:] = pl.matmul(hidden, down, out_dtype=pl.FP32)
    return y


ENTRY = feed_forward
OUTPUTS = (3,)
ATOL = 2e-2


def inputs():
    g = torch.Generator().manual_seed(109)
    return [
        torch.randn(TOKENS, WIDTH, generator=g).bfloat16(),
        (torch.randn(WIDTH, HIDDEN, generator=g) / WIDTH**0.5).bfloat16(),
        (torch.randn(HIDDEN, WIDTH, generator=g) / HIDDEN**0.5).bfloat16(),
        torch.zeros(TOKENS, WIDTH),
    ]


def reference(x, up, down, y):
    hidden = torch.relu(x.float() @ up.float()).bfloat16()
    return (hidden.float() @ down.float(),)
