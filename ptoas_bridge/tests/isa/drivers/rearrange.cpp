#include "driver.hpp"

template <class T>
void tgather(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), 24, 64, 0);
    auto idx = loaded<Plain<int32_t>>(c.pointer<int32_t>(1), rows, cols, kSlot);
    auto tmp = make<Plain<int32_t>>(rows, cols, 2 * kSlot);
    auto d = make<Plain<T>>(rows, cols, 3 * kSlot);
    TGATHER(d, a, idx, tmp);
    stored(d, c.pointer<T>(2));
    auto target = loaded<Plain<T>>(c.pointer<T>(3), 24, 64, 4 * kSlot);
    TSCATTER(target, d, idx);
    stored(target, c.pointer<T>(4));
}
ENTRY(tgather, f32, float)
ENTRY(tgather, f16, half)
ENTRY(tgather, i8, int8_t)

template <class T, MaskPattern Pattern>
void masked_by(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1], taken = c.number[2];
    using Short = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1>;
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto d = make<Short>(rows, taken, kSlot);
    TGATHER<Short, Plain<T>, Pattern>(d, a);
    stored(d, c.pointer<T>(1));
    auto target = loaded<Plain<T>>(c.pointer<T>(2), rows, cols, 2 * kSlot);
    TSCATTER<Pattern, pto::ScatterAxis::SCATTER_ROW>(target, d);
    stored(target, c.pointer<T>(3));
}
template <class T>
void masked(const Call& c) {
    switch (c.number[3]) {
        case 1:
            return masked_by<T, MaskPattern::P0101>(c);
        case 2:
            return masked_by<T, MaskPattern::P1010>(c);
        case 3:
            return masked_by<T, MaskPattern::P0001>(c);
        case 4:
            return masked_by<T, MaskPattern::P0010>(c);
        case 5:
            return masked_by<T, MaskPattern::P0100>(c);
        case 6:
            return masked_by<T, MaskPattern::P1000>(c);
        default:
            return masked_by<T, MaskPattern::P1111>(c);
    }
}
ENTRY(masked, f32, float)
ENTRY(masked, i16, int16_t)

template <class T>
void compared(const Call& c) {
    using Counts = Tile<TileType::Vec, int32_t, 1, 32, BLayout::RowMajor, -1, -1>;
    using Tmp = Tile<TileType::Vec, uint8_t, 1, 32>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto d = make<Plain<int32_t>>(rows, 8, kSlot);
    TEXPANDS(d, -1);
    auto counts = make<Counts>(1, rows, 2 * kSlot);
    auto tmp = make<Tmp>(1, 32, 3 * kSlot);
    TGATHER<Plain<int32_t>, Plain<T>, T, Counts, Tmp, CmpMode::GT>(d, a, static_cast<T>(c.scalar[0]), counts, tmp, 100);
    stored(d, c.pointer<int32_t>(1));
    stored(counts, c.pointer<int32_t>(2));
}
ENTRY(compared, f32, float)
ENTRY(compared, i32, int32_t)

template <class T>
void tgatherb(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), 24, 64, 0);
    auto off = loaded<Plain<uint32_t>>(c.pointer<uint32_t>(1), c.number[0], c.number[1], kSlot);
    auto d = make<Plain<T>>(c.number[0], c.number[1] * (32 / sizeof(T)), 2 * kSlot);
    TGATHERB(d, a, off);
    stored(d, c.pointer<T>(2));
}
ENTRY(tgatherb, f32, float)
ENTRY(tgatherb, f16, half)

template <class T>
void sequences(const Call& c) {
    using Row = Tile<TileType::Vec, T, 1, 64, BLayout::RowMajor, -1, -1>;
    auto d = make<Row>(1, c.number[0], 0);
    TCI<Row, int32_t, 0>(d, int32_t(5));
    stored(d, c.pointer<T>(0));
    TCI<Row, Row, int32_t, 1>(d, int32_t(5), d);
    stored(d, c.pointer<T>(1));
    auto t = make<Plain<T>>(c.number[1], c.number[2], kSlot);
    TTRI<Plain<T>, 0>(t, static_cast<int>(c.number[3]));
    stored(t, c.pointer<T>(2));
    TTRI<Plain<T>, 1>(t, static_cast<int>(c.number[3]));
    stored(t, c.pointer<T>(3));
}
ENTRY(sequences, i32, int32_t)
ENTRY(sequences, i16, int16_t)

