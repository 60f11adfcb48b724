// TLOAD and TSTORE: between global memory and tiles, with the re-packing that the two layouts imply.
#pragma once
#include "fixpipe.hpp"
#include "global_tensor.hpp"
#include "line_layout.hpp"

namespace pto {
namespace isa {

// The direction in which a view is walked for a tile: that of its layout, except that a single row or column follows
// the tile, so that vectors are never transposed.
template <class Global, class TileT>
constexpr bool view_by_column() {
    if constexpr (Global::layout == Layout::NZ)
        return false;
    else if constexpr (!TileT::isBoxedLayout && (TileT::Cols == 1 || Global::template GetShape<4>() == 1))
        return kByColumn<TileT>;
    else if constexpr (!TileT::isBoxedLayout && TileT::isRowMajor && TileT::Rows == 1)
        return false;
    else
        return Global::layout == Layout::DN;
}
template <class Global, class TileT>
constexpr bool view_is_plain() {
    constexpr int contiguous = view_by_column<Global, TileT>() ? 3 : 4;
    return Global::layout != Layout::NZ && Global::template GetStride<contiguous>() == 1;
}
template <class Global, class TileT>
using ViewSide = Side<view_by_column<Global, TileT>(), view_is_plain<Global, TileT>()>;

// Calls body(layout, pointer, row, col, rows, cols) for every two-dimensional part of a global view; row and col say
// where the part lies in the tile.
template <class TileT, class Global, class Body>
inline void for_each_part(const Global& view, const TileT& tile, const Body& body) {
    const long s0 = view.GetShape(0), s1 = view.GetShape(1), s2 = view.GetShape(2), s3 = view.GetShape(3),
               s4 = view.GetShape(4);
    const long t0 = view.GetStride(0), t1 = view.GetStride(1), t2 = view.GetStride(2), t3 = view.GetStride(3),
               t4 = view.GetStride(4);
    const long tile_rows = tile.GetValidRow(), tile_cols = tile.GetValidCol();
    const auto clip = [](long wanted, long available) { return wanted < available ? wanted : available; };
    if constexpr (Global::layout == Layout::NZ) {
        const LineLayout layout{false, s4, t1, s3, t3, t2};
        const long rows = clip(tile_rows, s2 * s3), part = s1 * s4;
        for (long i0 = 0; i0 < s0 && i0 * part < tile_cols; ++i0)
            body(layout, view.data() + i0 * t0, 0, i0 * part, rows, clip(tile_cols - i0 * part, part));
    } else {
        constexpr bool by_column = view_by_column<Global, TileT>();
        const long along = by_column ? t3 : t4, across = by_column ? t4 : t3;
        const LineLayout layout{by_column, along == 1 ? kUnbounded : 1, along, kUnbounded, across, 0};
        const long cols = clip(tile_cols, s4);
        long row = 0;
        for (long i0 = 0; i0 < s0; ++i0)
            for (long i1 = 0; i1 < s1; ++i1)
                for (long i2 = 0; i2 < s2; ++i2, row += s3) {
                    if (row >= tile_rows) return;
                    body(layout, view.data() + i0 * t0 + i1 * t1 + i2 * t2, row, 0, clip(tile_rows - row, s3), cols);
                }
    }
}

template <class T, PadValue Pad>
inline T pad_element() {
    if constexpr (Pad == PadValue::Max)
        return greatest<T>();
    else if constexpr (Pad == PadValue::Min)
        return least<T>();
    else {
        T zero;
        __builtin_memset(&zero, 0, sizeof(T));
        return zero;
    }
}

// Fills the 32-byte-aligned end of each valid line of a plain tile with its pad value.
template <class TileT>
inline void pad_line_ends(TileT& tile) {
    using T = typename TileT::DType;
    constexpr long block = 32 / sizeof(T);
    const T value = pad_element<T, TileT::PadVal>();
    const long lines = TileT::isRowMajor ? tile.GetValidRow() : tile.GetValidCol();
    const long length = TileT::isRowMajor ? tile.GetValidCol() : tile.GetValidRow();
    const long pitch = TileT::isRowMajor ? TileT::RowStride : TileT::ColStride;
    const long end = (length + block - 1) / block * block;
    for (long i = 0; i < lines; ++i)
        for (long j = length; j < end; ++j) tile.data()[i * pitch + j] = value;
}

template <class Global, class TileT, class Convert>
inline void store_tile(const Global& view, const TileT& tile, const Convert& convert) {
    const LineLayout layout = tile_layout(tile);
    for_each_part(view, tile, [&](const LineLayout& part, auto* to, long row, long col, long rows, long cols) {
        copy_block<ViewSide<Global, TileT>, TileSide<TileT>>(to, part, 0, 0, tile.data(), layout, row, col, rows, cols,
                                                             convert);
    });
}

// Atomic stores go element by element, whatever the layouts.
template <class Global, class TileT, class Inner>
inline void add_tile(const Global& view, const TileT& tile, const Inner& inner) {
    for_each_part(view, tile, [&](const LineLayout& part, auto* to, long row, long col, long rows, long cols) {
        using D = std::remove_reference_t<decltype(*to)>;
        for (long i = 0; i < rows; ++i)
            for (long j = 0; j < cols; ++j)
                atomic_add(to + (part.by_column ? part.offset(j, i) : part.offset(i, j)),
                           inner.template one<D>(tile.data()[TileT::offset(row + i, col + j)]));
    });
}

template <AtomicType Atomic, bool Relu, bool Scaled, class Global, class TileT>
inline void store_with(const Global& view, const TileT& tile, float scale) {
    static_assert(TileT::Loc != TileType::Left && TileT::Loc != TileType::Right,
                  "TSTORE stores Vec, Mat and Acc tiles; Left and Right cannot be stored");
    const FixpipeRun<Relu, Scaled> convert{scale};
    if constexpr (Atomic == AtomicType::AtomicAdd)
        add_tile(view, tile, convert);
    else
        store_tile(view, tile, convert);
}

inline float scale_from_bits(uint64_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits)); }

}  // namespace isa

