// Broadcasts: a scalar, a row or a column into a tile, alone or combined with a second tile.
#pragma once
#include "elementwise.hpp"
#include "unary.hpp"

namespace pto {
namespace isa {

template <class V>
struct Constant {
    V value;
    [[gnu::always_inline]] V operator()() const { return value; }
};

// exp(a - b); half types round the difference to the element type first.
struct ExponentOfDifference {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return Exponential()(a - b);
    }
};

// The register of column j of a row vector that is either one value or one 32-byte block to repeat across the columns.
template <class T>
inline typename Packet<T>::V column_packet(const T* row, long count, long j) {
    using P = Packet<T>;
    if (count == 1) return P::splat(static_cast<typename P::Lane>(row[0]));
    T lanes[P::kLanes];
    for (long l = 0; l < P::kLanes; ++l) lanes[l] = row[(j + l) % count];
    return P::load(lanes);
}

// to[i, j] = op(wide[i, j], vector[i, 0]); `flip` exchanges the operands of op.
template <class Op, bool Flip, class T>
[[gnu::noinline]] void expand_lines(const Op& op, T* to, long to_pitch, const T* wide, long wide_pitch, const T* vector,
                                    long vector_pitch, long vector_cols, long rows, long cols) {
    using P = Packet<T>;
    constexpr long lanes = P::kLanes;
    for (long i = 0; i < rows; ++i, to += to_pitch, wide += wide_pitch, vector += vector_pitch) {
        auto other = column_packet(vector, vector_cols, 0);
        long j = 0;
        for (; j + lanes <= cols; j += lanes) {
            // A block longer than a register takes several registers in turn.
            if (vector_cols > lanes) other = column_packet(vector, vector_cols, j);
            const auto value = P::load(wide + j);
            P::store(to + j, Flip ? op(other, value) : op(value, other));
        }
        if (j < cols) {
            if (vector_cols > lanes) other = column_packet(vector, vector_cols, j);
            const auto value = P::load_part(wide + j, cols - j, 1);
            P::store_part(to + j, Flip ? op(other, value) : op(value, other), cols - j);
        }
    }
}

// The number of columns of a row-expand vector that repeat: 1, or a 32-byte block.
template <class Vector>
inline long vector_cols_of(const Vector& vector) {
    const long cols = Vector::isRowMajor ? vector.GetValidCol() : 1;
    constexpr long block = 32 / sizeof(typename Vector::DType);
    return cols >= block ? block : cols > 0 ? 1 : 0;
}

template <class Op, class D, class A, class B>
inline void expand_rows_with(D& dst, A& src0, B& src1) {
    using T = typename D::DType;
    static_assert(!D::isBoxedLayout && D::isRowMajor && !A::isBoxedLayout && !B::isBoxedLayout,
                  "a row expansion works on plain tiles and writes a row-major tile");
    static_assert(std::is_same_v<T, typename A::DType> && std::is_same_v<T, typename B::DType>,
                  "the tiles of a row expansion need one element type");
    const long rows = dst.GetValidRow(), cols = dst.GetValidCol();
    const auto is_wide = [&](const auto& tile) {
        using TileT = std::remove_cv_t<std::remove_reference_t<decltype(tile)>>;
        return TileT::isRowMajor && tile.GetValidCol() == cols;
    };
    // When both could be the wide operand (a one-block tile) the first is.
    if (is_wide(src0) || !is_wide(src1)) {
        if (vector_cols_of(src1) == 0) return;
        expand_lines<Op, false, T>(Op(), dst.data(), D::RowStride, src0.data(), A::RowStride, src1.data(), B::RowStride,
                                   vector_cols_of(src1), rows, cols);
    } else {
        if (vector_cols_of(src0) == 0) return;
        expand_lines<Op, true, T>(Op(), dst.data(), D::RowStride, src1.data(), B::RowStride, src0.data(), A::RowStride,
                                  vector_cols_of(src0), rows, cols);
    }
}

template <class Op, class D, class A, class B>
inline void expand_columns_with(D& dst, A& src0, B& src1) {
    using T = typename D::DType;
    static_assert(
        !D::isBoxedLayout && D::isRowMajor && !A::isBoxedLayout && !B::isBoxedLayout && B::isRowMajor && A::isRowMajor,
        "a column expansion works on plain row-major tiles");
    const bool flip = src0.GetValidRow() == 1 && dst.GetValidRow() > 1 && src1.GetValidRow() > 1;
    const long a_pitch = flip ? 0 : A::RowStride, b_pitch = flip ? B::RowStride : 0;
    map_lines<Op, T, T, T>(Op(), dst.GetValidRow(), dst.GetValidCol(), {dst.data(), D::RowStride},
                           {src0.data(), a_pitch}, {src1.data(), b_pitch});
}

}  // namespace isa

