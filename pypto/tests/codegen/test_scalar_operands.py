"""Scalar operands of tile instructions have the element type of the tile, whatever they are written as."""

from __future__ import annotations

import shutil

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels")


@pl.jit.incore
def arithmetic(x: pl.Tensor, k: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.mul(t, 2.0), [0, 0], out)
    out = pl.store(pl.add(t, 3), [16, 0], out)
    out = pl.store(pl.sub(t, k), [32, 0], out)
    return pl.store(pl.mul(t, n), [48, 0], out)


@pl.jit
def arithmetic_entry(x: pl.Tensor, k: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    return arithmetic(x, k, n, out)


@pl.jit.incore
def bounds(x: pl.Tensor, k: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.maximum(t, k), [0, 0], out)
    return pl.store(pl.minimum(t, 7), [16, 0], out)


@pl.jit
def bounds_entry(x: pl.Tensor, k: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    return bounds(x, k, out)


@pl.jit.incore
def bits(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [16, 64])
    out = pl.store(pl.tile.ands(t, n), [0, 0], out)
    out = pl.store(pl.tile.ors(t, 5), [16, 0], out)
    out = pl.store(pl.tile.shls(t, 1), [32, 0], out)
    return pl.store(pl.tile.shrs(t, 1), [48, 0], out)


@pl.jit
def bits_entry(x: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    return bits(x, n, out)


@pl.jit.incore
def leaky(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return pl.store(pl.tile.lrelu(pl.load(x, [0, 0], [16, 64]), 0.5), [0, 0], out)


@pl.jit
def leaky_entry(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return leaky(x, out)


def counting(dtype: torch.dtype) -> torch.Tensor:
    low = 0 if dtype in (torch.uint8, torch.uint16) else -11
    return (torch.arange(1024) % 37 + low).reshape(16, 64).to(dtype)


def differing(out: torch.Tensor, want: list[torch.Tensor]) -> list[int]:
    """Numbers of the results that are not what torch computes."""
    wide = torch.float32 if out.dtype.is_floating_point else torch.int64
    return [i for i, (a, b) in enumerate(zip(out.to(wide).split(16), want)) if not torch.equal(a, b.to(wide))]


TYPES = [
    *(("a2a3sim", t) for t in (torch.float32, torch.float16, torch.int32, torch.int16)),
    *(("a5sim", t) for t in (torch.bfloat16, torch.int8)),
]


@pytest.mark.parametrize(("platform", "dtype"), TYPES)
def test_numbers_and_scalar_parameters_of_another_type(platform, dtype):
    x, out = counting(dtype), torch.zeros(64, 64, dtype=dtype)
    arithmetic_entry(x, 4.0, 2, out, config=RunConfig(platform=platform))
    wide = x.to(torch.float32 if dtype.is_floating_point else torch.int64)
    assert differing(out, [w.to(dtype) for w in (wide * 2, wide + 3, wide - 4, wide * 2)]) == []


@pytest.mark.parametrize(("platform", "dtype"), [t for t in TYPES if t[1] != torch.bfloat16])
def test_bounds_of_another_type(platform, dtype):
    x, out = counting(dtype), torch.zeros(32, 64, dtype=dtype)
    bounds_entry(x, 4.0, out, config=RunConfig(platform=platform))
    assert differing(out, [x.clamp(min=4), x.clamp(max=7)]) == []


@pytest.mark.parametrize(
    ("platform", "dtype"), [("a2a3sim", torch.int16), ("a5sim", torch.int8), ("a5sim", torch.uint8)]
)
def test_bitwise_and_shift_amounts(platform, dtype):
    x, out = counting(dtype), torch.zeros(64, 64, dtype=dtype)
    bits_entry(x, 6, out, config=RunConfig(platform=platform))
    assert differing(out, [x & 6, x | 5, x << 1, x >> 1]) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_slope_of_a_leaky_relu_keeps_full_precision(dtype):
    x, out = counting(dtype), torch.zeros(16, 64, dtype=dtype)
    leaky_entry(x, out, config=RunConfig(platform="a2a3sim"))
    assert differing(out, [torch.nn.functional.leaky_relu(x, 0.5)]) == []
