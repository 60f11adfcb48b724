// TPART*: elementwise instructions on sources of different valid regions; where only one is defined it is taken.
#pragma once
#include "elementwise.hpp"

namespace pto {
namespace isa {

template <class Op, class D, class A, class B>
void map_partial(const Op& op, D& dst, A& src0, B& src1) {
    using T = typename D::DType;
    static_assert(!D::isBoxedLayout && D::isRowMajor && kSameLayout<D, A> && kSameLayout<D, B>,
                  "TPART instructions work on plain row-major tiles");
    const long rows = dst.GetValidRow(), cols = dst.GetValidCol();
    if (src0.GetValidRow() >= rows && src1.GetValidRow() >= rows && src0.GetValidCol() >= cols &&
        src1.GetValidCol() >= cols) {
        map(op, dst, src0, src1);
        return;
    }
    const auto clip = [&](long value) { return value < cols ? value : cols; };
    for (long i = 0; i < rows; ++i) {
        T* to = dst.data() + i * D::RowStride;
        const T* a = src0.data() + i * A::RowStride;
        const T* b = src1.data() + i * B::RowStride;
        const long a_cols = i < src0.GetValidRow() ? clip(src0.GetValidCol()) : 0;
        const long b_cols = i < src1.GetValidRow() ? clip(src1.GetValidCol()) : 0;
        const long both = a_cols < b_cols ? a_cols : b_cols, one = a_cols < b_cols ? b_cols : a_cols;
        map_lines<Op, T, T, T>(op, 1, both, {to, 0}, {a, 0}, {b, 0});
        __builtin_memmove(to + both, (a_cols < b_cols ? b : a) + both, (one - both) * sizeof(T));
        for (long j = one; j < cols; ++j) to[j] = T(0);
    }
}

// The better of two (value, position) pairs; the first pair wins ties.
template <bool Greater, class D, class DI, class A, class B, class AI, class BI>
void map_partial_arg(D& dst, DI& dst_index, A& src0, B& src1, AI& index0, BI& index1) {
    const long rows = dst.GetValidRow(), cols = dst.GetValidCol();
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < cols; ++j) {
            const bool has0 = i < src0.GetValidRow() && j < src0.GetValidCol();
            const bool has1 = i < src1.GetValidRow() && j < src1.GetValidCol();
            if (!has0 && !has1) continue;
            bool second = !has0;
            if (has0 && has1) {
                const auto a = src0.data()[A::offset(i, j)];
                const auto b = src1.data()[B::offset(i, j)];
                second = Greater ? b > a : b < a;
            }
            dst.data()[D::offset(i, j)] = second ? src1.data()[B::offset(i, j)] : src0.data()[A::offset(i, j)];
            dst_index.data()[DI::offset(i, j)] = scalar_cast<typename DI::DType>(
                second ? index1.data()[BI::offset(i, j)] : index0.data()[AI::offset(i, j)]);
        }
}

}  // namespace isa

#define PTO_PARTIAL_TILE(NAME, OP)                                   \
    template <class D, class A, class B, class... Rest>              \
    PTO_INST RecordEvent NAME(D& dst, A& src0, B& src1, Rest&&...) { \
        isa::map_partial(isa::OP(), dst, src0, src1);                \
        return {};                                                   \
    }
PTO_PARTIAL_TILE(TPARTADD, Add)
PTO_PARTIAL_TILE(TPARTMUL, Multiply)
PTO_PARTIAL_TILE(TPARTMAX, Maximum)
PTO_PARTIAL_TILE(TPARTMIN, Minimum)
#undef PTO_PARTIAL_TILE

template <class D, class A, class B, class DI, class AI, class BI>
PTO_INST RecordEvent TPARTARGMAX(D& dst, A& src0, B& src1, DI& dst_index, AI& index0, BI& index1) {
    isa::map_partial_arg<true>(dst, dst_index, src0, src1, index0, index1);
    return {};
}
template <class D, class A, class B, class DI, class AI, class BI>
PTO_INST RecordEvent TPARTARGMIN(D& dst, A& src0, B& src1, DI& dst_index, AI& index0, BI& index1) {
    isa::map_partial_arg<false>(dst, dst_index, src0, src1, index0, index1);
    return {};
}

}  // namespace pto
