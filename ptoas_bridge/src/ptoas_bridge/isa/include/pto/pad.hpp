// TFILLPAD: a copy whose surroundings are filled with the pad value of the destination.
#pragma once
#include "load_store.hpp"

namespace pto {
namespace isa {

template <PadValue Pad, class D, class S>
inline void fill_pad(D& dst, S& src) {
    using T = typename D::DType;
    static_assert(Pad != PadValue::Null, "TFILLPAD needs a destination whose pad value is not Null");
    static_assert(sizeof(T) == sizeof(typename S::DType), "TFILLPAD keeps the element size");
    static_assert(D::Rows >= S::Rows && D::Cols >= S::Cols,
                  "TFILLPAD needs a destination at least as large as its source");
    const T pad = pad_element<T, Pad>();
    const long rows = src.GetValidRow(), cols = src.GetValidCol();
    if (dst.GetValidRow() == 0 || dst.GetValidCol() == 0) return;
    T* to = dst.data();
    if (static_cast<const void*>(to) != static_cast<const void*>(src.data()))
        copy_block<TileSide<D>, TileSide<S>>(to, tile_layout(dst), 0, 0, reinterpret_cast<const T*>(src.data()),
                                             tile_layout(src), 0, 0, rows, cols);
    if constexpr (!D::isBoxedLayout && D::isRowMajor) {
        for (long i = 0; i < D::Rows; ++i)
            for (long j = i < rows ? cols : 0; j < D::Cols; ++j) to[i * D::RowStride + j] = pad;
    } else {
        for (long i = 0; i < D::Rows; ++i)
            for (long j = i < rows ? cols : 0; j < D::Cols; ++j) to[D::offset(i, j)] = pad;
    }
}

// Matrix tiles pad with zero unless their type says otherwise.
template <class D>
inline constexpr PadValue kTilePad =
    D::PadVal == PadValue::Null && D::Loc == TileType::Mat ? PadValue::Zero : D::PadVal;

}  // namespace isa

template <TFillPadMode Mode = TFillPadMode::Normal, class D, class S>
PTO_INST RecordEvent TFILLPAD(D& dst, S& src) {
    isa::fill_pad<isa::kTilePad<D>>(dst, src);
    return {};
}
template <class TileT, PadValue Pad>
PTO_INST RecordEvent TFILLPAD(TileT& dst, TileT& src) {
    isa::fill_pad<Pad>(dst, src);
    return {};
}
template <class D, class S>
PTO_INST RecordEvent TFILLPAD_INPLACE(D& dst, S& src) {
    isa::fill_pad<isa::kTilePad<D>>(dst, src);
    return {};
}
template <class D, class S>
PTO_INST RecordEvent TFILLPAD_EXPAND(D& dst, S& src) {
    isa::fill_pad<isa::kTilePad<D>>(dst, src);
    return {};
}

}  // namespace pto
