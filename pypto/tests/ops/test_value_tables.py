"""Every code of the small float formats: the CPU instruction set, torch and ml_dtypes say the same."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess

import pytest

torch = pytest.importorskip("torch")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from pypto.ir import DataType  # noqa: E402
from pypto.ops.torch_values import cast, torch_dtype  # noqa: E402

from ptoas_bridge import isa_include_dir  # noqa: E402

FORMATS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
TORCH = {
    DataType.FP8E4M3FN: ml_dtypes.float8_e4m3fn,
    DataType.FP8E5M2: ml_dtypes.float8_e5m2,
    DataType.FP8E8M0: ml_dtypes.float8_e8m0fnu,
    DataType.BF16: ml_dtypes.bfloat16,
    DataType.FP16: np.float16,
}
CODES = np.arange(256, dtype=np.uint8)
SOURCE = """
#include <cstdint>
#include <pto/types.hpp>
using namespace pto::isa;
#define TABLE(name)                                                                            \\
    extern "C" void decode_##name##_all(const uint8_t* in, float* out, int count) {            \\
        for (int i = 0; i < count; ++i) out[i] = decode_##name(in[i]);                         \\
    }                                                                                          \\
    extern "C" void encode_##name##_all(const float* in, uint8_t* out, int count) {            \\
        for (int i = 0; i < count; ++i) out[i] = encode_##name(in[i]);                         \\
    }
TABLE(e4m3) TABLE(e5m2) TABLE(e8m0) TABLE(hif8) TABLE(e2m1) TABLE(e1m2)
extern "C" void bfloat16_all(const float* in, uint16_t* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = bfloat16_t(in[i]).bits;
}
extern "C" void pairs_all(const float* in, uint8_t* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = float4_e2m1x2_t::pack(in[2 * i], in[2 * i + 1]).bits;
}
"""


@pytest.fixture(scope="module")
def isa(tmp_path_factory):
    """The conversions of the CPU instruction set: ``isa(function, array, dtype of the result)``."""
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("tables")
    (folder / "tables.cpp").write_text(SOURCE)
    flags = ["-O1", "-std=gnu++17", "-fPIC", "-shared", f"-I{isa_include_dir()}"]
    subprocess.run([compiler, *flags, str(folder / "tables.cpp"), "-o", str(folder / "tables.so")], check=True)
    library = ctypes.CDLL(str(folder / "tables.so"))

    def run(name: str, values: np.ndarray, dtype: type, count: int | None = None) -> np.ndarray:
        count = len(values) if count is None else count
        out = np.zeros(count, dtype)
        function = getattr(library, name)
        function.restype = None
        function(values.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), count)
        return out

    return run


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal numbers, NaN equal to NaN, the sign of zero included."""
    nan = np.isnan(left) & np.isnan(right)
    return bool(np.all(nan | ((left == right) & (np.signbit(left) == np.signbit(right)))))


def neighbourhood(table: np.ndarray) -> np.ndarray:
    """The finite numbers of a format, the points half way between neighbours, and what lies just beside those."""
    numbers = np.unique(table[np.isfinite(table)].astype(np.float64))
    middles = (numbers[1:] + numbers[:-1]) / 2
    points = np.concatenate([numbers, middles]).astype(np.float32)
    beside = [np.nextafter(points, np.float32(d)) for d in (np.inf, -np.inf)]
    return np.concatenate([points, *beside]).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
def test_the_instruction_set_decodes_like_ml_dtypes(isa, name):
    codes = CODES[:16] if name == "e2m1" else CODES
    assert same(isa(f"decode_{name}_all", codes, np.float32), codes.view(FORMATS[name]).astype(np.float32))


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m1"])
def test_the_instruction_set_encodes_like_ml_dtypes(isa, name):
    codes = CODES[:16] if name == "e2m1" else CODES
    points = neighbourhood(codes.view(FORMATS[name]).astype(np.float32))
    mine = isa(f"decode_{name}_all", isa(f"encode_{name}_all", points, np.uint8), np.float32)
    assert same(mine, points.astype(FORMATS[name]).astype(np.float32))


def test_numbers_too_large_saturate_where_there_is_no_infinity(isa):
    wide = np.array([1e6, -1e6, np.inf, -np.inf], dtype=np.float32)
    for name, top in (("e4m3", 448.0), ("e2m1", 6.0), ("e1m2", 1.75)):
        back = isa(f"decode_{name}_all", isa(f"encode_{name}_all", wide, np.uint8), np.float32)
        assert back.tolist() == [top, -top, top, -top]
    assert isa("encode_e5m2_all", wide, np.uint8).tolist() == [0x7C, 0xFC, 0x7C, 0xFC]


def test_powers_of_two_are_scales(isa):
    powers = np.float32(2.0) ** np.arange(-126, 128, dtype=np.float32)
    assert np.array_equal(isa("encode_e8m0_all", powers, np.uint8), powers.astype(FORMATS["e8m0"]).view(np.uint8))
    assert isa("encode_e8m0_all", np.array([np.nan], np.float32), np.uint8).tolist() == [255]


def test_e1m2_counts_in_quarters(isa):
    """ml_dtypes has no E1M2: one sign, one exponent and two mantissa bits with bias 1."""
    table = isa("decode_e1m2_all", CODES[:16], np.float32)
    assert same(table, np.array([math.copysign((c & 7) / 4, -1 if c >> 3 else 1) for c in range(16)], np.float32))
    points = neighbourhood(table)
    back = isa("decode_e1m2_all", isa("encode_e1m2_all", points, np.uint8), np.float32)
    assert np.array_equal(np.abs(back), np.abs(np.clip(np.rint(points.astype(np.float64) * 4) / 4, -1.75, 1.75)))


