// TSORT32 and TMRGSORT: descending sorts of (value, index) records of eight bytes.
#pragma once
#include "tile.hpp"

namespace pto {

// Records taken from each list by a merge.
struct MrgSortExecutedNumList {
    uint16_t mrgSortList0;
    uint16_t mrgSortList1;
    uint16_t mrgSortList2;
    uint16_t mrgSortList3;
};

namespace isa {

// A record in a tile of T: float is (value, index bits), half is (value, 0, low index half, high index half).
template <class T>
inline constexpr long kRecord = 8 / sizeof(T);

template <class T>
inline float record_value(const T* record) {
    return static_cast<float>(record[0]);
}
template <class T>
inline void write_record(T* record, T value, uint32_t index) {
    record[0] = value;
    if constexpr (sizeof(T) == 2) record[1] = T(0);
    __builtin_memcpy(record + kRecord<T> / 2, &index, 4);
}

struct SortList {
    const void* data;
    long records;
    long taken;
};

// Merges up to four descending lists; on ties the earlier list wins. Stops early when `exhausted` and a list is used
// up.
template <class T>
inline void merge_lists(T* to, SortList* lists, int count, bool exhausted) {
    for (;;) {
        int best = -1;
        float best_value = 0;
        for (int l = 0; l < count; ++l) {
            SortList& list = lists[l];
            if (list.taken == list.records) {
                if (exhausted && list.records > 0) return;
                continue;
            }
            const float value = record_value(static_cast<const T*>(list.data) + list.taken * kRecord<T>);
            if (best < 0 || value > best_value) {
                best = l;
                best_value = value;
            }
        }
        if (best < 0) return;
        __builtin_memcpy(to, static_cast<const T*>(lists[best].data) + lists[best].taken * kRecord<T>, 8);
        ++lists[best].taken;
        to += kRecord<T>;
    }
}

template <class D, class Lists>
inline void merge_tiles(D& dst, MrgSortExecutedNumList& executed, Lists& lists, int count, bool exhausted) {
    using T = typename D::DType;
    long total = 0;
    for (int l = 0; l < count; ++l) total += lists[l].records;
    if (total * kRecord<T> > D::Cols)
        fail("TMRGSORT: %ld records do not fit a destination of %d columns", total, D::Cols);
    T* merged = reinterpret_cast<T*>(workspace(total * 8));
    merge_lists(merged, lists, count, exhausted);
    long taken = 0;
    for (int l = 0; l < count; ++l) taken += lists[l].taken;
    __builtin_memcpy(dst.data(), merged, taken * 8);
    uint16_t* counts = &executed.mrgSortList0;
    for (int l = 0; l < 4; ++l) counts[l] = l < count ? static_cast<uint16_t>(lists[l].taken) : uint16_t{0};
}

template <class S>
inline SortList list_of(S& src) {
    return {src.data(), src.GetValidCol() / kRecord<typename S::DType>, 0};
}

}  // namespace isa

// Every block of 32 columns sorted by value, descending; equal values by smaller index.
template <class D, class S, class I, class... Rest>
PTO_INST RecordEvent TSORT32(D& dst, S& src, I& index, Rest&&...) {
    using T = typename S::DType;
    static_assert(std::is_same_v<T, typename D::DType> && (sizeof(T) == 2 || sizeof(T) == 4),
                  "TSORT32 sorts half or float tiles into tiles of the same type");
    static_assert(D::Cols >= S::Cols * isa::kRecord<T>, "TSORT32 needs 8 bytes of destination per element");
    const long cols = src.GetValidCol();
    for (long i = 0; i < src.GetValidRow(); ++i) {
        const T* values = src.data() + i * S::RowStride;
        const auto* indices = index.data() + (index.GetValidRow() == 1 ? 0 : i * I::RowStride);
        for (long first = 0; first < cols; first += 32) {
            const long count = cols - first < 32 ? cols - first : 32;
            // Insertion keeps equal elements in index order; 32 elements fit a few cache lines.
            T sorted[32];
            uint32_t order[32];
            for (long j = 0; j < count; ++j) {
                const T value = values[first + j];
                const uint32_t position = static_cast<uint32_t>(indices[first + j]);
                long at = j;
                for (; at > 0; --at) {
                    const float above = static_cast<float>(sorted[at - 1]), here = static_cast<float>(value);
                    if (!(here > above || (here == above && position < order[at - 1]))) break;
                    sorted[at] = sorted[at - 1];
                    order[at] = order[at - 1];
                }
                sorted[at] = value;
                order[at] = position;
            }
            T* to = dst.data() + i * D::RowStride + first * isa::kRecord<T>;
            for (long j = 0; j < count; ++j) isa::write_record(to + j * isa::kRecord<T>, sorted[j], order[j]);
        }
    }
    return {};
}

// Runs of block_len elements, each descending: every four neighbouring runs become one.
template <class D, class S, class... Rest, std::enable_if_t<isa::kIsTile<S>, int> = 0>
PTO_INST RecordEvent TMRGSORT(D& dst, S& src, uint32_t block_len, Rest&&...) {
    using T = typename S::DType;
    if (block_len == 0 || block_len % isa::kRecord<T>)
        isa::fail("TMRGSORT: block length %u is not a whole number of records", block_len);
    const long cols = src.GetValidCol();
    T* merged = reinterpret_cast<T*>(isa::workspace(cols * sizeof(T)));
    for (long i = 0; i < src.GetValidRow(); ++i) {
        const T* from = src.data() + i * S::RowStride;
        for (long first = 0; first < cols; first += 4l * block_len) {
            isa::SortList lists[4];
            int count = 0;
            for (; count < 4 && first + count * long(block_len) < cols; ++count) {
                const long start = first + count * long(block_len);
                const long length = cols - start < long(block_len) ? cols - start : long(block_len);
                lists[count] = {from + start, length / isa::kRecord<T>, 0};
            }
            isa::merge_lists(merged + first, lists, count, false);
        }
        __builtin_memcpy(dst.data() + i * D::RowStride, merged, cols * sizeof(T));
    }
    return {};
}
template <class D, class Tmp, class A, class B, bool Exhausted>
PTO_INST RecordEvent TMRGSORT(D& dst, MrgSortExecutedNumList& executed, Tmp&, A& src0, B& src1) {
    isa::SortList lists[2] = {isa::list_of(src0), isa::list_of(src1)};
    isa::merge_tiles(dst, executed, lists, 2, Exhausted);
    return {};
}
template <class D, class Tmp, class A, class B, class C, bool Exhausted>
PTO_INST RecordEvent TMRGSORT(D& dst, MrgSortExecutedNumList& executed, Tmp&, A& src0, B& src1, C& src2) {
    isa::SortList lists[3] = {isa::list_of(src0), isa::list_of(src1), isa::list_of(src2)};
    isa::merge_tiles(dst, executed, lists, 3, Exhausted);
    return {};
}
template <class D, class Tmp, class A, class B, class C, class E, bool Exhausted>
PTO_INST RecordEvent TMRGSORT(D& dst, MrgSortExecutedNumList& executed, Tmp&, A& src0, B& src1, C& src2, E& src3) {
    isa::SortList lists[4] = {isa::list_of(src0), isa::list_of(src1), isa::list_of(src2), isa::list_of(src3)};
    isa::merge_tiles(dst, executed, lists, 4, Exhausted);
    return {};
}

}  // namespace pto