template <class TileT, class Global, class... Rest>
PTO_INST RecordEvent TLOAD(TileT& dst, Global& src, Rest&&...) {
    static_assert(sizeof(typename TileT::DType) == sizeof(typename Global::DType),
                  "TLOAD does not convert: tile and view need elements of one size");
    using T = typename TileT::DType;
    const isa::LineLayout layout = isa::tile_layout(dst);
    isa::for_each_part(src, dst,
                       [&](const isa::LineLayout& part, auto* from, long row, long col, long rows, long cols) {
                           isa::copy_block<isa::TileSide<TileT>, isa::ViewSide<Global, TileT>>(
                               dst.data(), layout, row, col, reinterpret_cast<const T*>(from), part, 0, 0, rows, cols);
                       });
    if constexpr (TileT::PadVal != PadValue::Null && !TileT::isBoxedLayout) isa::pad_line_ends(dst);
    return {};
}

template <class TileT, class Global, class... Rest>
PTO_INST RecordEvent TPREFETCH(TileT&, Global& src, Rest&&...) {
    __builtin_prefetch(src.data());
    return {};
}

template <class TileT, class Global, AtomicType Atomic = AtomicType::AtomicNone, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TSTORE(Global& dst, TileT& src) {
    isa::store_with<Atomic, Relu == ReluPreMode::NormalRelu, false>(dst, src, 1.0f);
    return {};
}
template <class TileT, class Global, AtomicType Atomic = AtomicType::AtomicNone, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TSTORE(Global& dst, TileT& src, uint64_t scale_bits) {
    isa::store_with<Atomic, Relu == ReluPreMode::NormalRelu, true>(dst, src, isa::scale_from_bits(scale_bits));
    return {};
}
template <STPhase Phase, class TileT, class Global>
PTO_INST RecordEvent TSTORE(Global& dst, TileT& src) {
    return TSTORE<TileT, Global>(dst, src);
}
template <STPhase Phase, class TileT, class Global>
PTO_INST RecordEvent TSTORE(Global& dst, TileT& src, uint64_t scale_bits) {
    return TSTORE<TileT, Global>(dst, src, scale_bits);
}
template <class TileT, class Global, ReluPreMode Relu>
PTO_INST RecordEvent TSTORE(Global& dst, TileT& src) {
    return TSTORE<TileT, Global, AtomicType::AtomicNone, Relu>(dst, src);
}

// One scale per column: `fp` holds 64-bit words whose low half is the float.
template <class TileT, class Global, class Fp, AtomicType Atomic = AtomicType::AtomicNone,
          ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TSTORE_FP(Global& dst, TileT& src, Fp& fp) {
    using D = typename Global::DType;
    isa::for_each_part(dst, src, [&](const isa::LineLayout& part, D* to, long row, long col, long rows, long cols) {
        for (long j = 0; j < cols; ++j) {
            const isa::FixpipeRun<Relu == ReluPreMode::NormalRelu, true> convert{
                isa::scale_from_bits(static_cast<uint64_t>(fp.data()[col + j]))};
            for (long i = 0; i < rows; ++i) {
                D* cell = to + (part.by_column ? part.offset(j, i) : part.offset(i, j));
                const D value = convert.template one<D>(src.data()[TileT::offset(row + i, col + j)]);
                if constexpr (Atomic == AtomicType::AtomicAdd)
                    isa::atomic_add(cell, value);
                else
                    *cell = value;
            }
        }
    });
    return {};
}

}  // namespace pto
