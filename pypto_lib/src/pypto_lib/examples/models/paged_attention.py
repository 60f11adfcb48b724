"""Paged attention, one decoding step: keys and values live in pages found through a block table read at run time.

The number of cached tokens is a run-time value; the last page is only partly filled.
"""

from __future__ import annotations

import pypto.language as pl
import torch

HEADS, HEAD, PAGE, PAGES, SLOTS = 16, 64, 32, 8, 4
SCALE = HEAD**-0.5


@pl.program
class PagedAttention:
    @pl.function(type=pl.FunctionType.InCore)
    def score(
        self,
        q: pl.Tensor[[HEADS, HEAD], pl.BF16],
        keys: pl.Tensor[[PAGES * PAGE, HEAD], pl.BF16],
        page: pl.Scalar[pl.INDEX],
        scores: pl.Out[pl.Tensor[[HEADS, PAGE], pl.FP32]],
    ) -> pl.Tensor[[HEADS, PAGE], pl.FP32]:
        left = pl.load(q, [0, 0], [HEADS, HEAD], target_memory=pl.MemorySpace.Mat)
        block = pl.load(keys, [page * PAGE, 0], [PAGE, HEAD], target_memory=pl.MemorySpace.Mat)
        scores = pl.store(pl.matmul(left, pl.tile.transpose_view(block)), [0, 0], scores)
        return scores

    @pl.function(type=pl.FunctionType.InCore)
    def weigh(
        self,
        scores: pl.Tensor[[HEADS, PAGE], pl.FP32],
        live: pl.Scalar[pl.INDEX],
        peak: pl.InOut[pl.Tensor[[1, HEADS], pl.FP32]],
        total: pl.InOut[pl.Tensor[[1, HEADS], pl.FP32]],
        weights: pl.Out[pl.Tensor[[HEADS, PAGE], pl.BF16]],
        shrink: pl.Out[pl.Tensor[[1, HEADS], pl.FP32]],
    ) -> tuple[
        pl.Tensor[[1, HEADS], pl.FP32],
        pl.Tensor[[1, HEADS], pl.FP32],
        pl.Tensor[[HEADS, PAGE], pl.BF16],
        pl.Tensor[[1, HEADS], pl.FP32],
    ]:
        seen = pl.load(scores, [0, 0], [HEADS, PAGE], [HEADS, live])
        scaled = pl.fillpad(pl.mul(seen, SCALE), pad_value=pl.PadValue.min)
        scratch = pl.create_tile([HEADS, PAGE], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
        before = pl.load(peak, [0, 0], [1, HEADS])
        sums = pl.load(total, [0, 0], [1, HEADS])
        now = pl.maximum(before, pl.reshape(pl.row_max(scaled, scratch), [1, HEADS]))
        exponents = pl.exp(pl.row_expand_sub(scaled, pl.reshape(now, [HEADS, 1])))
        factor = pl.exp(pl.sub(before, now))
        part = pl.reshape(pl.row_sum(exponents, scratch), [1, HEADS])
        total = pl.store(pl.add(pl.mul(sums, factor), part), [0, 0], total)
        weights = pl.store(pl.cast(exponents, pl.BF16), [0, 0], weights)
        shrink = pl.store(factor, [0, 0], shrink)
        peak = pl.store(now, [0, 0], peak)
        return peak, total, weights, shrink

    @pl.function(type=pl.FunctionType.InCore)
    def apply(
        self,
        weights: pl.Tensor[[HEADS, PAGE], pl.BF16],
        values: pl.Tensor[[PAGES * PAGE, HEAD], pl.BF16],
        page: pl.Scalar[pl.INDEX],
        update: pl.Out[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    ) -> pl.Tensor[[HEADS, HEAD], pl.FP32]:
        left = pl.load(weights, [0, 0], [HEADS, PAGE], target_memory=pl.MemorySpace.Mat)
        right = pl.load(values, [page * PAGE, 0], [PAGE, HEAD], target_memory=pl.MemorySpace.Mat)
        update = pl.store(pl.matmul(left, right), [0, 0], update)
        return update

    @pl.function(type=pl.FunctionType.InCore)
    def merge(
        self,
        update: pl.Tensor[[HEADS, HEAD], pl.FP32],
        shrink: pl.Tensor[[1, HEADS], pl.FP32],
        out: pl.InOut[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    ) -> pl.Tensor[[HEADS, HEAD], pl.FP32]:
        factor = pl.reshape(pl.load(shrink, [0, 0], [1, HEADS]), [HEADS, 1])
        kept = pl.row_expand_mul(pl.load(out, [0, 0], [HEADS, HEAD]), factor)
        out = pl.store(pl.add(kept, pl.load(update, [0, 0], [HEADS, HEAD])), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def start(
        self,
        peak: pl.Out[pl.Tensor[[1, HEADS], pl.FP32]],
        total: pl.Out[pl.Tensor[[1, HEADS], pl.FP32]],
        out: pl.Out[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    ) -> tuple[pl.Tensor[[1, HEADS], pl.FP32], pl.Tensor[[1, HEADS], pl.FP32], pl.Tensor[[HEADS, HEAD], pl.FP32]]:
        peak = pl.store(pl.tile.full([1, HEADS], dtype=pl.FP32, value=-1.0e30), [0, 0], peak)
        total = pl.store(pl.tile.full([1, HEADS], dtype=pl.FP32, value=0.0), [0, 0], total)
        out = pl.store(pl.tile.full([HEADS, HEAD], dtype=pl.FP32, value=0.0), [0, 0], out)
        return peak, total, out

    @pl.function(type=pl.FunctionType.InCore)
    def finish(
        self, total: pl.Tensor[[1, HEADS], pl.FP32], out: pl.InOut[pl.Tensor[[HEADS, HEAD], pl.FP32]]
    ) -> pl.Tensor[[HEADS, HEAD], pl.FP32]:
        divisor = pl.reshape(pl.load(total, [0, 0], [1, HEADS]), [HEADS, 1])
        out = pl.store(pl.row_expand_div(pl.load(out, [0, 0], [HEADS, HEAD]), divisor), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        q: pl.Tensor[[HEADS, HEAD], pl.BF16],
        keys: pl.Tensor[[PAGES * PAGE, HEAD], pl.BF16],
        values: pl.Tensor[[PAGES * PAGE, HEAD], pl.BF16],
        table: pl.Tensor[[SLOTS], pl.INT32],
        length: pl.Tensor[[1], pl.INT32],
        out: pl.Out[pl.Tensor[[HEADS, HEAD], pl.FP32]],
    ) -> pl.Tensor[[HEADS, HEAD], pl.FP32]:
        peak = pl.create_tensor([1, HEADS], dtype=pl.FP32)
        total = pl.create_tensor([1, HEADS], dtype=pl.FP32)
        peak, total, out = self.start(peak, total, out)
        cached = pl.cast(pl.read(length, [0]), pl.INDEX)
        for slot in pl.range((cached + PAGE - 1) // PAGE):
            page = pl.cast(pl.read(table, [slot]), pl.INDEX)
            live = pl.min(cached - slot * PAGE, PAGE)
            scores = pl.create_tensor([HEADS, PAGE], dtype=pl.FP32)
            weights = pl.create_tensor([HEADS, PAGE], dtype=pl.BF16)
            shrink = pl.create_tensor([1, HEADS], dtype=pl.FP32)
            update = pl.create_tensor([HEADS, HEAD], dtype=pl.FP32)
            scores = self.score(q, keys, page, scores)
            peak, total, weights, shrink = self.weigh(scores, live, peak, total, weights, shrink)
            update = self.apply(weights, values, page, update)
            out = self.merge(update, shrink, out)
        out = self.finish(total, out)
        return out


ENTRY = PagedAttention
OUTPUTS = (5,)
ATOL = 2e-2


def inputs():
    g = torch.Generator().manual_seed(111)
    return [
        torch.randn(HEADS, HEAD, generator=g).bfloat16(),
        torch.randn(PAGES * PAGE, HEAD, generator=g).bfloat16(),
        torch.randn(PAGES * PAGE, HEAD, generator=g).bfloat16(),
        torch.randperm(PAGES, generator=g)[:SLOTS].int(),
        torch.tensor([2 * PAGE + 19], dtype=torch.int32),
        torch.zeros(HEADS, HEAD),
    ]


def reference(q, keys, values, table, length, out):
    count = int(length)
    rows = torch.cat([torch.arange(p * PAGE, p * PAGE + PAGE) for p in table.tolist()])[:count]
    weights = torch.softmax((q.float() @ keys.float()[rows].T) * SCALE, dim=1)
    return (weights @ values.float()[rows],)