// Fills the valid region (of a boxed tile: the whole tile) with a scalar.
template <class D, class X>
PTO_INST RecordEvent TEXPANDS(D& dst, X scalar) {
    using T = typename D::DType;
    const isa::Constant<typename isa::Packet<T>::V> fill{isa::splat_scalar<T>(scalar)};
    if constexpr (D::isBoxedLayout)
        isa::map_lines<decltype(fill), T>(fill, 1, D::Numel, {dst.data(), D::Numel});
    else
        isa::map(fill, dst);
    return {};
}

// dst[i, j] = src[i, 0]
template <class D, class S, class... Rest>
PTO_INST RecordEvent TROWEXPAND(D& dst, S& src, Rest&&...) {
    using T = typename D::DType;
    static_assert(!D::isBoxedLayout && D::isRowMajor && !S::isBoxedLayout, "TROWEXPAND works on plain tiles");
    for (long i = 0; i < dst.GetValidRow(); ++i) {
        const T value = src.data()[i * S::RowStride];
        isa::map_lines(isa::Constant<typename isa::Packet<T>::V>{isa::splat_scalar<T>(value)}, 1, dst.GetValidCol(),
                       isa::Lines<T>{dst.data() + i * D::RowStride, D::RowStride});
    }
    return {};
}

// dst[i, j] = src[0, j]
template <class D, class S, class... Rest>
PTO_INST RecordEvent TCOLEXPAND(D& dst, S& src, Rest&&...) {
    using T = typename D::DType;
    static_assert(!D::isBoxedLayout && D::isRowMajor && !S::isBoxedLayout, "TCOLEXPAND works on plain tiles");
    for (long i = 0; i < dst.GetValidRow(); ++i)
        __builtin_memmove(dst.data() + i * D::RowStride, src.data(), dst.GetValidCol() * sizeof(T));
    return {};
}

#define PTO_EXPAND(NAME, HOW, OP)                                    \
    template <class D, class A, class B, class... Rest>              \
    PTO_INST RecordEvent NAME(D& dst, A& src0, B& src1, Rest&&...) { \
        isa::HOW<isa::OP>(dst, src0, src1);                          \
        return {};                                                   \
    }
PTO_EXPAND(TROWEXPANDADD, expand_rows_with, Add)
PTO_EXPAND(TROWEXPANDSUB, expand_rows_with, Subtract)
PTO_EXPAND(TROWEXPANDMUL, expand_rows_with, Multiply)
PTO_EXPAND(TROWEXPANDMAX, expand_rows_with, Maximum)
PTO_EXPAND(TROWEXPANDMIN, expand_rows_with, Minimum)
PTO_EXPAND(TROWEXPANDEXPDIF, expand_rows_with, ExponentOfDifference)
PTO_EXPAND(TCOLEXPANDADD, expand_columns_with, Add)
PTO_EXPAND(TCOLEXPANDSUB, expand_columns_with, Subtract)
PTO_EXPAND(TCOLEXPANDMUL, expand_columns_with, Multiply)
PTO_EXPAND(TCOLEXPANDDIV, expand_columns_with, Divide)
PTO_EXPAND(TCOLEXPANDMAX, expand_columns_with, Maximum)
PTO_EXPAND(TCOLEXPANDMIN, expand_columns_with, Minimum)
PTO_EXPAND(TCOLEXPANDEXPDIF, expand_columns_with, ExponentOfDifference)
#undef PTO_EXPAND

template <DivAlgorithm Precision = DivAlgorithm::DEFAULT, class D, class A, class B, class... Rest>
PTO_INST RecordEvent TROWEXPANDDIV(D& dst, A& src0, B& src1, Rest&&...) {
    isa::expand_rows_with<isa::Divide>(dst, src0, src1);
    return {};
}

}  // namespace pto
