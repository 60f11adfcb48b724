"""One Llama-style decoder layer: RMSNorm, attention with rotary positions, residual, RMSNorm, gated MLP, residual."""

from __future__ import annotations

import pypto.language as pl
import torch

TOKENS, WIDTH, HIDDEN = 32, 64, 128
HALF = WIDTH // 2
SCALE = WIDTH**-0.5
EPS = 1e-5


@pl.jit.inline
def normalise(x: pl.Tensor, gain: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="normalise"):
        mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / WIDTH)
        inverse = pl.recip(pl.sqrt(pl.add(mean, EPS)))
        y[:] = pl.cast(pl.col_expand_mul(pl.row_expand_mul(x, inverse), gain), pl.BF16)
    return y


@pl.jit.inline
def rotate(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rotate"):
        low, high = x[:, 0:HALF], x[:, HALF:WIDTH]
        y[:, 0:HALF] = pl.cast(pl.sub(pl.mul(low, cos), pl.mul(high, sin)), pl.BF16)
        y[:, HALF:WIDTH] = pl.cast(pl.add(pl.mul(high, cos), pl.mul(low, sin)), pl.BF16)
    return y


@pl.jit
def decoder_layer(
    x: pl.Tensor,
    gain_a: pl.Tensor,
    wq: pl.Tensor,
    wk: pl.Tensor,
    wv: pl.Tensor,
    wo: pl.Tensor,
    cos: pl.Tensor,
    sin: pl.Tensor,
    mask: pl.Tensor,
    gain_m: pl.Tensor,
    w_gate: pl.Tensor,
    w_up: pl.Tensor,
    w_down: pl.Tensor,
    y: pl.Out[pl.Tensor],
):
    normed = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    normed = normalise(x, gain_a, normed)
    q_raw = pl.create_tensor([TOKENS, WIDTH], dtype=pl.FP32)
    k_raw = pl.create_tensor([TOKENS, WIDTH], dtype=pl.FP32)
    v = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_q"):
        q_raw[:] = pl.matmul(normed, wq, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_k"):
        k_raw[:] = pl.matmul(normed, wk, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="project_v"):
        v[:] = pl.matmul(normed, wv, out_dtype=pl.BF16)
    q = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    q = rotate(q_raw, cos, sin, q)
    k = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    k = rotate(k_raw, cos, sin, k)

    scores = pl.create_tensor([TOKENS, TOKENS], dtype=pl.FP32)
    weights = pl.create_tensor([TOKENS, TOKENS], dtype=pl.BF16)
    mixed = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="score"):
        scores[:] = pl.matmul(q, k, out_dtype=pl.FP32, b_trans=True)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="soften"):
        masked = pl.add(pl.mul(scores, SCALE), mask)
        exponents = pl.exp(pl.row_expand_sub(masked, pl.row_max(masked)))
        weights[:] = pl.cast(pl.row_expand_div(exponents, pl.row_sum(exponents)), pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mix"):
        mixed[:] = pl.matmul(weights, v, out_dtype=pl.BF16)
    middle = pl.create_tensor([TOKENS, WIDTH], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
        middle[:] = pl.add(pl.matmul(mixed, wo, out_dtype=pl.FP32), x)

    normed_m = pl.create_tensor([TOKENS, WIDTH], dtype=pl.BF16)
    normed_m = normalise(middle, gain_m, normed_m)
    gate = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    up = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.FP32)
    hidden = pl.create_tensor([TOKENS, HIDDEN], dtype=pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
        gate[:] = pl.matmul(normed_m, w_gate, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="up"):
        up[:] = pl.matmul(normed_m, w_up, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="combine"):
        silu = pl.div(gate, pl.add(pl.exp(pl.neg(gate)), 1.0))
        hidden[:] = pl.cast(pl.mul(silu, up), pl.BF16)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="down"):
        y[:] = pl.add(pl.matmul(hidden, w_down, out_dtype=pl.FP32), middle)
    return y


ENTRY = decoder_layer
OUTPUTS = (13,)
ATOL = 5e-2


def inputs():
    g = torch.Generator().manual_seed(112)

    def weight(rows, cols):
        return (torch.randn(rows, cols, generator=g) / rows**0.5).bfloat16()

    angles = torch.arange(TOKENS)[:, None] / 10000.0 ** (torch.arange(HALF)[None, :] / HALF)
    mask = torch.full((TOKENS, TOKENS), -1.0e30).triu(1)
    return [
        torch.randn(TOKENS, WIDTH, generator=g),
        torch.rand(1, WIDTH, generator=g) + 0.5,
        *(weight(WIDTH, WIDTH) for _ in range(4)),
        angles.cos(),
        angles.sin(),
        mask,
        torch.rand(1, WIDTH, generator=g) + 0.5,
        weight(WIDTH, HIDDEN),
        weight(WIDTH, HIDDEN),
        weight(HIDDEN, WIDTH),
        torch.zeros(TOKENS, WIDTH),
    ]


def reference(x, gain_a, wq, wk, wv, wo, cos, sin, mask, gain_m, w_gate, w_up, w_down, y):
    def normed(value, gain):
        return (value * torch.rsqrt((value * value).mean(1, keepdim=True) + EPS) * gain).bfloat16().float()

    def rotated(value):
        low, high = value[:, :HALF], value[:, HALF:]
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=1).bfloat16().float()

    inner = normed(x, gain_a)
    q, k = rotated(inner @ wq.float()), rotated(inner @ wk.float())
    v = (inner @ wv.float()).bfloat16().float()
    weights = torch.softmax((q @ k.T) * SCALE + mask, dim=1).bfloat16().float()
    middle = (weights @ v).bfloat16().float() @ wo.float() + x
    inner = normed(middle, gain_m)
    hidden = torch.nn.functional.silu(inner @ w_gate.float()) * (inner @ w_up.float())
    return (hidden.bfloat16().float() @ w_down.float() + middle,)
