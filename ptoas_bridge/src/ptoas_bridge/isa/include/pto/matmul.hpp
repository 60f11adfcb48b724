// TMATMUL, TGEMV and their accumulating, biased and block-scaled (MX) forms.
#pragma once
#include "load_store.hpp"
#include "matmul_kernel.hpp"

namespace pto {
namespace isa {

template <class C, class A, class B>
inline void check_product(const C& c, const A& a, const B& b) {
    static_assert(A::Loc == TileType::Left && B::Loc == TileType::Right && C::Loc == TileType::Acc,
                  "a matrix product reads a Left and a Right tile and writes an Acc tile");
    if (a.GetValidCol() > B::Rows || a.GetValidRow() > C::Rows || b.GetValidCol() > C::Cols)
        fail("TMATMUL: [%d, %d] x [%d, %d] does not fit the accumulator of [%d, %d]", a.GetValidRow(), a.GetValidCol(),
             B::Rows, b.GetValidCol(), C::Rows, C::Cols);
    (void)c;
}

template <class C, class A, class B>
inline void multiply_tiles(C& c, A& a, B& b, bool accumulate) {
    check_product(c, a, b);
    static_assert(C::isBoxedLayout && C::isInnerRowMajor && !C::isRowMajor && C::InnerCols == 16,
                  "an accumulator tile has NZ layout with boxes of 16 x 16");
    multiply(c.data(), tile_layout(c).run_stride, static_cast<const typename A::DType*>(a.data()), tile_layout(a),
             long{A::Rows}, static_cast<const typename B::DType*>(b.data()), tile_layout(b), a.GetValidRow(),
             b.GetValidCol(), a.GetValidCol(), accumulate);
}

// dst = acc_in, unless both name the same storage.
template <class C, class In, class A, class B>
inline void copy_accumulator(C& c, In& in, A& a, B& b) {
    if (static_cast<void*>(c.data()) == static_cast<void*>(in.data())) return;
    copy_block<TileSide<C>, TileSide<In>>(c.data(), tile_layout(c), 0, 0,
                                          static_cast<const typename In::DType*>(in.data()), tile_layout(in), 0, 0,
                                          a.GetValidRow(), b.GetValidCol());
}

template <class C, class A, class B, class Bias>
inline void fill_with_bias(C& c, A& a, B& b, Bias& bias) {
    const LineLayout layout = tile_layout(c);
    for (long i = 0; i < a.GetValidRow(); ++i)
        copy_block<TileSide<C>, TileSide<Bias>>(c.data(), layout, i, 0,
                                                static_cast<const typename Bias::DType*>(bias.data()),
                                                tile_layout(bias), 0, 0, 1, b.GetValidCol());
}

}  // namespace isa

#define PTO_MATMUL(NAME)                                                   \
    template <class C, class A, class B>                                   \
    PTO_INST RecordEvent NAME(C& dst, A& lhs, B& rhs) {                    \
        isa::multiply_tiles(dst, lhs, rhs, false);                         \
        return {};                                                         \
    }                                                                      \
    template <AccPhase Phase, class C, class A, class B>                   \
    PTO_INST RecordEvent NAME(C& dst, A& lhs, B& rhs) {                    \
        return NAME(dst, lhs, rhs);                                        \
    }                                                                      \
    template <class C, class In, class A, class B>                         \
    PTO_INST RecordEvent NAME##_ACC(C& dst, In& acc_in, A& lhs, B& rhs) {  \
        isa::copy_accumulator(dst, acc_in, lhs, rhs);                      \
        isa::multiply_tiles(dst, lhs, rhs, true);                          \
        return {};                                                         \
    }                                                                      \
    template <AccPhase Phase, class C, class In, class A, class B>         \
    PTO_INST RecordEvent NAME##_ACC(C& dst, In& acc_in, A& lhs, B& rhs) {  \
        return NAME##_ACC(dst, acc_in, lhs, rhs);                          \
    }                                                                      \
    template <class C, class A, class B>                                   \
    PTO_INST RecordEvent NAME##_ACC(C& dst, A& lhs, B& rhs) {              \
        isa::multiply_tiles(dst, lhs, rhs, true);                          \
        return {};                                                         \
    }                                                                      \
    template <class C, class A, class B, class Bias>                       \
    PTO_INST RecordEvent NAME##_BIAS(C& dst, A& lhs, B& rhs, Bias& bias) { \
        isa::fill_with_bias(dst, lhs, rhs, bias);                          \
        isa::multiply_tiles(dst, lhs, rhs, true);                          \
        return {};                                                         \
    }                                                                      \
    template <AccPhase Phase, class C, class A, class B, class Bias>       \
    PTO_INST RecordEvent NAME##_BIAS(C& dst, A& lhs, B& rhs, Bias& bias) { \
        return NAME##_BIAS(dst, lhs, rhs, bias);                           \
    }
PTO_MATMUL(TMATMUL)
PTO_MATMUL(TGEMV)
#undef PTO_MATMUL

}  // namespace pto
