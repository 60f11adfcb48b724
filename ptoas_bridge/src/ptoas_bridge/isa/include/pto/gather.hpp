// TGATHER and TSCATTER between tiles, MGATHER and MSCATTER between tiles and global memory.
#pragma once
#include "compare.hpp"
#include "fixpipe.hpp"
#include "global_tensor.hpp"

namespace pto {
namespace isa {

constexpr bool pattern_selects(MaskPattern pattern, long position) {
    switch (pattern) {
        case MaskPattern::P0101:
            return position % 2 == 0;
        case MaskPattern::P1010:
            return position % 2 == 1;
        case MaskPattern::P0001:
            return position % 4 == 0;
        case MaskPattern::P0010:
            return position % 4 == 1;
        case MaskPattern::P0100:
            return position % 4 == 2;
        case MaskPattern::P1000:
            return position % 4 == 3;
        default:
            return true;
    }
}

template <class T>
inline T zero_element() {
    T zero;
    __builtin_memset(&zero, 0, sizeof(T));
    return zero;
}

// dst[i, j] = element idx[i, j] of the source in row-major order of its physical extents; out of range gives 0.
template <class D, class S, class I>
void gather_flat(D& dst, S& src, I& index) {
    using T = typename D::DType;
    static_assert(sizeof(T) == sizeof(typename S::DType), "TGATHER keeps the element size");
    const T* from = reinterpret_cast<const T*>(src.data());
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long j = 0; j < dst.GetValidCol(); ++j) {
            const long flat = static_cast<long>(index.data()[I::offset(i, j)]);
            dst.data()[D::offset(i, j)] =
                flat >= 0 && flat < S::Numel ? from[S::offset(flat / S::Cols, flat % S::Cols)] : zero_element<T>();
        }
}

template <MaskPattern Pattern, class D, class S>
void gather_masked_columns(D& dst, S& src) {
    using T = typename D::DType;
    static_assert(sizeof(T) == sizeof(typename S::DType), "TGATHER keeps the element size");
    const T* from = reinterpret_cast<const T*>(src.data());
    const long rows = src.GetValidRow(), cols = src.GetValidCol(), room = dst.GetValidCol();
    long taken = 0;
    for (long j = 0; j < cols; ++j) taken += pattern_selects(Pattern, j);
    // Rows that fill the destination's rows stay rows; otherwise elements follow each other in storage order.
    const bool by_row = taken == room;
    long at = 0;
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < cols; ++j) {
            if (!pattern_selects(Pattern, j)) continue;
            const long row = by_row ? i : at / D::Cols, col = by_row ? at - i * room : at % D::Cols;
            if (row >= D::Rows) return;
            dst.data()[D::offset(row, col)] = from[S::offset(i, j)];
            ++at;
        }
}
template <MaskPattern Pattern, class D, class S>
void gather_masked_rows(D& dst, S& src) {
    using T = typename D::DType;
    const T* from = reinterpret_cast<const T*>(src.data());
    long row = 0;
    for (long i = 0; i < src.GetValidRow() && row < D::Rows; ++i) {
        if (!pattern_selects(Pattern, i)) continue;
        for (long j = 0; j < src.GetValidCol() && j < D::Cols; ++j)
            dst.data()[D::offset(row, j)] = from[S::offset(i, j)];
        ++row;
    }
}

// Per row, the positions (plus offset) whose element compares true with the row's or the common value, and their count.
template <CmpMode Mode, class D, class S, class K, class C>
void gather_compared(D& dst, S& src, const K& value, C& counts, uint32_t offset) {
    for (long i = 0; i < src.GetValidRow(); ++i) {
        using Lane = typename Packet<typename S::DType>::Lane;
        Lane threshold;
        if constexpr (kIsTile<K>)
            threshold = static_cast<Lane>(value.data()[i]);
        else
            threshold = static_cast<Lane>(value);
        long found = 0;
        for (long j = 0; j < src.GetValidCol(); ++j) {
            if (!compare<Mode>(static_cast<Lane>(src.data()[S::offset(i, j)]), threshold)) continue;
            if (found < dst.GetValidCol()) dst.data()[D::offset(i, found)] = static_cast<typename D::DType>(offset + j);
            ++found;
        }
        counts.data()[i] = static_cast<typename C::DType>(found);
    }
}

}  // namespace isa