def hifloat8(code: int) -> float:
    """HiFloat8 from its definition: sign, a prefix that sizes the exponent, signed-magnitude exponent, mantissa."""
    if code == 0x80:
        return math.nan
    sign, bits = -1.0 if code & 0x80 else 1.0, f"{code & 0x7F:07b}"
    if bits == "1101111":
        return sign * math.inf
    for prefix, width in (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)):
        if bits.startswith(prefix):
            field, mantissa = bits[len(prefix) :][:width], bits[len(prefix) + width :]
            exponent = (-1 if field[:1] == "1" else 1) * int("1" + field[1:], 2) if field else 0
            return sign * (1 + int(mantissa, 2) / 2 ** len(mantissa)) * 2.0**exponent
    small = int(bits[4:], 2)
    return sign * 2.0 ** (small - 23) if small else 0.0


def test_hifloat8(isa):
    table = np.array([hifloat8(c) for c in range(256)], dtype=np.float32)
    decoded = isa("decode_hif8_all", CODES, np.float32)
    assert same(decoded, table)
    assert [hifloat8(c) for c in (0x08, 0x10, 0x6E, 0x01)] == [1.0, 2.0, 32768.0, 2.0**-22]
    finite = np.isfinite(table)
    assert np.array_equal(isa("encode_hif8_all", table[finite], np.uint8), CODES[finite])
    points = neighbourhood(table)
    points = points[np.abs(points) <= 32768]
    back = isa("decode_hif8_all", isa("encode_hif8_all", points, np.uint8), np.float32).astype(np.float64)
    numbers = np.unique(table[finite].astype(np.float64))
    distance = np.abs(numbers[None, :] - points.astype(np.float64)[:, None]).min(axis=1)
    assert np.array_equal(np.abs(back - points), distance)


def test_hifloat8_takes_the_larger_number_half_way_between_two(isa):
    table = np.array([hifloat8(c) for c in range(128)], dtype=np.float64)
    numbers = np.unique(np.append(table[np.isfinite(table)], 49152.0))  # 1.5 * 2**15 has the code of infinity
    middles = (numbers[1:] + numbers[:-1]) / 2
    upper = np.where(numbers[1:] == 49152.0, np.inf, numbers[1:])
    for sign in (1, -1):
        points = (sign * middles).astype(np.float32)
        back = isa("decode_hif8_all", isa("encode_hif8_all", points, np.uint8), np.float32)
        assert np.array_equal(back, (sign * upper).astype(np.float32))
        below = np.nextafter(points, np.float32(0))
        back = isa("decode_hif8_all", isa("encode_hif8_all", below, np.uint8), np.float32)
        assert np.array_equal(back, (sign * numbers[:-1]).astype(np.float32))
    wide = np.array([40960, np.nextafter(np.float32(40960), np.float32(0)), 1e9, -np.inf], dtype=np.float32)
    assert isa("encode_hif8_all", wide, np.uint8).tolist() == [0x6F, 0x6E, 0x6F, 0xEF]


def test_pairs_hold_the_even_element_in_the_low_nibble(isa):
    table = CODES[:16].view(FORMATS["e2m1"]).astype(np.float32)
    low, high = np.meshgrid(table, table)
    pairs = np.stack([low.reshape(-1), high.reshape(-1)], axis=1).reshape(-1).copy()
    assert np.array_equal(isa("pairs_all", pairs, np.uint8, 256), CODES)


def test_bfloat16_rounds_like_ml_dtypes(isa):
    halves = np.arange(0, 1 << 16, dtype=np.uint32)
    words = np.concatenate([(halves << 16) | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).astype(np.uint32)
    numbers = words.view(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = numbers.astype(ml_dtypes.bfloat16).astype(np.float32)
    got = (isa("bfloat16_all", numbers, np.uint16).astype(np.uint32) << 16).view(np.float32)
    nan = np.isnan(numbers)
    assert np.isnan(got[nan]).all() and np.array_equal(got[~nan].view(np.uint32), wanted[~nan].view(np.uint32))


# -- torch ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TORCH, ids=str)
def test_torch_reads_every_code_like_numpy(dtype):
    storage = np.uint16 if dtype.get_bit() == 16 else np.uint8
    codes = np.arange(1 << dtype.get_bit(), dtype=storage)
    signed = codes.view(np.int16 if storage is np.uint16 else np.uint8)
    decoded = torch.from_numpy(signed.copy()).view(torch_dtype(dtype)).float().numpy()
    with np.errstate(invalid="ignore"):
        assert same(decoded, codes.view(TORCH[dtype]).astype(np.float32))


@pytest.mark.parametrize("dtype", [d for d in TORCH if d is not DataType.FP8E8M0], ids=str)
def test_casts_round_to_the_nearest_even(dtype):
    storage = np.uint16 if dtype.get_bit() == 16 else np.uint8
    with np.errstate(invalid="ignore"):
        table = np.arange(1 << dtype.get_bit(), dtype=storage).view(TORCH[dtype]).astype(np.float32)
    points = neighbourhood(table)
    with np.errstate(over="ignore"):
        wanted = points.astype(TORCH[dtype]).astype(np.float32)
    assert same(cast(torch.from_numpy(points), dtype, 1).float().numpy(), wanted)


@pytest.mark.parametrize("dtype", [DataType.FP4, DataType.HF4, DataType.HF8, DataType.INT4], ids=str)
def test_formats_that_torch_cannot_compute_with_are_named(dtype):
    with pytest.raises(NotImplementedError, match=str(dtype)):
        cast(torch.ones(2), dtype, 1)
