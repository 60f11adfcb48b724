#include "driver.hpp"

// Physical layouts of a 32 x 64 tile of T.
template <class T, int Kind, TileType Loc = TileType::Mat>
using Laid = Tile<Loc, T, 32, 64, (Kind == 0 || Kind == 3 || Kind == 4) ? BLayout::RowMajor : BLayout::ColMajor, -1, -1,
                  Kind <= 1                  ? SLayout::NoneBox
                  : (Kind == 2 || Kind == 4) ? SLayout::RowMajor
                                             : SLayout::ColMajor>;
// 0 rows, 1 columns, 2 NZ, 3 ZN, 4 ZZ, 5 NN

template <class T, int From, int To>
void through(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Laid<T, From>>(c.pointer<T>(0), rows, cols, 0);
    auto b = make<Laid<T, To>>(rows, cols, 0x10000);
    TMOV(b, a);
    stored(b, c.pointer<T>(1));
    // The raw storage of the destination, for the layout formulas.
    __builtin_memcpy(c.array[2], b.data(), 32 * 64 * sizeof(T));
}
template <class T, int From>
void from_layout(const Call& c) {
    switch (c.number[2]) {
        case 0:
            return through<T, From, 0>(c);
        case 1:
            return through<T, From, 1>(c);
        case 2:
            return through<T, From, 2>(c);
        case 3:
            return through<T, From, 3>(c);
        case 4:
            return through<T, From, 4>(c);
        default:
            return through<T, From, 5>(c);
    }
}
template <class T>
void move(const Call& c) {
    switch (c.number[3]) {
        case 0:
            return from_layout<T, 0>(c);
        case 1:
            return from_layout<T, 1>(c);
        case 2:
            return from_layout<T, 2>(c);
        case 3:
            return from_layout<T, 3>(c);
        case 4:
            return from_layout<T, 4>(c);
        default:
            return from_layout<T, 5>(c);
    }
}
ENTRY(move, f32, float)
ENTRY(move, f16, half)
ENTRY(move, i8, int8_t)

template <class T, int Kind>
void window_of(const Call& c) {
    using Small = Tile<TileType::Mat, T, 32, 32, Laid<T, Kind>::BFractal, -1, -1, Laid<T, Kind>::SFractal>;
    const int64_t rows = c.number[0], cols = c.number[1], r = c.number[2], col = c.number[3];
    auto big = loaded<Laid<T, Kind>>(c.pointer<T>(0), 32, 64, 0);
    auto small = make<Small>(rows, cols, 0x10000);
    TEXTRACT(small, big, r, col);
    stored(small, c.pointer<T>(1));
    // Insert the window into a second tile at the same place.
    auto target = loaded<Laid<T, Kind>>(c.pointer<T>(2), 32, 64, 0x20000);
    TINSERT(target, small, r, col);
    stored(target, c.pointer<T>(3));
}
template <class T>
void window(const Call& c) {
    switch (c.number[4]) {
        case 0:
            return window_of<T, 0>(c);
        case 1:
            return window_of<T, 1>(c);
        case 2:
            return window_of<T, 2>(c);
        case 3:
            return window_of<T, 3>(c);
        default:
            return window_of<T, 4>(c);
    }
}
ENTRY(window, f32, float)
ENTRY(window, f16, half)
ENTRY(window, i8, int8_t)

template <class T>
void ttrans(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto d = make<Tile<TileType::Vec, T, 64, 32, BLayout::RowMajor, -1, -1>>(cols, rows, kSlot);
    auto tmp = make<Plain<T>>(rows, cols, 3 * kSlot);
    TTRANS(d, a, tmp);
    stored(d, c.pointer<T>(1));
}
ALL_ENTRIES(ttrans)

template <class T>
void tconcat(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), c.number[0], c.number[2], kSlot);
    auto d = make<Tile<TileType::Vec, T, kRows, 128, BLayout::RowMajor, -1, -1>>(c.number[0], c.number[1] + c.number[2],
                                                                                 2 * kSlot);
    TCONCAT(d, a, b);
    stored(d, c.pointer<T>(2), 160);
}
ENTRY(tconcat, f32, float)
ENTRY(tconcat, i8, int8_t)

// Columns: a [N, 1] view with any row pitch into a column vector and back; and a DN view.
template <class T>
void column(const Call& c) {
    auto a = loaded<Column<T>>(c.pointer<T>(0), c.number[0], 1, 0);
    stored(a, c.pointer<T>(1));
    GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<-1, -1, -1, 1, -1>, Layout::DN> dn(
        c.pointer<T>(2), Shape<1, 1, 1, -1, -1>(c.number[0], c.number[1]), Stride<-1, -1, -1, 1, -1>(0, 0, 0, kPitch));
    auto b = make<Plain<T>>(c.number[0], c.number[1], kSlot);
    TLOAD(b, dn);
    stored(b, c.pointer<T>(3));
    auto zn = make<Laid<T, 3>>(c.number[0], c.number[1], 0);
    TLOAD(zn, dn);
    stored(zn, c.pointer<T>(4));
    GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<-1, -1, -1, 1, -1>, Layout::DN> back(
        c.pointer<T>(5), Shape<1, 1, 1, -1, -1>(c.number[0], c.number[1]), Stride<-1, -1, -1, 1, -1>(0, 0, 0, kPitch));
    TSTORE(back, b);
}
ENTRY(column, f32, float)
ENTRY(column, f16, half)
ENTRY(column, u8, uint8_t)