template <class D, class S, class I, class... Rest, std::enable_if_t<isa::kIsTile<I>, int> = 0>
PTO_INST RecordEvent TGATHER(D& dst, S& src, I& index, Rest&&...) {
    isa::gather_flat(dst, src, index);
    return {};
}
template <class D, class S, MaskPattern Pattern, GatherAxis Axis = GatherAxis::GATHER_ROW>
PTO_INST RecordEvent TGATHER(D& dst, S& src) {
    if constexpr (Axis == GatherAxis::GATHER_ROW)
        isa::gather_masked_columns<Pattern>(dst, src);
    else
        isa::gather_masked_rows<Pattern>(dst, src);
    return {};
}
template <class D, class S, class K, class C, class Tmp, CmpMode Mode>
PTO_INST RecordEvent TGATHER(D& dst, S& src, const K& value, C& counts, Tmp&, uint32_t offset) {
    isa::gather_compared<Mode>(dst, src, value, counts, offset);
    return {};
}
template <CmpMode Mode, class D, class S, class K, class C, class Tmp>
PTO_INST RecordEvent TGATHER(D& dst, S& src, const K& value, C& counts, Tmp&, uint32_t offset) {
    isa::gather_compared<Mode>(dst, src, value, counts, offset);
    return {};
}

// Block (r, b) of dst = the 32 bytes of the source at byte offset offsets[r, b].
template <class D, class S, class I, class... Rest>
PTO_INST RecordEvent TGATHERB(D& dst, S& src, I& offsets, Rest&&...) {
    using T = typename D::DType;
    static_assert(isa::kPlainRows<D> && isa::kPlainRows<S>, "TGATHERB works on plain row-major tiles");
    constexpr long block = 32 / sizeof(T);
    constexpr long bytes = long{S::Numel} * long(sizeof(typename S::DType));
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long b = 0; b * block < dst.GetValidCol(); ++b) {
            const long at = static_cast<long>(offsets.data()[I::offset(i, b)]);
            if (at < 0 || at + 32 > bytes)
                isa::fail("TGATHERB: byte offset %ld is outside the source of %ld bytes", at, bytes);
            const long left = dst.GetValidCol() - b * block;
            __builtin_memcpy(dst.data() + i * D::RowStride + b * block, reinterpret_cast<const char*>(src.data()) + at,
                             (left < block ? left : block) * sizeof(T));
        }
    return {};
}

// Element idx[i, j] of dst (row-major order of its physical extents) = src[i, j]; others keep their value.
template <class D, class S, class I, class... Rest, std::enable_if_t<isa::kIsTile<I>, int> = 0>
PTO_INST RecordEvent TSCATTER(D& dst, S& src, I& index, Rest&&...) {
    for (long i = 0; i < src.GetValidRow(); ++i)
        for (long j = 0; j < src.GetValidCol(); ++j) {
            const long flat = static_cast<long>(index.data()[I::offset(i, j)]);
            if (flat < 0 || flat >= D::Numel)
                isa::fail("TSCATTER: index %ld is outside a tile of %d elements", flat, D::Numel);
            dst.data()[D::offset(flat / D::Cols, flat % D::Cols)] = src.data()[S::offset(i, j)];
        }
    return {};
}
// Marked columns (or rows) take the next source element; the others keep their value.
template <MaskPattern Pattern, auto Axis = ScatterAxis::SCATTER_ROW, class D, class S>
PTO_INST RecordEvent TSCATTER(D& dst, S& src) {
    using T = typename D::DType;
    static_assert(sizeof(T) == sizeof(typename S::DType), "TSCATTER keeps the element size");
    const T* from = reinterpret_cast<const T*>(src.data());
    constexpr bool by_row = Axis == ScatterAxis::SCATTER_ROW;
    const long outer = by_row ? src.GetValidRow() : src.GetValidCol();
    const long count = by_row ? src.GetValidCol() : src.GetValidRow();
    constexpr long room = by_row ? D::Cols : D::Rows;
    for (long i = 0; i < outer; ++i)
        for (long at = 0, next = 0; at < room && next < count; ++at)
            if (isa::pattern_selects(Pattern, at)) {
                dst.data()[by_row ? D::offset(i, at) : D::offset(at, i)] =
                    from[by_row ? S::offset(i, next) : S::offset(next, i)];
                ++next;
            }
    return {};
}