template <class T>
void random(const Call& c) {
    auto d = make<Plain<T>>(24, 64, 0);
    TRandomKey key = {static_cast<uint32_t>(c.number[0]), 7};
    TRandomCounter counter = {0, 0, 0, 0};
    TRANDOM<7>(d, key, counter);
    stored(d, c.pointer<T>(0));
}
ENTRY(random, u32, uint32_t)

template <class T>
void sort(const Call& c) {
    constexpr int64_t kRecord = 8 / sizeof(T);
    using Records = Tile<TileType::Vec, T, 2, 128 * kRecord, BLayout::RowMajor, -1, -1>;
    using Values = Tile<TileType::Vec, T, 2, 128, BLayout::RowMajor, -1, -1>;
    using Index = Tile<TileType::Vec, uint32_t, 2, 128, BLayout::RowMajor, -1, -1>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Values>(c.pointer<T>(0), rows, cols, 0, 128);
    auto idx = loaded<Index>(c.pointer<uint32_t>(1), rows, cols, kSlot, 128);
    auto d = make<Records>(rows, cols * kRecord, 2 * kSlot);
    TSORT32(d, a, idx);
    stored(d, c.pointer<T>(2), 128 * kRecord);
    auto merged = make<Records>(rows, cols * kRecord, 3 * kSlot);
    TMRGSORT(merged, d, static_cast<uint32_t>(32 * kRecord));
    stored(merged, c.pointer<T>(3), 128 * kRecord);
}
ENTRY(sort, f32, float)
ENTRY(sort, f16, half)

template <class T, bool Exhausted>
void merge_of(const Call& c) {
    using List = Tile<TileType::Vec, T, 1, 128, BLayout::RowMajor, -1, -1>;
    using Out = Tile<TileType::Vec, T, 1, 512, BLayout::RowMajor, -1, -1>;
    auto a = loaded<List>(c.pointer<T>(0), 1, c.number[0] * 2, 0);
    auto b = loaded<List>(c.pointer<T>(1), 1, c.number[1] * 2, kSlot);
    auto third = loaded<List>(c.pointer<T>(2), 1, c.number[2] * 2, 2 * kSlot);
    auto d = make<Out>(1, (c.number[0] + c.number[1] + c.number[2]) * 2, 3 * kSlot);
    auto tmp = make<Out>(1, 512, 4 * kSlot);
    pto::MrgSortExecutedNumList ex{};
    TMRGSORT<Out, Out, List, List, List, Exhausted>(d, ex, tmp, a, b, third);
    stored(d, c.pointer<T>(3));
    __builtin_memcpy(c.array[4], &ex, sizeof(ex));
}
template <class T>
void merge(const Call& c) {
    if (c.number[3])
        merge_of<T, true>(c);
    else
        merge_of<T, false>(c);
}
ENTRY(merge, f32, float)

template <class T, Coalesce Mode, GatherOOB Policy>
void memory_gather(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto table = view(c.pointer<T>(0), 10, 30);
    auto idx = loaded<Plain<int32_t>>(c.pointer<int32_t>(1), Mode == Coalesce::Row ? 1 : rows,
                                      Mode == Coalesce::Row ? rows : cols, 0);
    auto d = make<Plain<T>>(rows, cols, kSlot);
    MGATHER<Mode, Policy>(d, table, idx);
    stored(d, c.pointer<T>(2));
}
template <class T>
void mgather(const Call& c) {
    if (c.number[2] == 0) switch (c.number[3]) {
            case 0:
                return memory_gather<T, Coalesce::Row, GatherOOB::Undefined>(c);
            case 1:
                return memory_gather<T, Coalesce::Row, GatherOOB::Clamp>(c);
            case 2:
                return memory_gather<T, Coalesce::Row, GatherOOB::Wrap>(c);
            default:
                return memory_gather<T, Coalesce::Row, GatherOOB::Zero>(c);
        }
    switch (c.number[3]) {
        case 0:
            return memory_gather<T, Coalesce::Elem, GatherOOB::Undefined>(c);
        case 1:
            return memory_gather<T, Coalesce::Elem, GatherOOB::Clamp>(c);
        case 2:
            return memory_gather<T, Coalesce::Elem, GatherOOB::Wrap>(c);
        default:
            return memory_gather<T, Coalesce::Elem, GatherOOB::Zero>(c);
    }
}
ENTRY(mgather, f32, float)

