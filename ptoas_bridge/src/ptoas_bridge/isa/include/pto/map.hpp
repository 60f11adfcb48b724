// Elementwise loops: an operation on registers applied to every element of the valid region of the destination.
#pragma once
#include <cstdint>

#include "line_layout.hpp"
#include "simd.hpp"
#include "tile.hpp"

namespace pto::isa {

template <class T>
struct Lines {
    T* base;
    long pitch;
};

// Applies `op` along `outer` lines of `inner` contiguous elements. The destination may be one of the sources.
template <class Op, class D, class... S>
[[gnu::noinline]] void map_lines(const Op& op, long outer, long inner, Lines<D> d, Lines<const S>... s) {
    using P = Packet<D>;
    constexpr long lanes = P::kLanes;
    static_assert(((Packet<S>::kLanes == lanes) && ...), "the operands of an elementwise loop need equal lane counts");
    if (((inner == d.pitch) && ... && (inner == s.pitch))) {
        inner *= outer;
        outer = 1;
    }
    for (; outer > 0; --outer) {
        long i = 0;
        for (; i + lanes <= inner; i += lanes) P::store(d.base + i, op(Packet<S>::load(s.base + i)...));
        // Lanes past the end compute on ones, which no operation objects to.
        if (i < inner) P::store_part(d.base + i, op(Packet<S>::load_part(s.base + i, inner - i, 1)...), inner - i);
        d.base += d.pitch;
        ((s.base += s.pitch), ...);
    }
}

// Operands with different layouts: elements are collected one register at a time.
template <class Op, class D, class... S>
void map_scattered(const Op& op, D& dst, const S&... src) {
    using T = typename D::DType;
    constexpr int lanes = Packet<T>::kLanes;
    const int rows = dst.GetValidRow(), cols = dst.GetValidCol();
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; j += lanes) {
            const int count = cols - j < lanes ? cols - j : lanes;
            const auto gather = [&](const auto& tile) {
                using TileT = std::remove_cv_t<std::remove_reference_t<decltype(tile)>>;
                using E = typename TileT::DType;
                E values[lanes];
                const auto* data = tile.data();
                for (int l = 0; l < lanes; ++l) values[l] = l < count ? data[TileT::offset(i, j + l)] : E(1);
                return Packet<E>::load(values);
            };
            T values[lanes];
            Packet<T>::store(values, op(gather(src)...));
            T* data = dst.data();
            for (int l = 0; l < count; ++l) data[D::offset(i, j + l)] = values[l];
        }
    }
}

template <class A, class B>
inline constexpr bool kSameLayout = A::BFractal == B::BFractal && A::SFractal == B::SFractal &&
                                    A::InnerRows == B::InnerRows && A::InnerCols == B::InnerCols;

// Pitch of the lines in which map() walks a tile, and their number and length for a given valid region. Boxed tiles are
// walked in whole boxes: what lies outside the valid region of a box is unspecified anyway.
template <class TileT>
constexpr long line_pitch() {
    constexpr long plus = TileT::Compact == CompactMode::RowPlusOne;
    if constexpr (!TileT::isBoxedLayout)
        return TileT::isRowMajor ? TileT::RowStride : TileT::ColStride;
    else
        return TileT::isRowMajor ? (TileT::Cols + plus) * TileT::InnerRows : (TileT::Rows + plus) * TileT::InnerCols;
}

template <class TileT>
inline void line_extent(const TileT& tile, long& outer, long& inner) {
    const long rows = tile.GetValidRow(), cols = tile.GetValidCol();
    if constexpr (!TileT::isBoxedLayout) {
        outer = TileT::isRowMajor ? rows : cols;
        inner = TileT::isRowMajor ? cols : rows;
    } else {
        constexpr long ir = TileT::InnerRows, ic = TileT::InnerCols;
        const long box_rows = (rows + ir - 1) / ir * ir, box_cols = (cols + ic - 1) / ic * ic;
        outer = TileT::isRowMajor ? box_rows / ir : box_cols / ic;
        inner = TileT::isRowMajor ? box_cols * ir : box_rows * ic;
        if (rows == 0 || cols == 0) inner = 0;
    }
}

template <class Op, class D, class... S>
inline void map(const Op& op, D& dst, const S&... src) {
    static_assert(((Packet<typename S::DType>::kLanes == Packet<typename D::DType>::kLanes) && ...),
                  "the tiles of an elementwise instruction need one element type");
    if constexpr ((kSameLayout<D, S> && ...)) {
        long outer, inner;
        line_extent(dst, outer, inner);
        map_lines<Op, typename D::DType, typename S::DType...>(op, outer, inner, {dst.data(), line_pitch<D>()},
                                                               {src.data(), line_pitch<S>()}...);
    } else {
        map_scattered(op, dst, src...);
    }
}

}  // namespace pto::isa