enum class HistByte : uint8_t { BYTE_0, BYTE_1, BYTE_2, BYTE_3 };

// Counts of the values of one byte of each element per row; elements count only when their higher bytes equal the bytes
// in `filter`: element (k, row) of the filter, most significant byte first.
template <HistByte Byte, class D, class S, class I>
PTO_INST RecordEvent THISTOGRAM(D& dst, S& src, I& filter) {
    using T = typename S::DType;
    constexpr int bytes = sizeof(T), byte = static_cast<int>(Byte);
    static_assert((bytes == 2 || bytes == 4) && byte < bytes && std::is_unsigned_v<T>,
                  "THISTOGRAM counts bytes of uint16_t or uint32_t elements");
    static_assert(D::Cols >= 256, "THISTOGRAM needs 256 columns of counts");
    for (long i = 0; i < src.GetValidRow(); ++i) {
        for (long b = 0; b < 256; ++b) dst.data()[D::offset(i, b)] = 0;
        for (long j = 0; j < src.GetValidCol(); ++j) {
            const uint32_t value = src.data()[S::offset(i, j)];
            bool counted = true;
            for (int k = bytes - 1, row = 0; k > byte; --k, ++row) {
                // Filters of 16-bit elements are a column of bytes, those of 32-bit elements one row per byte.
                const auto wanted = bytes == 2 ? filter.data()[I::offset(i, 0)]
                                               : filter.data()[I::offset(row, i < filter.GetValidCol() ? i : 0)];
                counted = counted && ((value >> (8 * k)) & 255) == static_cast<uint8_t>(wanted);
            }
            if (counted) ++dst.data()[D::offset(i, (value >> (8 * byte)) & 255)];
        }
    }
    return {};
}

