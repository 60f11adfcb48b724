"""Carried values that nested blocks assign: the paths through the block meet after it."""

# ruff: noqa: B007, RET504 - tile programs bind every value to a name

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig


@pl.jit
def some_iterations(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        for i, (acc,) in pl.range(4, init_values=(a,)):
            if i > 1:
                acc = pl.mul(acc, 2.0)
            r = pl.yield_(acc)
        pl.store(r, [0, 0], y)
    return y


@pl.jit
def either_arm(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        for i, (acc,) in pl.range(4, init_values=(a,)):
            if i > 0:
                acc = pl.mul(acc, 2.0)
            else:
                acc = pl.mul(acc, 3.0)
            r = pl.yield_(acc)
        pl.store(r, [0, 0], y)
    return y


@pl.jit
def inner_loop(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [16, 64])
        for i, (acc,) in pl.range(2, init_values=(a,)):
            for j in pl.range(3):
                acc = pl.add(acc, a)
            r = pl.yield_(acc)
        pl.store(r, [0, 0], y)
    return y


@pl.jit.incore
def double(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    y = pl.store(pl.add(t, t), [0, 0], y)
    return y


@pl.jit
def tensors(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    first = pl.create_tensor([16, 64], dtype=pl.FP32)
    first = double(x, first)
    for i, (acc,) in pl.range(3, init_values=(first,)):
        if i > 0:
            fresh = pl.create_tensor([16, 64], dtype=pl.FP32)
            acc = double(acc, fresh)
        r = pl.yield_(acc)
    y = double(r, y)
    return y


@pytest.mark.parametrize("platform", ["torch", "a2a3sim"])
@pytest.mark.parametrize(
    ("program", "factor"), [(some_iterations, 4), (either_arm, 24), (inner_loop, 7), (tensors, 16)]
)
def test_assignments_in_nested_blocks_reach_the_yield(program, factor, platform):
    x, y = torch.arange(16.0 * 64).reshape(16, 64), torch.zeros(16, 64)
    program(x, y, config=RunConfig(platform=platform))
    torch.testing.assert_close(y, factor * x)


def test_an_if_that_names_its_results_keeps_its_other_names_to_itself():
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        a = pl.load(x, [0, 0], [16, 64])
        for i, (acc,) in pl.range(2, init_values=(a,)):
            if i > 0:
                acc = pl.mul(acc, 2.0)
                s = pl.yield_(acc)
            else:
                s = pl.yield_(acc)
            r = pl.yield_(s)
        y = pl.store(r, [0, 0], y)
        return y

    loop = f.body.stmts[1]
    assert len(loop.body.stmts) == 2, "the branch and the yield, no copy of the carried value"
