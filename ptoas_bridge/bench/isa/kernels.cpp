// Kernels of the instruction benchmark: each entry runs one body `repeat` times and returns the best time per run.
#include <time.h>

#include "pto/pto-inst.hpp"

using namespace pto;

namespace {

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Body>
double best_of(int64_t repeat, const Body& body) {
    double best = 1e30;
    for (int trial = 0; trial < 7; ++trial) {
        const double start = now();
        for (int64_t i = 0; i < repeat; ++i) {
            body();
            asm volatile("" ::: "memory");
        }
        const double elapsed = (now() - start) / static_cast<double>(repeat);
        if (elapsed < best) best = elapsed;
    }
    return best;
}

template <class T>
using Vec = Tile<TileType::Vec, T, 32, 128, BLayout::RowMajor, -1, -1>;
using Column = Tile<TileType::Vec, float, 32, 1, BLayout::ColMajor, -1, -1>;
template <class T>
using View = GlobalTensor<T, Shape<1, 1, 1, 32, 128>, Stride<4096, 4096, 4096, 128, 1>>;

template <class TileT>
TileT make(int64_t rows, int64_t cols, uint64_t address) {
    TileT tile(rows, cols);
    TASSIGN(tile, address);
    return tile;
}

template <class T>
struct Operands {
    Vec<T> a = make<Vec<T>>(32, 128, 0), b = make<Vec<T>>(32, 128, 0x4000), d = make<Vec<T>>(32, 128, 0x8000);
    Operands() {
        TEXPANDS(a, 1.25f);
        TEXPANDS(b, 0.5f);
    }
};

template <class T, class C, BLayout LeftOuter>
double product(int64_t repeat) {
    auto l = make<Tile<TileType::Left, T, 128, 128, LeftOuter, -1, -1, SLayout::RowMajor, 512>>(128, 128, 0);
    auto r = make<TileRight<T, 128, 128, -1, -1>>(128, 128, 0);
    auto c = make<TileAcc<C, 128, 128, -1, -1>>(128, 128, 0);
    TEXPANDS(l, 1);
    TEXPANDS(r, 1);
    return best_of(repeat, [&] { TMATMUL(c, l, r); });
}

}  // namespace

#define BENCH(NAME, ...)                                    \
    extern "C" double NAME(int64_t repeat, void** memory) { \
        (void)memory;                                       \
        __VA_ARGS__;                                        \
    }

// Sixteen independent multiply-add chains: what the machine can do at best.
extern "C" double peak_fma(int64_t repeat, void** memory) {
    isa::FloatVector sum[16];
    for (int i = 0; i < 16; ++i) sum[i] = isa::splat(float(i));
    const isa::FloatVector x = isa::splat(0.9999f), y = isa::splat(1e-4f);
    const double t = best_of(repeat, [&] {
        for (int k = 0; k < 1000; ++k)
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i) sum[i] = isa::multiply_add(sum[i], x, y);
    });
    isa::FloatVector total = sum[0];
    for (int i = 1; i < 16; ++i) total += sum[i];
    static_cast<float*>(memory[0])[0] = total[0];
    return t / (1000.0 * 16 * isa::kFloatLanes * 2);
}
BENCH(matmul_f32, return product<float, float, BLayout::RowMajor>(repeat))
BENCH(matmul_f16, return product<half, float, BLayout::RowMajor>(repeat))
BENCH(matmul_bf16, return product<bfloat16_t, float, BLayout::ColMajor>(repeat))
BENCH(matmul_i8, return product<int8_t, int32_t, BLayout::RowMajor>(repeat))
BENCH(add_f32, Operands<float> o; return best_of(repeat, [&] { TADD(o.d, o.a, o.b); }))
BENCH(add_f16, Operands<half> o; return best_of(repeat, [&] { TADD(o.d, o.a, o.b); }))
BENCH(add_bf16, Operands<bfloat16_t> o; return best_of(repeat, [&] { TADD(o.d, o.a, o.b); }))
BENCH(add_i32, Operands<int32_t> o; return best_of(repeat, [&] { TADD(o.d, o.a, o.b); }))
BENCH(muls_f32, Operands<float> o; return best_of(repeat, [&] { TMULS(o.d, o.a, 1.5f); }))
BENCH(div_f32, Operands<float> o; return best_of(repeat, [&] { TDIV(o.d, o.a, o.b); }))
BENCH(max_f32, Operands<float> o; return best_of(repeat, [&] { TMAX(o.d, o.a, o.b); }))
BENCH(exp_f32, Operands<float> o; return best_of(repeat, [&] { TEXP(o.d, o.a); }))
BENCH(exp_f16, Operands<half> o; return best_of(repeat, [&] { TEXP(o.d, o.a); }))
BENCH(log_f32, Operands<float> o; return best_of(repeat, [&] { TLOG(o.d, o.a); }))
BENCH(rsqrt_f32, Operands<float> o; return best_of(repeat, [&] { TRSQRT(o.d, o.a); }))
BENCH(fmod_f32, Operands<float> o; return best_of(repeat, [&] { TFMOD(o.d, o.a, o.b); }))
BENCH(ragged_add_f32, Operands<float> o; o.d.SetValidShape(32, 100);
      return best_of(repeat, [&] { TADD(o.d, o.a, o.b); }))
BENCH(rowsum_f32, Operands<float> o; auto c = make<Column>(32, 1, 0xc000);
      return best_of(repeat, [&] { TROWSUM(c, o.a, o.b); }))