namespace isa {

// Resolves an index against `size`; false when the element is to be left out (or zeroed).
inline bool resolve_gather(GatherOOB policy, long& index, long size) {
    if (index >= 0 && index < size) return true;
    switch (policy) {
        case GatherOOB::Clamp:
            index = index < 0 ? 0 : size - 1;
            return size > 0;
        case GatherOOB::Wrap:
            index = size > 0 ? ((index % size) + size) % size : 0;
            return size > 0;
        case GatherOOB::Zero:
            return false;
        default:
            fail("MGATHER: index %ld is outside [0, %ld) and no out-of-bounds policy is set", index, size);
    }
}
inline bool resolve_scatter(ScatterOOB policy, long& index, long size) {
    if (index >= 0 && index < size) return true;
    switch (policy) {
        case ScatterOOB::Clamp:
            index = index < 0 ? 0 : size - 1;
            return size > 0;
        case ScatterOOB::Wrap:
            index = size > 0 ? ((index % size) + size) % size : 0;
            return size > 0;
        case ScatterOOB::Skip:
            return false;
        default:
            fail("MSCATTER: index %ld is outside [0, %ld) and no out-of-bounds policy is set", index, size);
    }
}

template <class Global>
inline long view_rows(const Global& view) {
    return view.GetShape(0) * view.GetShape(1) * view.GetShape(2) * view.GetShape(3);
}
// Memory position of (row, col), where row counts over the leading four extents.
template <class Global>
inline long view_offset(const Global& view, long row, long col) {
    const long i3 = row % view.GetShape(3), r2 = row / view.GetShape(3);
    const long i2 = r2 % view.GetShape(2), r1 = r2 / view.GetShape(2);
    const long i1 = r1 % view.GetShape(1), i0 = r1 / view.GetShape(1);
    return i0 * view.GetStride(0) + i1 * view.GetStride(1) + i2 * view.GetStride(2) + i3 * view.GetStride(3) +
           col * view.GetStride(4);
}

// Index k of a tile, or of a view of indices, in row-major order.
template <class I>
inline long index_at(const I& index, long row, long col) {
    if constexpr (kIsTile<I>)
        return static_cast<long>(index.data()[I::offset(row, col)]);
    else
        return static_cast<long>(index.data()[view_offset(index, row, col)]);
}
// The k-th index of a row of indices, or of a column of them.
template <class I>
inline long index_in_line(const I& index, long k) {
    if constexpr (kIsTile<I>) {
        if (index.GetValidRow() > 1 && index.GetValidCol() == 1) return index_at(index, k, 0);
        const long cols = index.GetValidCol();
        return index_at(index, k / cols, k % cols);
    } else {
        const long cols = index.GetShape(4);
        return index_at(index, k / cols, k % cols);
    }
}

template <class T>
inline void atomic_combine(ScatterAtomicOp op, T* target, T value) {
    if (op == ScatterAtomicOp::None) {
        *target = value;
        return;
    }
    if (op == ScatterAtomicOp::Add) {
        atomic_add(target, value);
        return;
    }
    using Bits = BitsOf<sizeof(T)>;
    Bits* cell = reinterpret_cast<Bits*>(target);
    Bits seen = __atomic_load_n(cell, __ATOMIC_RELAXED);
    for (;;) {
        const T old = bit_cast<T>(seen);
        const bool better = op == ScatterAtomicOp::Max ? value > old : value < old;
        if (!better ||
            __atomic_compare_exchange_n(cell, &seen, bit_cast<Bits>(value), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

}  // namespace isa

// Row: dst[r, :] = table[idx[r], :].  Elem: dst[i, j] = element idx[i, j] of the table in row-major order.
template <Coalesce Mode = Coalesce::Row, GatherOOB Policy = GatherOOB::Undefined, class D, class Global, class I,
          class... Rest>
PTO_INST RecordEvent MGATHER(D& dst, Global& table, I& index, Rest&&...) {
    using T = typename D::DType;
    const long table_rows = isa::view_rows(table), table_cols = table.GetShape(4);
    for (long i = 0; i < dst.GetValidRow(); ++i) {
        long row = 0;
        bool inside = true;
        if constexpr (Mode == Coalesce::Row) {
            row = isa::index_in_line(index, i);
            inside = isa::resolve_gather(Policy, row, table_rows);
        }
        for (long j = 0; j < dst.GetValidCol(); ++j) {
            T value = isa::zero_element<T>();
            if constexpr (Mode == Coalesce::Row) {
                if (inside && j < table_cols) value = table.data()[isa::view_offset(table, row, j)];
            } else {
                long flat = isa::index_at(index, i, j);
                if (isa::resolve_gather(Policy, flat, table_rows * table_cols))
                    value = table.data()[isa::view_offset(table, flat / table_cols, flat % table_cols)];
            }
            dst.data()[D::offset(i, j)] = value;
        }
    }
    return {};
}

template <Coalesce Mode = Coalesce::Row, ScatterAtomicOp Atomic = ScatterAtomicOp::None,
          ScatterOOB Policy = ScatterOOB::Undefined, ScatterConflict Conflict = ScatterConflict::Last, class Global,
          class S, class I, class... Rest>
PTO_INST RecordEvent MSCATTER(Global& table, S& src, I& index, Rest&&...) {
    const long table_rows = isa::view_rows(table), table_cols = table.GetShape(4);
    for (long i = 0; i < src.GetValidRow(); ++i) {
        long row = 0;
        if constexpr (Mode == Coalesce::Row) {
            row = isa::index_in_line(index, i);
            if (!isa::resolve_scatter(Policy, row, table_rows)) continue;
        }
        for (long j = 0; j < src.GetValidCol(); ++j) {
            long at = 0;
            if constexpr (Mode == Coalesce::Row) {
                if (j >= table_cols) break;
                at = isa::view_offset(table, row, j);
            } else {
                long flat = isa::index_at(index, i, j);
                if (!isa::resolve_scatter(Policy, flat, table_rows * table_cols)) continue;
                at = isa::view_offset(table, flat / table_cols, flat % table_cols);
            }
            isa::atomic_combine(Atomic, table.data() + at, src.data()[S::offset(i, j)]);
        }
    }
    return {};
}

}  // namespace pto
