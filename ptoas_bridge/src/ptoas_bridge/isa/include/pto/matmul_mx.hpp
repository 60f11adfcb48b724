// TMATMUL_MX: matrix products of 8-bit floats with one power-of-two scale per 32 elements of the contraction.
#pragma once
#include "matmul.hpp"

namespace pto {
namespace isa {

// The value of an e8m0 code, whether the tile declares it as such or as plain bytes.
template <class T>
inline float scale_value(T code) {
    static_assert(sizeof(T) == 1, "MX scales are bytes");
    return decode_e8m0(bit_cast<uint8_t>(code));
}

// Both operands as floats in the layouts that the engine reads directly: panels of eight k per row or column.
template <class C, class A, class AS, class B, class BS>
void multiply_scaled(C& c, A& a, AS& a_scale, B& b, BS& b_scale, bool accumulate) {
    check_product(c, a, b);
    static_assert(!kIsPair<typename A::DType> && !kIsPair<typename B::DType>,
                  "TMATMUL_MX of 4-bit operands is not supported; convert them to 8-bit floats");
    const long m = a.GetValidRow(), k = a.GetValidCol(), n = b.GetValidCol();
    const long rows = (m + 15) / 16 * 16, cols = (n + 15) / 16 * 16, depth = (k + 7) / 8 * 8;
    float* left = reinterpret_cast<float*>(thread_memory.operands.reserve((rows + cols) * depth * sizeof(float)));
    float* right = left + rows * depth;
    for (long i = 0; i < m; ++i)
        for (long j = 0; j < k; ++j)
            left[(j / 8) * rows * 8 + i * 8 + j % 8] =
                static_cast<float>(a.data()[A::offset(i, j)]) * scale_value(a_scale.data()[AS::offset(i, j / 32)]);
    for (long j = 0; j < n; ++j)
        for (long i = 0; i < k; ++i)
            right[(i / 8) * cols * 8 + j * 8 + i % 8] =
                static_cast<float>(b.data()[B::offset(i, j)]) * scale_value(b_scale.data()[BS::offset(i / 32, j)]);
    const LineLayout left_layout{false, 8, rows * 8, kUnbounded, 8, 0},
        right_layout{true, 8, cols * 8, kUnbounded, 8, 0};
    multiply(c.data(), tile_layout(c).run_stride, static_cast<const float*>(left), left_layout, rows,
             static_cast<const float*>(right), right_layout, m, n, k, accumulate);
}

}  // namespace isa

#define PTO_MATMUL_MX(NAME)                                                           \
    template <class C, class A, class AS, class B, class BS>                          \
    PTO_INST RecordEvent NAME(C& dst, A& lhs, AS& lhs_scale, B& rhs, BS& rhs_scale) { \
        isa::multiply_scaled(dst, lhs, lhs_scale, rhs, rhs_scale, false);             \
        return {};                                                                    \
    }                                                                                 \
    /* Six operands: an accumulator first, or a bias last. */                         \
    template <class C, class T0, class T1, class T2, class T3, class T4>              \
    PTO_INST RecordEvent NAME(C& dst, T0& t0, T1& t1, T2& t2, T3& t3, T4& t4) {       \
        if constexpr (T0::Loc == TileType::Acc) {                                     \
            isa::copy_accumulator(dst, t0, t1, t3);                                   \
            isa::multiply_scaled(dst, t1, t2, t3, t4, true);                          \
        } else {                                                                      \
            isa::fill_with_bias(dst, t0, t2, t4);                                     \
            isa::multiply_scaled(dst, t0, t1, t2, t3, true);                          \
        }                                                                             \
        return {};                                                                    \
    }                                                                                 \
    template <AccPhase Phase, class... Tiles>                                         \
    PTO_INST RecordEvent NAME(Tiles&... tiles) {                                      \
        return NAME(tiles...);                                                        \
    }
PTO_MATMUL_MX(TMATMUL_MX)
PTO_MATMUL_MX(TGEMV_MX)
#undef PTO_MATMUL_MX

// Binds a scale tile to the place that belongs to its operand: one scale byte per sixteen operand bytes.
template <class Scale, class Operand>
PTO_INST RecordEvent TGET_SCALE_ADDR(Scale& dst, Operand& src) {
    static_assert((Scale::Loc == TileType::ScaleLeft && Operand::Loc == TileType::Left) ||
                      (Scale::Loc == TileType::ScaleRight && Operand::Loc == TileType::Right),
                  "TGET_SCALE_ADDR binds a ScaleLeft tile to a Left tile or a ScaleRight tile to a Right tile");
    const auto* base = isa::memory_of(Operand::Loc).base;
    isa::bind_address(dst, static_cast<uint64_t>(reinterpret_cast<const unsigned char*>(src.data()) - base) >> 4);
    return {};
}

}  // namespace pto
