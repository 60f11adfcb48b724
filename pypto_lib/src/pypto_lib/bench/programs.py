"""Programs that the kernel figures run: elementwise, matmul, softmax, RMSNorm and flash attention over many blocks."""

from __future__ import annotations

import pypto.language as pl

COLS = 1024
STRIP = 8
EPS = 1e-5
BLOCK, DEPTH = 128, 256
QUERIES, KEYS, HEAD = 128, 128, 128
SCALE = HEAD**-0.5


@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], blocks: pl.Scalar[pl.INDEX]):
    for s in pl.spmd(blocks, name_hint="add"):
        left = pl.load(a, [s * STRIP, 0], [STRIP, COLS])
        right = pl.load(b, [s * STRIP, 0], [STRIP, COLS])
        c = pl.store(pl.add(left, right), [s * STRIP, 0], c)
    return c


@pl.jit
def softmax(x: pl.Tensor, y: pl.Out[pl.Tensor], blocks: pl.Scalar[pl.INDEX]):
    for s in pl.spmd(blocks, name_hint="softmax"):
        rows = x[s * STRIP : s * STRIP + STRIP, :]
        weights = pl.exp(pl.row_expand_sub(rows, pl.row_max(rows)))
        y[s * STRIP : s * STRIP + STRIP, :] = pl.row_expand_div(weights, pl.row_sum(weights))
    return y


@pl.jit
def rms_norm(x: pl.Tensor, gain: pl.Tensor, y: pl.Out[pl.Tensor], blocks: pl.Scalar[pl.INDEX]):
    for s in pl.spmd(blocks, name_hint="rms_norm"):
        rows = x[s * STRIP : s * STRIP + STRIP, :]
        mean = pl.mul(pl.row_sum(pl.mul(rows, rows)), 1.0 / COLS)
        inverse = pl.recip(pl.sqrt(pl.add(mean, EPS)))
        y[s * STRIP : s * STRIP + STRIP, :] = pl.col_expand_mul(pl.row_expand_mul(rows, inverse), gain)
    return y


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], size: pl.Scalar[pl.INDEX]):
    for block in pl.spmd(size // BLOCK * (size // BLOCK), name_hint="matmul"):
        row = block // (size // BLOCK) * BLOCK
        col = block % (size // BLOCK) * BLOCK
        result = pl.matmul(a[row : row + BLOCK, 0:DEPTH], b[0:DEPTH, col : col + BLOCK], out_dtype=pl.FP32)
        for k in pl.range(DEPTH, size, DEPTH):
            result = pl.matmul_acc(result, a[row : row + BLOCK, k : k + DEPTH], b[k : k + DEPTH, col : col + BLOCK])
        c[row : row + BLOCK, col : col + BLOCK] = result
    return c


@pl.jit
def matmul_int8(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], size: pl.Scalar[pl.INDEX]):
    for block in pl.spmd(size // BLOCK * (size // BLOCK), name_hint="matmul_int8"):
        row = block // (size // BLOCK) * BLOCK
        col = block % (size // BLOCK) * BLOCK
        result = pl.matmul(a[row : row + BLOCK, 0:DEPTH], b[0:DEPTH, col : col + BLOCK], out_dtype=pl.INT32)
        for k in pl.range(DEPTH, size, DEPTH):
            result = pl.matmul_acc(result, a[row : row + BLOCK, k : k + DEPTH], b[k : k + DEPTH, col : col + BLOCK])
        c[row : row + BLOCK, col : col + BLOCK] = result
    return c


@pl.jit
def flash_attention(
    q: pl.Tensor,
    k: pl.Tensor,
    v: pl.Tensor,
    out: pl.Out[pl.Tensor],
    heads: pl.Scalar[pl.INDEX],
    keys: pl.Scalar[pl.INDEX],
):
    for h in pl.parallel(heads):
        peak = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
        total = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
        result = pl.create_tensor([QUERIES, HEAD], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="start"):
            peak[:] = pl.full([1, QUERIES], dtype=pl.FP32, value=-1.0e30)
            total[:] = pl.full([1, QUERIES], dtype=pl.FP32, value=0.0)
            result[:] = pl.full([QUERIES, HEAD], dtype=pl.FP32, value=0.0)
        for j in pl.range(0, keys, KEYS):
            scores = pl.create_tensor([QUERIES, KEYS], dtype=pl.FP32)
            weights = pl.create_tensor([QUERIES, KEYS], dtype=pl.BF16)
            shrink = pl.create_tensor([1, QUERIES], dtype=pl.FP32)
            update = pl.create_tensor([QUERIES, HEAD], dtype=pl.FP32)
            key = h * keys + j
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="score"):
                block = k[key : key + KEYS, :]
                scores[:] = pl.matmul(q[h * QUERIES : h * QUERIES + QUERIES, :], block, out_dtype=pl.FP32, b_trans=True)
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
                update[:] = pl.matmul(weights, v[key : key + KEYS, :], out_dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="merge"):
                kept = pl.row_expand_mul(pl.mul(result, 1.0), pl.reshape(pl.mul(shrink, 1.0), [QUERIES, 1]))
                result[:] = pl.add(kept, update)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="finish"):
            scale = pl.reshape(pl.mul(total, 1.0), [QUERIES, 1])
            out[h * QUERIES : h * QUERIES + QUERIES, :] = pl.row_expand_div(pl.mul(result, 1.0), scale)
    return out
