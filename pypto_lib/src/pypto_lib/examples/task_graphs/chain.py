"""A chain of tasks over two buffers that are written again and again: read-after-write, write-after-read, write-after-write."""  # noqa: E501

from __future__ import annotations

import pypto.language as pl
import torch

ROWS, COLS, STEPS = 32, 64, 5


@pl.program
class Chain:
    @pl.function(type=pl.FunctionType.InCore)
    def double_into(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        y = pl.store(pl.mul(pl.load(x, [0, 0], [ROWS, COLS]), 2.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def increment_into(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        y = pl.store(pl.add(pl.load(x, [0, 0], [ROWS, COLS]), 1.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        buffer = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
        buffer = self.double_into(x, buffer)
        y = self.increment_into(buffer, y)
        for _ in pl.range(STEPS):
            buffer = self.double_into(y, buffer)
            y = self.increment_into(buffer, y)
        return y


ENTRY = Chain
OUTPUTS = (1,)
ATOL = 0.0


def inputs():
    g = torch.Generator().manual_seed(108)
    return [torch.randint(-4, 5, (ROWS, COLS), generator=g).float(), torch.zeros(ROWS, COLS)]


def reference(x, y):
    for _ in range(STEPS + 1):
        x = x * 2.0 + 1.0
    return (x,)
