#include "driver.hpp"

#define BINARY(NAME, OP)                                                  \
    template <class T>                                                    \
    void NAME(const Call& c) {                                            \
        const int64_t rows = c.number[0], cols = c.number[1];             \
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);        \
        auto b = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);    \
        auto d = make<Plain<T>>(rows, cols, c.number[2] ? 0 : 2 * kSlot); \
        OP(d, a, b);                                                      \
        stored(d, c.pointer<T>(2));                                       \
    }
BINARY(tadd, TADD)
BINARY(tsub, TSUB)
BINARY(tmul, TMUL)
BINARY(tdiv, TDIV)
BINARY(tmax, TMAX)
BINARY(tmin, TMIN)
BINARY(trem, TREM)
BINARY(tfmod, TFMOD)
BINARY(tand, TAND)
BINARY(tor, TOR)
BINARY(txor, TXOR)
BINARY(tshl, TSHL)
BINARY(tshr, TSHR)
BINARY(tprelu, TPRELU)
ALL_ENTRIES(tadd)
ALL_ENTRIES(tsub)
ALL_ENTRIES(tmul)
ALL_ENTRIES(tdiv)
ALL_ENTRIES(tmax)
ALL_ENTRIES(tmin)
ALL_ENTRIES(trem)
ALL_ENTRIES(tfmod)
INT_ENTRIES(tand)
INT_ENTRIES(tor)
INT_ENTRIES(txor)
INT_ENTRIES(tshl)
INT_ENTRIES(tshr)
FLOAT_ENTRIES(tprelu)

#define SCALAR(NAME, OP)                                                            \
    template <class T>                                                              \
    void NAME(const Call& c) {                                                      \
        const int64_t rows = c.number[0], cols = c.number[1];                       \
        [[maybe_unused]] auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0); \
        auto d = make<Plain<T>>(rows, cols, c.number[2] ? 0 : 2 * kSlot);           \
        [[maybe_unused]] const T x = static_cast<T>(c.scalar[0]);                   \
        OP;                                                                         \
        stored(d, c.pointer<T>(1));                                                 \
    }
SCALAR(tadds, TADDS(d, a, x))
SCALAR(tsubs, TSUBS(d, a, x))
SCALAR(tmuls, TMULS(d, a, x))
SCALAR(tmaxs, TMAXS(d, a, x))
SCALAR(tmins, TMINS(d, a, x))
SCALAR(tdivs, TDIVS(d, a, x))
SCALAR(trdivs, TDIVS(d, x, a))
SCALAR(trems, TREMS(d, a, x))
SCALAR(tfmods, TFMODS(d, a, x))
SCALAR(tands, TANDS(d, a, x))
SCALAR(tshls, TSHLS(d, a, x))
SCALAR(tshrs, TSHRS(d, a, x))
SCALAR(tlrelu, TLRELU(d, a, static_cast<float>(c.scalar[0])))
SCALAR(texpands, TEXPANDS(d, x))
ALL_ENTRIES(tadds)
ALL_ENTRIES(tsubs)
ALL_ENTRIES(tmuls)
ALL_ENTRIES(tmaxs)
ALL_ENTRIES(tmins)
FLOAT_ENTRIES(tdivs)
ENTRY(tdivs, i32, int32_t)
FLOAT_ENTRIES(trdivs)
FLOAT_ENTRIES(trems)
ENTRY(trems, i32, int32_t)
FLOAT_ENTRIES(tfmods)
ENTRY(tfmods, i32, int32_t)
INT_ENTRIES(tands)
INT_ENTRIES(tshls)
INT_ENTRIES(tshrs)
FLOAT_ENTRIES(tlrelu)
ALL_ENTRIES(texpands)

// A float scalar on an integer tile counts as its truncated value.
template <class T>
void tadds_float(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), c.number[0], c.number[1], 0);
    TADDS(a, a, static_cast<float>(c.scalar[0]));
    stored(a, c.pointer<T>(1));
}
ENTRY(tadds_float, i32, int32_t)

template <class T>
void three(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);
    auto d = loaded<Plain<T>>(c.pointer<T>(2), rows, cols, 2 * kSlot);
    auto out = make<Plain<T>>(rows, cols, 3 * kSlot);
    const T x = static_cast<T>(c.scalar[0]);
    switch (c.number[2]) {
        case 0:
            TADDC(out, a, b, d);
            break;
        case 1:
            TSUBC(out, a, b, d);
            break;
        case 2:
            TADDSC(out, a, x, b);
            break;
        case 3:
            TSUBSC(out, a, x, b);
            break;
        default:
            TMOV(out, d);
            TAXPY(out, a, x);
    }
    stored(out, c.pointer<T>(3));
}
ENTRY(three, f32, float)
ENTRY(three, i32, int32_t)

#define UNARY(NAME, OP)                                                   \
    template <class T>                                                    \
    void NAME(const Call& c) {                                            \
        const int64_t rows = c.number[0], cols = c.number[1];             \
        auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);        \
        auto d = make<Plain<T>>(rows, cols, c.number[2] ? 0 : 2 * kSlot); \
        OP(d, a);                                                         \
        stored(d, c.pointer<T>(1));                                       \
    }
UNARY(tabs, TABS)
UNARY(tneg, TNEG)
UNARY(tnot, TNOT)
UNARY(trelu, TRELU)
UNARY(texp, TEXP)
UNARY(tlog, TLOG)
UNARY(tsqrt, TSQRT)
UNARY(trsqrt, TRSQRT)
UNARY(trecip, TRECIP)
ALL_ENTRIES(tabs)
ALL_ENTRIES(tneg)
INT_ENTRIES(tnot)
ALL_ENTRIES(trelu)
FLOAT_ENTRIES(texp)
FLOAT_ENTRIES(tlog)
FLOAT_ENTRIES(tsqrt)
FLOAT_ENTRIES(trsqrt)
FLOAT_ENTRIES(trecip)

template <class T>
void tpart(const Call& c) {
    auto a = loaded<Plain<T>>(c.pointer<T>(0), c.number[2], c.number[3], 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), c.number[4], c.number[5], kSlot);
    auto d = make<Plain<T>>(c.number[0], c.number[1], 2 * kSlot);
    switch (c.number[6]) {
        case 0:
            TPARTADD(d, a, b);
            break;
        case 1:
            TPARTMUL(d, a, b);
            break;
        case 2:
            TPARTMAX(d, a, b);
            break;
        default:
            TPARTMIN(d, a, b);
    }
    stored(d, c.pointer<T>(2));
}
ENTRY(tpart, f32, float)
ENTRY(tpart, f16, half)
ENTRY(tpart, i32, int32_t)

// Operands in different layouts: a column-major tile plus a row-major one.
template <class T>
void mixed_add(const Call& c) {
    using Columns = Tile<TileType::Vec, T, 32, 24, BLayout::ColMajor, -1, -1>;
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Columns>(c.pointer<T>(0), rows, cols, 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);
    auto d = make<Plain<T>>(rows, cols, 2 * kSlot);
    TADD(d, a, b);
    stored(d, c.pointer<T>(2));
}
ENTRY(mixed_add, f32, float)
ENTRY(mixed_add, i8, int8_t)
