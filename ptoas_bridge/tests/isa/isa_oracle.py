"""Element types, guarded arrays and comparisons shared by the instruction tests."""

from __future__ import annotations

import ml_dtypes
import numpy as np

DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
FLOATS = ("f32", "f16", "bf16")
INTS = ("i8", "u8", "i16", "i32", "u32")
ROWS, COLS = 24, 64  # physical extents of the plain tiles in the drivers
PITCH = 80  # elements per row of arrays in global memory
GUARD = 0x5A


def is_float(dtype: str) -> bool:
    return dtype in ("f32", "f16", "bf16", "e4m3", "e5m2")


def wide(array: np.ndarray) -> np.ndarray:
    """16-bit floats as float32, everything else as it is."""
    return array.astype(np.float32) if array.dtype.itemsize < 4 and array.dtype.kind not in "iu" else array


def sample(rng: np.random.Generator, dtype: str, shape=(ROWS, PITCH), low=-8.0, high=8.0) -> np.ndarray:
    """Random values of a type; integers cover their whole range so that wrapping shows."""
    kind = DTYPES[dtype]
    if is_float(dtype):
        return rng.uniform(low, high, shape).astype(np.float32).astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def guarded(dtype: str, shape=(ROWS, PITCH)) -> np.ndarray:
    """An output array filled with guard bytes."""
    count = int(np.prod(shape)) * DTYPES[dtype].itemsize
    return np.full(count, GUARD, np.uint8).view(DTYPES[dtype]).reshape(shape)


def assert_block(out: np.ndarray, expected: np.ndarray, rtol=0.0, atol=0.0) -> None:
    """The leading block of `out` equals `expected`, and every byte outside it is still a guard byte."""
    rows, cols = expected.shape
    np.testing.assert_allclose(wide(out[:rows, :cols]), wide(expected), rtol=rtol, atol=atol, equal_nan=True)
    outside = np.ones(out.shape, bool)
    outside[:rows, :cols] = False
    assert (np.ascontiguousarray(out[outside]).view(np.uint8) == GUARD).all(), "memory outside the region was written"


TOLERANCE = {"f32": 2e-6, "f16": 1.1e-3, "bf16": 8e-3}