// A five-dimensional view: rows run over the leading extents.
template <class T>
void leading(const Call& c) {
    using V = GlobalTensor<T, Shape<2, 1, 3, 4, 40>, Stride<960, 960, 320, 80, 1>>;
    V from(c.pointer<T>(0)), to(c.pointer<T>(1));
    auto a = make<Plain<T>>(24, 40, 0);
    TLOAD(a, from);
    TSTORE(to, a);
}
ENTRY(leading, f32, float)

// NZ in global memory: (C1, M1, 16, C0) with packed strides.
template <class T>
void packed(const Call& c) {
    constexpr int c0 = 32 / sizeof(T);
    using V = GlobalTensor<T, Shape<1, 64 / c0, 2, 16, c0>, Stride<2048, 32 * c0, 16 * c0, c0, 1>, Layout::NZ>;
    V from(c.pointer<T>(0));
    auto nz = make<Laid<T, 2>>(32, 64, 0);
    TLOAD(nz, from);
    stored(nz, c.pointer<T>(1));
    V to(c.pointer<T>(2));
    TSTORE(to, nz);
}
ENTRY(packed, f32, float)
ENTRY(packed, f16, half)

template <class T>
void atomic(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    auto to = view(c.pointer<T>(1), c.number[0], c.number[1]);
    TSTORE<decltype(a), decltype(to), AtomicType::AtomicAdd>(to, a);
}
FLOAT_ENTRIES(atomic)
INT_ENTRIES(atomic)

// Accumulator to memory: conversion, relu, scale.
template <class T>
void accumulator(const Call& c) {
    using Acc = Tile<TileType::Acc, float, 32, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;
    auto staged = loaded<Plain<float>>(c.pointer<float>(0), c.number[0], c.number[1], 0);
    auto acc = make<Acc>(c.number[0], c.number[1], 0);
    TINSERT(acc, staged, 0, 0);
    auto to = view(c.pointer<T>(1), c.number[0], c.number[1]);
    using V = decltype(to);
    float factor = static_cast<float>(c.scalar[0]);
    uint32_t bits;
    __builtin_memcpy(&bits, &factor, 4);
    switch (c.number[2]) {
        case 0:
            TSTORE(to, acc);
            break;
        case 1:
            TSTORE<Acc, V, AtomicType::AtomicNone, ReluPreMode::NormalRelu>(to, acc);
            break;
        case 2:
            TSTORE(to, acc, uint64_t{bits});
            break;
        default:
            TSTORE<STPhase::Final>(to, acc);
    }
    if constexpr (sizeof(T) >= 2) {
        auto vec = make<Plain<T>>(c.number[0], c.number[1], kSlot);
        TMOV(vec, acc);
        stored(vec, c.pointer<T>(2));
    }
}
FLOAT_ENTRIES(accumulator)
ENTRY(accumulator, i8, int8_t)

template <class T, PadValue Pad>
void pad_into(const Call& c) {
    using Padded = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, Pad>;
    using Small = Tile<TileType::Vec, T, 16, 32, BLayout::RowMajor, -1, -1>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto d = make<Padded>(kRows, kCols, 2 * kSlot);
    if (c.number[3] == 0) {
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
        TFILLPAD(d, a);
    } else if (c.number[3] == 1) {
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 2 * kSlot);
        TFILLPAD<pto::TFillPadMode::InPlace>(d, a);
    } else {
        auto a = loaded<Small>(c.pointer<T>(0), rows, cols, 0);
        TFILLPAD<pto::TFillPadMode::Expand>(d, a);
    }
    stored(d, c.pointer<T>(1));
}
template <class T>
void pad(const Call& c) {
    switch (c.number[2]) {
        case 1:
            return pad_into<T, PadValue::Zero>(c);
        case 2:
            return pad_into<T, PadValue::Max>(c);
        default:
            return pad_into<T, PadValue::Min>(c);
    }
}
ALL_ENTRIES(pad)

// Padding of a load: the rest of the 32-byte block that holds the last valid column.
template <class T>
void load_pad(const Call& c) {
    using Padded =
        Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1, SLayout::NoneBox, 512, PadValue::Min>;
    auto a = loaded<Padded>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    a.SetValidShape(c.number[0], (c.number[1] + 7) / 8 * 8);
    stored(a, c.pointer<T>(1));
}
ENTRY(load_pad, f32, float)

template <class T>
void mat_pad(const Call& c) {
    auto a = loaded<Laid<T, 2>>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    TFILLPAD(a, a);
    auto whole = make<Laid<T, 2>>(32, 64, 0);
    stored(whole, c.pointer<T>(1));
}
ENTRY(mat_pad, f16, half)

template <class T>
void reshape(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), 24, 64, 0, 64);
    Tile<TileType::Vec, T, 48, 32, BLayout::RowMajor, -1, -1> b(48, 32);
    TRESHAPE(b, a);
    stored(b, c.pointer<T>(1), 32);
    b.SetValue(3, T(42));
    *c.pointer<T>(2) = a.GetValue(3);
}
ENTRY(reshape, f32, float)

template <class T>
void out_of_memory(const Call& c) {
    switch (c.number[0]) {
        case 0:
            make<Plain<T>>(24, 64, 256 * 1024 - 100);
            break;
        case 1:
            make<Plain<T>>(2, 64, 256 * 1024 - 512);
            break;
        case 2: {
            Plain<T> tile(24, 64);
            TEXPANDS(tile, T(0));
            break;
        }
        case 3:
            Plain<T>(25, 64);
            break;
        case 4: {
            auto a = make<Plain<T>>(24, 64, 0);
            auto b = make<Plain<T>>(24, 64, kSlot);
            TEXTRACT(b, a, 1, 0);
            break;
        }
        default:
            make<Plain<T>>(1, 1, 0).GetValue(24 * 64);
    }
}
ENTRY(out_of_memory, f32, float)
