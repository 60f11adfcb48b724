"""Samples of operators that compute cell by cell, compare, reduce and broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from operator_sample import (
    BASIC,
    BF16,
    FLOATS,
    FP16,
    FP32,
    INT16,
    INT32,
    Draw,
    Number,
    array,
    leaf_of,
    levels,
    sample,
)

# -- elementwise -------------------------------------------------------------------------------------------------


def _truncated(a: Any, b: Any) -> Any:
    if np.issubdtype(np.asarray(a).dtype, np.floating):
        return a / b
    quotient = np.abs(a.astype(np.int64)) // np.abs(np.asarray(b, dtype=np.int64))
    return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)


PAIRS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "div": _truncated, "fmod": np.fmod, "rem": np.mod, "part_add": np.add, "part_mul": np.multiply,
    "part_max": np.maximum, "part_min": np.minimum,
}  # fmt: skip


@sample(*levels(*(k for k in PAIRS if k != "rem")), "tile.rem")
def _pairs(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, INT32) if leaf_of(name) in ("fmod", "rem") else BASIC)
    a, b = draw.cells(dtype), draw.cells(dtype, zero=False)
    scratch = [torch.zeros_like(a)] if name == "tile.rem" else []
    return [a, b, *scratch], {}, PAIRS[leaf_of(name)](array(a), array(b))


@sample(*(f"{p}.{k}s" for k in ("add", "sub", "mul", "div", "fmod") for p in ("tile", "tensor")),
        "tile.maximums", "tile.minimums", "tile.rems")  # fmt: skip
def _with_scalar(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, INT32) if leaf_of(name) in ("fmods", "rems") else BASIC)
    a, s = draw.cells(dtype), draw.scalar(dtype)
    x = array(a)
    scratch = [torch.zeros_like(a)] if name == "tile.rems" else []
    return [a, s, *scratch], {}, PAIRS[leaf_of(name)[:-1]](x, np.asarray(s, dtype=x.dtype))


@sample("tile.addc", "tile.subc", "tile.addsc", "tile.subsc")
def _three(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype(BASIC)
    a, c = draw.cells(dtype), draw.cells(dtype)
    b = draw.scalar(dtype) if name.endswith("sc") else draw.cells(dtype)
    x, y, z = array(a), array(b), array(c)
    middle = x + np.asarray(y, dtype=x.dtype) if "add" in name else x - np.asarray(y, dtype=x.dtype)
    return [a, b, c], {}, middle + z


UNARY: dict[str, Any] = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "sqrt": np.sqrt, "recip": lambda x: 1 / x, "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip


@sample(*levels(*(k for k in UNARY if k != "relu")), "tile.relu")
def _unary(name: str, draw: Draw) -> tuple:
    leaf = leaf_of(name)
    dtype = FP32 if leaf in ("sin", "cos") else draw.dtype(FLOATS)
    positive = leaf in ("sqrt", "recip", "log", "rsqrt")
    a = draw.cells(dtype, low=0.125 if positive else -8)
    return [a], {}, UNARY[leaf](array(a))


@sample(*levels("cast"))
def _cast(name: str, draw: Draw) -> tuple:
    target = draw.dtype((INT32, INT16, FP16, BF16))
    a = draw.cells(FP32)
    x = array(a)
    return [a], {"target_type": target, "mode": 3}, np.floor(x) if target.is_int() else x


@sample("tile.lrelu")
def _lrelu(name: str, draw: Draw) -> tuple:
    a = draw.cells(draw.dtype(FLOATS))
    x = array(a)
    return [a, 0.25], {}, np.where(x > 0, x, x * 0.25)


@sample("tile.prelu")
def _prelu(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype(FLOATS)
    a, slope = draw.cells(dtype), draw.cells(dtype)
    x, y = array(a), array(slope)
    return [a, slope, torch.zeros(draw.rows, draw.cols, dtype=torch.uint8)], {}, np.where(x > 0, x, x * y)


BITWISE: dict[str, Any] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
}  # fmt: skip


@sample(*levels(*BITWISE, *(f"{k}s" for k in BITWISE)))
def _bitwise(name: str, draw: Draw) -> tuple:
    leaf = leaf_of(name)
    function = BITWISE.get(leaf) or BITWISE[leaf[:-1]]
    dtype = draw.dtype((INT16, INT32))
    a = draw.cells(dtype, low=-100, high=100)
    b = 3 if leaf not in BITWISE else draw.cells(dtype, low=0, high=7)
    scratch = [torch.zeros_like(a)] if name in ("tile.xor", "tile.xors") else []
    x = array(a)
    return [a, b, *scratch], {}, function(x, np.asarray(array(b), dtype=x.dtype))


@sample(*levels("not"))
def _not(name: str, draw: Draw) -> tuple:
    a = draw.cells(INT16, low=-100, high=100)
    return [a], {}, np.bitwise_not(array(a))


# -- comparison --------------------------------------------------------------------------------------------------

COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def packed(mask: np.ndarray) -> np.ndarray:
    """Rows of bits, least significant first, padded to 32 bytes."""
    width = -(-mask.shape[1] // 256) * 256
    return np.packbits(np.pad(mask, ((0, 0), (0, width - mask.shape[1]))), axis=1, bitorder="little")


@sample("tile.cmp", "tile.cmps", "tensor.cmp")
def _compare(name: str, draw: Draw) -> tuple:
    dtype, mode = draw.dtype((FP32, FP16, INT32)), draw.choice % 6
    a = draw.cells(dtype, low=-1, high=1)
    b = 0 if name == "tile.cmps" else draw.cells(dtype, low=-1, high=1)
    mask = COMPARISONS[mode](array(a), array(b))
    return [a, b], {"cmp_type": mode}, packed(mask) if name.startswith("tile.") else mask.astype(np.float64)


@sample("tile.sel", "tile.sels")
def _select(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, FP16, INT32))
    a, b, chosen = draw.cells(dtype), draw.cells(dtype), draw.random.integers(0, 2, (draw.rows, draw.cols)) > 0
    mask, scratch = torch.from_numpy(packed(chosen)), torch.zeros(1, 8, dtype=torch.uint32)
    if name == "tile.sel":
        return [mask, a, b, scratch], {}, np.where(chosen, array(a), array(b))
    return [mask, a, scratch, Number(3, dtype)], {}, np.where(chosen, array(a), 3)


# -- reductions and broadcasts -----------------------------------------------------------------------------------

REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@sample(*levels(*(f"{axis}_{kind}" for axis in ("row", "col") for kind in REDUCTIONS)))
def _reduce(name: str, draw: Draw) -> tuple:
    axis, _, kind = leaf_of(name).partition("_")
    a = draw.cells(draw.dtype((FP32, INT32)), low=-2, high=2)
    scratch = [torch.zeros_like(a)] if name.startswith("tile.row") else []
    dtype = np.float64 if a.is_floating_point() else np.int32
    return [a, *scratch], {}, REDUCTIONS[kind](array(a), axis=1 if axis == "row" else 0, keepdims=True).astype(dtype)


@sample(*levels(*(f"{axis}_arg{kind}" for axis in ("row", "col") for kind in ("max", "min"))))
def _position(name: str, draw: Draw) -> tuple:
    axis, _, kind = leaf_of(name).partition("_")
    a = draw.cells(draw.dtype(FLOATS), low=-1, high=1)
    scratch = [torch.zeros_like(a)] if name.startswith("tile.") else []
    function = np.argmax if kind == "argmax" else np.argmin
    return [a, *scratch], {}, function(array(a), axis=1 if axis == "row" else 0, keepdims=True).astype(np.int32)


EXPANDED: dict[str, Any] = {
    "sub": np.subtract, "div": np.divide, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "add": np.add,
    "expdif": lambda x, v: np.exp(x - v),
}  # fmt: skip


@sample(*levels(*(f"{axis}_expand_{kind}" for axis in ("row", "col") for kind in EXPANDED)))
def _expanded(name: str, draw: Draw) -> tuple:
    axis, kind = leaf_of(name).split("_expand_")
    dtype = draw.dtype(FLOATS)
    bounds = {"low": -2, "high": 2} if kind == "expdif" else {}
    a = draw.cells(dtype, **bounds)
    v = draw.cells(dtype, *((draw.rows, 1) if axis == "row" else (1, draw.cols)), zero=False, **bounds)
    return [a, v], {}, EXPANDED[kind](array(a), array(v))


@sample(*levels("row_expand", "col_expand"))
def _spread(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype(FLOATS)
    a = draw.cells(dtype)
    v = draw.cells(dtype, *((draw.rows, 1) if "row" in name else (1, draw.cols)))
    return [a, v], {}, np.broadcast_to(array(v), a.shape)


@sample(*levels("expands"))
def _constant(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a, 2.5], {}, np.full(a.shape, 2.5)


@sample("tensor.expand_clone")
def _cloned(name: str, draw: Draw) -> tuple:
    a, target = draw.cells(FP32, 2, 1, draw.cols), draw.cells(FP32, 2, draw.rows, draw.cols)
    return [a, target], {}, np.broadcast_to(array(a), target.shape)