BENCH(rowmax_f32, Operands<float> o; auto c = make<Column>(32, 1, 0xc000);
      return best_of(repeat, [&] { TROWMAX(c, o.a, o.b); }))
BENCH(colsum_f32, Operands<float> o;
      auto r = make<Tile<TileType::Vec, float, 1, 128, BLayout::RowMajor, -1, -1>>(1, 128, 0xc000);
      return best_of(repeat, [&] { TCOLSUM(r, o.a); }))
BENCH(argmax_f32, Operands<float> o;
      auto c = make<Tile<TileType::Vec, int32_t, 32, 1, BLayout::ColMajor, -1, -1>>(32, 1, 0xc000);
      return best_of(repeat, [&] { TROWARGMAX(c, o.a, o.b); }))
BENCH(cvt_f32_f16, Operands<float> o; auto h = make<Vec<half>>(32, 128, 0xc000);
      return best_of(repeat, [&] { TCVT(h, o.a, RoundMode::CAST_RINT); }))
BENCH(cvt_f32_i32, Operands<float> o; auto h = make<Vec<int32_t>>(32, 128, 0xc000);
      return best_of(repeat, [&] { TCVT(h, o.a, RoundMode::CAST_RINT); }))
BENCH(cmp_sel_f32, Operands<float> o;
      auto m = make<Tile<TileType::Vec, uint8_t, 32, 32, BLayout::RowMajor, -1, -1>>(32, 16, 0xc000);
      return best_of(repeat, [&] {
          TCMP(m, o.a, o.b, CmpMode::GT);
          TSEL(o.d, m, o.a, o.b, o.b);
      }))
BENCH(trans_f32, Operands<float> o;
      auto t = make<Tile<TileType::Vec, float, 128, 32, BLayout::RowMajor, -1, -1>>(128, 32, 0xc000);
      return best_of(repeat, [&] { TTRANS(t, o.a, o.b); }))
BENCH(load_add_store_f32, View<float> x(static_cast<float*>(memory[0])); View<float> y(static_cast<float*>(memory[1]));
      View<float> z(static_cast<float*>(memory[2])); Operands<float> o; return best_of(repeat, [&] {
          TLOAD(o.a, x);
          TLOAD(o.b, y);
          TADD(o.d, o.a, o.b);
          TSTORE(z, o.d);
      }))
BENCH(softmax_f32, View<float> x(static_cast<float*>(memory[0])); View<float> z(static_cast<float*>(memory[2]));
      Operands<float> o; auto m = make<Column>(32, 1, 0xc000); auto s = make<Column>(32, 1, 0xc100);
      return best_of(repeat, [&] {
          TLOAD(o.a, x);
          TROWMAX(m, o.a, o.b);
          TROWEXPANDSUB(o.d, o.a, m);
          TEXP(o.d, o.d);
          TROWSUM(s, o.d, o.b);
          TROWEXPANDDIV(o.d, o.d, s);
          TSTORE(z, o.d);
      }))
BENCH(rmsnorm_f32, View<float> x(static_cast<float*>(memory[0])); View<float> z(static_cast<float*>(memory[2]));
      Operands<float> o; auto g = make<Tile<TileType::Vec, float, 1, 128, BLayout::RowMajor, -1, -1>>(1, 128, 0x10000);
      TEXPANDS(g, 1.0f); auto s = make<Column>(32, 1, 0xc100); return best_of(repeat, [&] {
          TLOAD(o.a, x);
          TMUL(o.b, o.a, o.a);
          TROWSUM(s, o.b, o.d);
          TMULS(s, s, 1.0f / 128);
          TADDS(s, s, 1e-6f);
          TRSQRT(s, s);
          TROWEXPANDMUL(o.d, o.a, s);
          TCOLEXPANDMUL(o.d, o.d, g);
          TSTORE(z, o.d);
      }))
BENCH(load_nz_f16, using G = GlobalTensor<half, Shape<1, 1, 1, 128, 128>, Stride<16384, 16384, 16384, 128, 1>>;
      G x(static_cast<half*>(memory[0]));
      auto m = make<Tile<TileType::Mat, half, 128, 128, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>>(128, 128,
                                                                                                            0);
      return best_of(repeat, [&] { TLOAD(m, x); }))
BENCH(mov_left_f16,
      auto m = make<Tile<TileType::Mat, half, 128, 128, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>>(128, 128,
                                                                                                            0);
      auto l = make<Tile<TileType::Left, half, 128, 128, BLayout::RowMajor, -1, -1, SLayout::RowMajor, 512>>(128, 128,
                                                                                                             0);
      return best_of(repeat, [&] { TMOV(l, m); }))
BENCH(mov_right_f16,
      auto m = make<Tile<TileType::Mat, half, 128, 128, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>>(128, 128,
                                                                                                            0);
      auto r = make<TileRight<half, 128, 128, -1, -1>>(128, 128, 0); return best_of(repeat, [&] { TMOV(r, m); }))
BENCH(store_acc_f32, using G = GlobalTensor<float, Shape<1, 1, 1, 128, 128>, Stride<16384, 16384, 16384, 128, 1>>;
      G x(static_cast<float*>(memory[0])); auto c = make<TileAcc<float, 128, 128, -1, -1>>(128, 128, 0);
      TEXPANDS(c, 1.0f); return best_of(repeat, [&] { TSTORE(x, c); }))
