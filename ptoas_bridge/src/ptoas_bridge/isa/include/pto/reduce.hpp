// Row and column reductions: sums, products, extremes and the positions of extremes.
#pragma once
#include "elementwise.hpp"

namespace pto {
namespace isa {

// A reduction step with its neutral element in the lane type.
template <class T>
struct SumOf : Add {
    static T neutral() { return T(0); }
};
template <class T>
struct ProductOf : Multiply {
    static T neutral() { return T(1); }
};
template <class T>
struct MaximumOf : Maximum {
    static T neutral() { return least<T>(); }
};
template <class T>
struct MinimumOf : Minimum {
    static T neutral() { return greatest<T>(); }
};

// Folds the lanes of a register in halves.
template <class Op, class V>
inline Element<V> fold_lanes(const Op& op, V value) {
    constexpr int lanes = sizeof(V) / sizeof(Element<V>);
    if constexpr (lanes == 1) {
        return value[0];
    } else {
        using Half = Vector<Element<V>, lanes / 2>;
        Half parts[2];
        __builtin_memcpy(parts, &value, sizeof(value));
        return fold_lanes(op, op(parts[0], parts[1]));
    }
}

// Reduces `rows` lines of `cols` contiguous elements; half types accumulate in float and round once.
template <class Op, class T>
[[gnu::noinline]] void reduce_lines(const Op& op, T* to, long to_pitch, const T* from, long from_pitch, long rows,
                                    long cols) {
    using P = Packet<T>;
    using V = typename P::V;
    constexpr long lanes = P::kLanes;
    const auto neutral = Op::neutral();
    for (long i = 0; i < rows; ++i, from += from_pitch) {
        V total[4];
        for (V& part : total) part = P::splat(neutral);
        long j = 0;
        for (; j + 4 * lanes <= cols; j += 4 * lanes)
            for (int k = 0; k < 4; ++k) total[k] = op(total[k], P::load(from + j + k * lanes));
        for (; j + lanes <= cols; j += lanes) total[0] = op(total[0], P::load(from + j));
        if (j < cols) total[1] = op(total[1], P::load_part(from + j, cols - j, neutral));
        const V all = op(op(total[0], total[1]), op(total[2], total[3]));
        to[i * to_pitch] = static_cast<T>(fold_lanes(op, all));
    }
}

// Reduces every column of `rows` lines; one register of columns at a time, rows in order.
template <class Op, class T>
[[gnu::noinline]] void reduce_columns(const Op& op, T* to, const T* from, long from_pitch, long rows, long cols) {
    using P = Packet<T>;
    using V = typename P::V;
    constexpr long lanes = P::kLanes;
    long j = 0;
    for (; j + 4 * lanes <= cols; j += 4 * lanes) {
        V total[4];
        for (V& part : total) part = P::splat(Op::neutral());
        for (long i = 0; i < rows; ++i)
            for (int k = 0; k < 4; ++k) total[k] = op(total[k], P::load(from + i * from_pitch + j + k * lanes));
        for (int k = 0; k < 4; ++k) P::store(to + j + k * lanes, total[k]);
    }
    for (; j < cols; j += lanes) {
        const long count = cols - j < lanes ? cols - j : lanes;
        V total = P::splat(Op::neutral());
        if (count == lanes) {
            for (long i = 0; i < rows; ++i) total = op(total, P::load(from + i * from_pitch + j));
            P::store(to + j, total);
        } else {
            for (long i = 0; i < rows; ++i) total = op(total, P::load_part(from + i * from_pitch + j, count));
            P::store_part(to + j, total, count);
        }
    }
}

template <class T>
using LaneOf = typename Packet<T>::Lane;

template <template <class> class Op, class D, class S>
inline void reduce_rows_of(const char* name, D& dst, S& src) {
    using T = typename S::DType;
    static_assert(std::is_same_v<T, typename D::DType>, "a row reduction keeps the element type");
    static_assert(!D::isBoxedLayout && !S::isBoxedLayout && S::isRowMajor,
                  "a row reduction reads a plain row-major tile and writes a plain tile");
    if (src.GetValidCol() == 0) fail("%s: the reduced extent of the source is 0", name);
    reduce_lines(Op<LaneOf<T>>(), dst.data(), D::RowStride, static_cast<const T*>(src.data()), S::RowStride,
                 src.GetValidRow(), src.GetValidCol());
}
template <template <class> class Op, class D, class S>
inline void reduce_columns_of(const char* name, D& dst, S& src) {
    using T = typename S::DType;
    static_assert(std::is_same_v<T, typename D::DType>, "a column reduction keeps the element type");
    static_assert(!D::isBoxedLayout && !S::isBoxedLayout && S::isRowMajor && (D::isRowMajor || D::Cols == 1),
                  "a column reduction works on plain row-major tiles");
    if (src.GetValidRow() == 0) fail("%s: the reduced extent of the source is 0", name);
    reduce_columns(Op<LaneOf<T>>(), dst.data(), static_cast<const T*>(src.data()), S::RowStride, src.GetValidRow(),
                   src.GetValidCol());
}

// First position of the extreme along each line; a NaN counts as the extreme.
template <class Better, class T, class I>
[[gnu::noinline]] void arg_lines(const Better& better, I* to, long to_pitch, const T* from, long line_pitch,
                                 long element_pitch, long lines, long length) {
    for (long i = 0; i < lines; ++i) {
        const T* line = from + i * line_pitch;
        auto best = static_cast<LaneOf<T>>(line[0]);
        long position = 0;
        for (long j = 1; j < length && best == best; ++j) {
            const auto value = static_cast<LaneOf<T>>(line[j * element_pitch]);
            if (better(value, best) || value != value) {
                best = value;
                position = j;
            }
        }
        to[i * to_pitch] = static_cast<I>(position);
    }
}
struct IsGreater {
    template <class X>
    auto operator()(X a, X b) const {
        return a > b;
    }
};
struct IsLess {
    template <class X>
    auto operator()(X a, X b) const {
        return a < b;
    }
};

// The same for 32-bit lanes in registers: rows keep one candidate per lane, columns one per column.
template <class Better, class V>
[[gnu::always_inline]] inline auto is_better(V value, V best) {
    const auto better = Better()(value, best);
    if constexpr (kFloatVector<V>)
        return better | ((value != value) & (best == best));
    else
        return better;
}
template <class Better, class T, class I>
[[gnu::noinline]] void arg_rows(I* to, long to_pitch, const T* from, long from_pitch, long rows, long cols) {
    using P = Packet<T>;
    using V = typename P::V;
    constexpr long lanes = P::kLanes;
    IntVector ramp;
    for (int l = 0; l < lanes; ++l) ramp[l] = l;
    for (long i = 0; i < rows; ++i, from += from_pitch) {
        // Lanes past the end repeat the first element, which never beats itself.
        const LaneOf<T> first = static_cast<LaneOf<T>>(from[0]);
        V best = cols >= lanes ? P::load(from) : P::load_part(from, cols, first);
        IntVector position = ramp;
        for (long j = lanes; j < cols; j += lanes) {
            const V value = j + lanes <= cols ? P::load(from + j) : P::load_part(from + j, cols - j, first);
            const auto take = is_better<Better>(value, best);
            best = take ? value : best;
            position = take ? ramp + static_cast<int32_t>(j) : position;
        }
        LaneOf<T> winner = best[0];
        int32_t at = position[0];
        for (int l = 1; l < lanes && l < cols; ++l) {
            const LaneOf<T> value = best[l];
            const bool value_nan = value != value, winner_nan = winner != winner;
            const bool better = value_nan ? !winner_nan : !winner_nan && Better()(value, winner);
            const bool equal = value == winner || (value_nan && winner_nan);
            if (better || (equal && position[l] < at)) {
                winner = value;
                at = position[l];
            }
        }
        to[i * to_pitch] = static_cast<I>(at);
    }
}
template <class Better, class T, class I>
[[gnu::noinline]] void arg_columns(I* to, long to_pitch, const T* from, long from_pitch, long rows, long cols) {
    using P = Packet<T>;
    constexpr long lanes = P::kLanes;
    for (long j = 0; j < cols; j += lanes) {
        const long count = cols - j < lanes ? cols - j : lanes;
        const auto row = [&](long i) {
            const T* at = from + i * from_pitch + j;
            return count == lanes ? P::load(at) : P::load_part(at, count);
        };
        auto best = row(0);
        IntVector position{};
        for (long i = 1; i < rows; ++i) {
            const auto value = row(i);
            const auto take = is_better<Better>(value, best);
            best = take ? value : best;
            position = take ? IntVector{} + static_cast<int32_t>(i) : position;
        }
        for (long l = 0; l < count; ++l) to[(j + l) * to_pitch] = static_cast<I>(position[l]);
    }
}

template <class Better, class D, class S>
inline void arg_rows_of(const char* name, D& dst, S& src) {
    using T = typename S::DType;
    if (src.GetValidCol() == 0) fail("%s: the reduced extent of the source is 0", name);
    if constexpr (sizeof(LaneOf<T>) == 4 && S::isRowMajor && !S::isBoxedLayout)
        arg_rows<Better, T>(dst.data(), D::RowStride, src.data(), S::RowStride, src.GetValidRow(), src.GetValidCol());
    else
        arg_lines(Better(), dst.data(), D::RowStride, src.data(), S::RowStride, S::ColStride, src.GetValidRow(),
                  src.GetValidCol());
}
template <class Better, class D, class S>
inline void arg_columns_of(const char* name, D& dst, S& src) {
    using T = typename S::DType;
    if (src.GetValidRow() == 0) fail("%s: the reduced extent of the source is 0", name);
    if constexpr (sizeof(LaneOf<T>) == 4 && S::isRowMajor && !S::isBoxedLayout)
        arg_columns<Better, T>(dst.data(), D::ColStride, src.data(), S::RowStride, src.GetValidRow(),
                               src.GetValidCol());
    else
        arg_lines(Better(), dst.data(), D::ColStride, src.data(), S::ColStride, S::RowStride, src.GetValidCol(),
                  src.GetValidRow());
}

}  // namespace isa

#define PTO_REDUCTION(NAME, HOW)                           \
    template <class D, class S, class... Rest>             \
    PTO_INST RecordEvent NAME(D& dst, S& src, Rest&&...) { \
        isa::HOW(#NAME, dst, src);                         \
        return {};                                         \
    }
PTO_REDUCTION(TROWSUM, reduce_rows_of<isa::SumOf>)
PTO_REDUCTION(TROWPROD, reduce_rows_of<isa::ProductOf>)
PTO_REDUCTION(TROWMAX, reduce_rows_of<isa::MaximumOf>)
PTO_REDUCTION(TROWMIN, reduce_rows_of<isa::MinimumOf>)
PTO_REDUCTION(TCOLSUM, reduce_columns_of<isa::SumOf>)
PTO_REDUCTION(TCOLPROD, reduce_columns_of<isa::ProductOf>)
PTO_REDUCTION(TCOLMAX, reduce_columns_of<isa::MaximumOf>)
PTO_REDUCTION(TCOLMIN, reduce_columns_of<isa::MinimumOf>)
PTO_REDUCTION(TROWARGMAX, arg_rows_of<isa::IsGreater>)
PTO_REDUCTION(TROWARGMIN, arg_rows_of<isa::IsLess>)
PTO_REDUCTION(TCOLARGMAX, arg_columns_of<isa::IsGreater>)
PTO_REDUCTION(TCOLARGMIN, arg_columns_of<isa::IsLess>)
#undef PTO_REDUCTION

}  // namespace pto
