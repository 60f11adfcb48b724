#include "driver.hpp"

// C = A B with the left operand in ZZ (A2/A3) or NZ (A5) layout; memory to Mat to Left/Right to Acc and back.
template <class T, class C, int M, int K, int N, BLayout LeftOuter>
void product_of(const Call& c) {
    using MatA = Tile<TileType::Mat, T, M, K, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using MatB = Tile<TileType::Mat, T, K, N, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using L = Tile<TileType::Left, T, M, K, LeftOuter, -1, -1, SLayout::RowMajor, 512>;
    const int64_t m = c.number[0], k = c.number[1], n = c.number[2], form = c.number[3];
    auto ma = loaded<MatA>(c.pointer<T>(0), m, k, 0, K);
    auto mb = loaded<MatB>(c.pointer<T>(1), k, n, 0x40000, N);
    auto l = make<L>(m, k, 0);
    auto r = make<TileRight<T, K, N, -1, -1>>(k, n, 0);
    using Acc = TileAcc<C, M, N, -1, -1>;
    auto acc = make<Acc>(m, n, 0);
    TMOV(l, ma);
    TMOV(r, mb);
    if (form == 0) {
        TMATMUL(acc, l, r);
    } else if (form == 1) {
        TMATMUL(acc, l, r);
        TMATMUL_ACC(acc, acc, l, r);
    } else if (form == 2) {
        auto bias = loaded<Tile<TileType::Bias, C, 1, N, BLayout::RowMajor, -1, -1>>(c.pointer<C>(3), 1, n, 0, N);
        TMATMUL_BIAS(acc, l, r, bias);
    } else {
        auto other = make<Acc>(m, n, 0x20000);
        TMATMUL<pto::AccPhase::Partial>(other, l, r);
        TMATMUL_ACC<pto::AccPhase::Final>(acc, other, l, r);
    }
    stored(acc, c.pointer<C>(2), N);
}
template <class T, class C>
void product(const Call& c) {
    switch (c.number[4]) {
        case 0:
            return product_of<T, C, 64, 96, 96, BLayout::RowMajor>(c);
        case 1:
            return product_of<T, C, 64, 96, 96, BLayout::ColMajor>(c);
        case 2:
            return product_of<T, C, 16, 512, 32, BLayout::RowMajor>(c);
        default:
            return product_of<T, C, 16, 64, 32, BLayout::ColMajor>(c);
    }
}
#define PRODUCT(NAME, T, C) ENTRY(product, NAME, T, C)
PRODUCT(f32, float, float)
PRODUCT(f16, half, float)
PRODUCT(bf16, bfloat16_t, float)
PRODUCT(i8, int8_t, int32_t)
PRODUCT(e4m3, float8_e4m3_t, float)

// One row: a Left tile of a single physical row.
template <class T>
void gemv(const Call& c) {
    using MatA = Tile<TileType::Mat, T, 16, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using MatB = Tile<TileType::Mat, T, 64, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    auto ma = loaded<MatA>(c.pointer<T>(0), 1, 64, 0, 64);
    auto mb = loaded<MatB>(c.pointer<T>(1), 64, 32, 0x40000, 32);
    auto l = make<Tile<TileType::Left, T, 1, 64, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512>>(1, 64, 0);
    auto r = make<TileRight<T, 64, 32, -1, -1>>(64, 32, 0);
    auto acc = make<TileAcc<float, 16, 32, -1, -1>>(1, 32, 0);
    TMOV(l, ma);
    TMOV(r, mb);
    TGEMV(acc, l, r);
    TGEMV_ACC(acc, acc, l, r);
    stored(acc, c.pointer<float>(2), 32);
}
ENTRY(gemv, f32, float)
ENTRY(gemv, f16, half)

// Transposed operands: a column-major view of the left matrix, loaded into ZN and moved.
template <class T>
void transposed_left(const Call& c) {
    using MatA = Tile<TileType::Mat, T, 32, 64, BLayout::RowMajor, -1, -1, SLayout::ColMajor, 512>;
    using MatB = Tile<TileType::Mat, T, 64, 32, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    GlobalTensor<T, Shape<1, 1, 1, 32, 64>, Stride<2048, 2048, 2048, 1, 32>, Layout::DN> view(c.pointer<T>(0));
    auto ma = make<MatA>(32, 64, 0);
    TLOAD(ma, view);
    auto mb = loaded<MatB>(c.pointer<T>(1), 64, 32, 0x40000, 32);
    auto l = make<TileLeft<T, 32, 64, -1, -1>>(32, 64, 0);
    auto r = make<TileRight<T, 64, 32, -1, -1>>(64, 32, 0);
    auto acc = make<TileAcc<float, 32, 32, -1, -1>>(32, 32, 0);
    TMOV(l, ma);
    TMOV(r, mb);
    TMATMUL(acc, l, r);
    stored(acc, c.pointer<float>(2), 32);
}
ENTRY(transposed_left, f32, float)
ENTRY(transposed_left, f16, half)

// Block-scaled product: 8-bit floats with one e8m0 scale per 32 elements of k.
template <class T>
void scaled(const Call& c) {
    using MatA = Tile<TileType::Mat, T, 32, 128, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using MatB = Tile<TileType::Mat, T, 128, 64, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    using Codes = float8_e8m0_t;
    using MatAS = Tile<TileType::Mat, Codes, 32, 4, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 32>;
    using MatBS = Tile<TileType::Mat, Codes, 4, 64, BLayout::ColMajor, -1, -1, SLayout::ColMajor, 32>;
    auto ma = loaded<MatA>(c.pointer<T>(0), 32, 128, 0, 128);
    auto mb = loaded<MatB>(c.pointer<T>(1), 128, 64, 0x10000, 64);
    auto mas = loaded<MatAS>(c.pointer<Codes>(2), 32, 4, 0x20000, 4);
    auto mbs = loaded<MatBS>(c.pointer<Codes>(3), 4, 64, 0x30000, 64);
    auto l = make<TileLeft<T, 32, 128, -1, -1>>(32, 128, 4096);
    auto r = make<TileRight<T, 128, 64, -1, -1>>(128, 64, 0);
    TileLeftScale<Codes, 32, 4, -1, -1> ls(32, 4);
    TileRightScale<Codes, 4, 64, -1, -1> rs(4, 64);
    TGET_SCALE_ADDR(ls, l);
    TGET_SCALE_ADDR(rs, r);
    TMOV(l, ma);
    TMOV(r, mb);
    TMOV(ls, mas);
    TMOV(rs, mbs);
    auto acc = make<TileAcc<float, 32, 64, -1, -1>>(32, 64, 0);
    TMATMUL_MX(acc, l, ls, r, rs);
    if (c.number[0] == 1) TMATMUL_MX(acc, acc, l, ls, r, rs);
    if (c.number[0] == 2) {
        auto bias =
            loaded<Tile<TileType::Bias, float, 1, 64, BLayout::RowMajor, -1, -1>>(c.pointer<float>(5), 1, 64, 0, 64);
        TMATMUL_MX(acc, l, ls, r, rs, bias);
    }
    stored(acc, c.pointer<float>(4), 64);
}
ENTRY(scaled, e4m3, float8_e4m3_t)
ENTRY(scaled, e5m2, float8_e5m2_t)
