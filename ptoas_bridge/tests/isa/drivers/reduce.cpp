#include "driver.hpp"

// Row reductions into a column vector and into a row-major tile with one valid column.
#define ROW(NAME, OP)                                              \
    template <class T>                                             \
    void NAME(const Call& c) {                                     \
        const int64_t rows = c.number[0], cols = c.number[1];      \
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0); \
        auto tmp = make<Plain<T>>(rows, cols, kSlot);              \
        if (c.number[2]) {                                         \
            auto d = make<Plain<T>>(rows, 1, 2 * kSlot);           \
            OP(d, a, tmp);                                         \
            stored(d, c.pointer<T>(1));                            \
        } else {                                                   \
            auto d = make<Column<T>>(rows, 1, 2 * kSlot);          \
            OP(d, a, tmp);                                         \
            stored(d, c.pointer<T>(1));                            \
        }                                                          \
    }
#define COL(NAME, OP)                                                                                   \
    template <class T>                                                                                  \
    void NAME(const Call& c) {                                                                          \
        const int64_t rows = c.number[0], cols = c.number[1];                                           \
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);                                      \
        auto d = make<Tile<TileType::Vec, T, 1, kCols, BLayout::RowMajor, -1, -1>>(1, cols, 2 * kSlot); \
        OP(d, a);                                                                                       \
        stored(d, c.pointer<T>(1));                                                                     \
    }
ROW(trowsum, TROWSUM)
ROW(trowprod, TROWPROD)
ROW(trowmax, TROWMAX)
ROW(trowmin, TROWMIN)
COL(tcolsum, TCOLSUM)
COL(tcolprod, TCOLPROD)
COL(tcolmax, TCOLMAX)
COL(tcolmin, TCOLMIN)
#define REDUCTION_ENTRIES(NAME) \
    ENTRY(NAME, f32, float) ENTRY(NAME, f16, half) ENTRY(NAME, i16, int16_t) ENTRY(NAME, i32, int32_t)
REDUCTION_ENTRIES(trowsum)
REDUCTION_ENTRIES(trowprod)
REDUCTION_ENTRIES(trowmax)
REDUCTION_ENTRIES(trowmin)
REDUCTION_ENTRIES(tcolsum)
REDUCTION_ENTRIES(tcolprod)
REDUCTION_ENTRIES(tcolmax)
REDUCTION_ENTRIES(tcolmin)

template <class T>
void tcolsum_tree(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    auto tmp = make<Plain<T>>(c.number[0], c.number[1], kSlot);
    auto d = make<Tile<TileType::Vec, T, 1, kCols, BLayout::RowMajor, -1, -1>>(1, c.number[1], 2 * kSlot);
    const bool b = true;
    TCOLSUM(d, a, tmp, b);
    stored(d, c.pointer<T>(1));
}
ENTRY(tcolsum_tree, f32, float)

template <class T>
void targ(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto tmp = make<Plain<T>>(rows, cols, kSlot);
    auto column = make<Column<int32_t>>(rows, 1, 2 * kSlot);
    auto row = make<Tile<TileType::Vec, int32_t, 1, kCols, BLayout::RowMajor, -1, -1>>(1, cols, 3 * kSlot);
    TROWARGMAX(column, a, tmp);
    stored(column, c.pointer<int32_t>(1));
    TROWARGMIN(column, a, tmp);
    stored(column, c.pointer<int32_t>(2));
    TCOLARGMAX(row, a, tmp);
    stored(row, c.pointer<int32_t>(3));
    TCOLARGMIN(row, a, tmp);
    stored(row, c.pointer<int32_t>(4));
}
REDUCTION_ENTRIES(targ)

template <class T>
void rowexpand(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto v = loaded<Column<T>>(c.pointer<T>(1), rows, 1, kSlot);
    auto d = make<Plain<T>>(rows, cols, 2 * kSlot);
    switch (c.number[2]) {
        case 0:
            TROWEXPAND(d, v);
            break;
        case 1:
            TROWEXPANDADD(d, a, v);
            break;
        case 2:
            TROWEXPANDSUB(d, a, v);
            break;
        case 3:
            TROWEXPANDMUL(d, a, v);
            break;
        case 4:
            TROWEXPANDDIV(d, a, v);
            break;
        case 5:
            TROWEXPANDMAX(d, a, v);
            break;
        case 6:
            TROWEXPANDMIN(d, v, a);
            break;
        default:
            if constexpr (isa::kFloatRegister<T>) TROWEXPANDEXPDIF(d, a, v);
    }
    stored(d, c.pointer<T>(2));
}
FLOAT_ENTRIES(rowexpand)
ENTRY(rowexpand, i32, int32_t)

// The vector as one 32-byte block per row.
template <class T>
void rowexpand_block(const Call& c) {
    using Block = Tile<TileType::Vec, T, kRows, 32 / sizeof(T), BLayout::RowMajor, -1, -1>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto v = loaded<Block>(c.pointer<T>(1), rows, 32 / sizeof(T), kSlot);
    TROWEXPANDADD(a, a, v);
    stored(a, c.pointer<T>(2));
}
ENTRY(rowexpand_block, f32, float)
ENTRY(rowexpand_block, f16, half)

template <class T>
void colexpand(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto v = loaded<Tile<TileType::Vec, T, 1, kCols, BLayout::RowMajor, -1, -1>>(c.pointer<T>(1), 1, cols, kSlot);
    auto d = make<Plain<T>>(rows, cols, 2 * kSlot);
    switch (c.number[2]) {
        case 0:
            TCOLEXPAND(d, v);
            break;
        case 1:
            TCOLEXPANDADD(d, a, v);
            break;
        case 2:
            TCOLEXPANDSUB(d, a, v);
            break;
        case 3:
            TCOLEXPANDMUL(d, a, v);
            break;
        case 4:
            TCOLEXPANDDIV(d, a, v);
            break;
        case 5:
            TCOLEXPANDMAX(d, a, v);
            break;
        case 6:
            TCOLEXPANDMIN(d, a, v);
            break;
        default:
            if constexpr (isa::kFloatRegister<T>) TCOLEXPANDEXPDIF(d, a, v);
    }
    stored(d, c.pointer<T>(2));
}
FLOAT_ENTRIES(colexpand)
ENTRY(colexpand, i32, int32_t)
