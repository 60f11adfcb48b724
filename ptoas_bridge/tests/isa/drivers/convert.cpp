#include "driver.hpp"

template <class S, class D>
void tcvt(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<S>>(c.pointer<S>(0), rows, cols, 0);
    auto d = make<Plain<D>>(rows, cols, c.number[4] ? 0 : 2 * kSlot);
    RoundMode mode = static_cast<RoundMode>(c.number[2]);
    SaturationMode saturation = static_cast<SaturationMode>(c.number[3]);
    TCVT(d, a, mode, saturation);
    stored(d, c.pointer<D>(1));
}
#define CVT(A, TA, B, TB) ENTRY(tcvt, A##_##B, TA, TB)
CVT(f32, float, f16, half)
CVT(f32, float, bf16, bfloat16_t)
CVT(f32, float, f32, float)
CVT(f32, float, i16, int16_t)
CVT(f32, float, i32, int32_t)
CVT(f32, float, i64, int64_t)
CVT(f32, float, e4m3, float8_e4m3_t)
CVT(f32, float, e5m2, float8_e5m2_t)
CVT(f16, half, f32, float)
CVT(f16, half, i32, int32_t)
CVT(f16, half, i16, int16_t)
CVT(f16, half, i8, int8_t)
CVT(f16, half, u8, uint8_t)
CVT(bf16, bfloat16_t, f32, float)
CVT(bf16, bfloat16_t, i32, int32_t)
CVT(bf16, bfloat16_t, f16, half)
CVT(i16, int16_t, f16, half)
CVT(i16, int16_t, f32, float)
CVT(i16, int16_t, u8, uint8_t)
CVT(i16, int16_t, i32, int32_t)
CVT(i32, int32_t, f32, float)
CVT(i32, int32_t, i16, int16_t)
CVT(i32, int32_t, u8, uint8_t)
CVT(i32, int32_t, i64, int64_t)
CVT(i32, int32_t, f16, half)
CVT(i64, int64_t, f32, float)
CVT(i64, int64_t, i32, int32_t)
CVT(u8, uint8_t, f16, half)
CVT(i8, int8_t, f16, half)
CVT(i8, int8_t, i32, int32_t)
CVT(u32, uint32_t, u8, uint8_t)
CVT(e4m3, float8_e4m3_t, f32, float)
CVT(e5m2, float8_e5m2_t, f32, float)

template <class T>
void column_cvt(const Call& c) {
    auto a = loaded<Column<float>>(c.pointer<float>(0), c.number[0], 1, 0);
    auto d = make<Column<T>>(c.number[0], 1, kSlot);
    TCVT(d, a, RoundMode::CAST_RINT);
    stored(d, c.pointer<T>(1));
}
ENTRY(column_cvt, f16, half)

// Pairs of 4-bit floats to bfloat16 and back.
template <class P>
void pairs(const Call& c) {
    using Narrow = Tile<TileType::Vec, P, 8, 32, BLayout::RowMajor, -1, -1>;
    using Wide = Tile<TileType::Vec, bfloat16_t, 8, 64, BLayout::RowMajor, -1, -1>;
    auto a = loaded<Narrow>(c.pointer<P>(0), 8, 32, 0, 32);
    auto w = make<Wide>(8, 64, kSlot);
    TCVT(w, a, RoundMode::CAST_RINT);
    stored(w, c.pointer<bfloat16_t>(1), 64);
    auto back = make<Narrow>(8, 32, 2 * kSlot);
    TCVT(back, w, RoundMode::CAST_RINT);
    stored(back, c.pointer<P>(2), 32);
}
ENTRY(pairs, e2m1, float4_e2m1x2_t)
ENTRY(pairs, e1m2, float4_e1m2x2_t)

// Scalar codecs: all 256 codes decoded, then the floats encoded again.
template <class T>
void codes(const Call& c) {
    for (int i = 0; i < 256; ++i) {
        T value;
        const uint8_t code = static_cast<uint8_t>(i);
        __builtin_memcpy(&value, &code, 1);
        const float decoded = value;
        c.pointer<float>(0)[i] = decoded;
        const T again(decoded);
        __builtin_memcpy(c.pointer<uint8_t>(1) + i, &again, 1);
    }
    for (int64_t i = 0; i < c.number[0]; ++i) {
        const T value(c.pointer<float>(2)[i]);
        c.pointer<float>(3)[i] = value;
    }
}
ENTRY(codes, e4m3, float8_e4m3_t)
ENTRY(codes, e5m2, float8_e5m2_t)
ENTRY(codes, e8m0, float8_e8m0_t)
ENTRY(codes, hif8, hifloat8_t)