template <class T>
void mscatter(const Call& c) {
    auto table = view(c.pointer<T>(0), 10, 30);
    const bool row = c.number[2] == 0;
    auto idx = loaded<Plain<int32_t>>(c.pointer<int32_t>(1), row ? 1 : c.number[0], row ? c.number[0] : c.number[1], 0);
    auto a = loaded<Plain<T>>(c.pointer<T>(2), c.number[0], c.number[1], kSlot);
    if (row) {
        MSCATTER<pto::Coalesce::Row, pto::ScatterAtomicOp::None, pto::ScatterOOB::Skip>(table, a, idx);
    } else {
        switch (c.number[3]) {
            case 0:
                MSCATTER<pto::Coalesce::Elem>(table, a, idx);
                break;
            case 1:
                MSCATTER<pto::Coalesce::Elem, pto::ScatterAtomicOp::Add>(table, a, idx);
                break;
            case 2:
                MSCATTER<pto::Coalesce::Elem, pto::ScatterAtomicOp::Max, pto::ScatterOOB::Wrap>(table, a, idx);
                break;
            default:
                MSCATTER<pto::Coalesce::Elem, pto::ScatterAtomicOp::Min, pto::ScatterOOB::Clamp>(table, a, idx);
        }
    }
}
ENTRY(mscatter, f32, float)
ENTRY(mscatter, i32, int32_t)

template <class T>
void quantise(const Call& c) {
    using Scale = Column<float>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<float>>(c.pointer<float>(0), rows, cols, 0);
    auto scale = loaded<Scale>(c.pointer<float>(1), rows, 1, kSlot);
    auto offset = loaded<Scale>(c.pointer<float>(2), rows, 1, 2 * kSlot);
    auto d = make<Plain<T>>(rows, cols, 3 * kSlot);
    if constexpr (std::is_signed_v<T>)
        TQUANT<QuantType::INT8_SYM>(d, a, scale);
    else
        TQUANT<QuantType::INT8_ASYM>(d, a, scale, &offset);
    stored(d, c.pointer<T>(3));
    auto back = make<Plain<float>>(rows, cols, 4 * kSlot);
    TDEQUANT(back, d, scale, offset);
    stored(back, c.pointer<float>(4));
}
ENTRY(quantise, i8, int8_t)
ENTRY(quantise, u8, uint8_t)

template <class T>
void quantise_groups(const Call& c) {
    using Groups = Tile<TileType::Vec, float8_e8m0_t, kRows, 32, BLayout::RowMajor, -1, -1>;
    using Values = Tile<TileType::Vec, float, kRows, 8, BLayout::RowMajor, -1, -1>;
    auto a = loaded<Plain<float>>(c.pointer<float>(0), 5, 64, 0);
    auto d = make<Plain<T>>(5, 64, kSlot);
    auto exponent = make<Groups>(5, 2, 2 * kSlot);
    auto top = make<Values>(5, 2, 3 * kSlot);
    auto scaling = make<Values>(5, 2, 4 * kSlot);
    TQUANT<QuantType::MXFP8>(d, a, &exponent, &top, &scaling);
    stored(d, c.pointer<T>(1));
    stored(exponent, c.pointer<float8_e8m0_t>(2));
    stored(top, c.pointer<float>(3));
    stored(scaling, c.pointer<float>(4));
}
ENTRY(quantise_groups, e4m3, float8_e4m3_t)

template <class T>
void histogram(const Call& c) {
    using Counts = Tile<TileType::Vec, uint32_t, 8, 256, BLayout::RowMajor, -1, -1>;
    using Filter = Tile<TileType::Vec, uint8_t, 32, 1, BLayout::ColMajor, -1, -1>;
    auto a = loaded<Plain<T>>(c.pointer<T>(0), 8, 50, 0);
    auto filter = loaded<Filter>(c.pointer<uint8_t>(1), 8, 1, kSlot);
    auto counts = make<Counts>(8, 256, 2 * kSlot);
    THISTOGRAM<HistByte::BYTE_1>(counts, a, filter);
    stored(counts, c.pointer<uint32_t>(2), 256);
    THISTOGRAM<HistByte::BYTE_0>(counts, a, filter);
    stored(counts, c.pointer<uint32_t>(3), 256);
}
ENTRY(histogram, u16, uint16_t)
