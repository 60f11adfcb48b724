// TMOV, TEXTRACT, TINSERT, TTRANS, TCONCAT: copies between tiles, with the change of layout the pair implies.
#pragma once
#include "fixpipe.hpp"
#include "line_layout.hpp"
#include "load_store.hpp"

namespace pto {
namespace isa {

template <class Convert, class D, class S>
inline void move_block(D& dst, long d_row, long d_col, S& src, long s_row, long s_col, long rows, long cols,
                       const Convert& convert) {
    copy_block<TileSide<D>, TileSide<S>>(dst.data(), tile_layout(dst), d_row, d_col,
                                         static_cast<const typename S::DType*>(src.data()), tile_layout(src), s_row,
                                         s_col, rows, cols, convert);
}

inline long smaller(long a, long b) { return a < b ? a : b; }

// The part of the source that a move into `dst` covers.
template <bool Relu, bool Scaled, class D, class S>
inline void move_tile(D& dst, S& src, float scale) {
    move_block(dst, 0, 0, src, 0, 0, smaller(dst.GetValidRow(), S::Rows), smaller(dst.GetValidCol(), S::Cols),
               FixpipeRun<Relu, Scaled>{scale});
}

template <class D, class S>
inline void check_window(const char* name, long row, long col, long rows, long cols) {
    if (__builtin_expect(row < 0 || col < 0 || row + rows > S::Rows || col + cols > S::Cols, 0))
        fail("%s: window [%ld, %ld] + [%ld, %ld] leaves the tile of [%d, %d]", name, row, col, rows, cols, S::Rows,
             S::Cols);
}

template <bool Relu, bool Scaled, class D, class S>
inline void extract_tile(D& dst, S& src, long row, long col, float scale) {
    const long rows = dst.GetValidRow(), cols = dst.GetValidCol();
    check_window<D, S>("TEXTRACT", row, col, rows, cols);
    move_block(dst, 0, 0, src, row, col, rows, cols, FixpipeRun<Relu, Scaled>{scale});
}
template <bool Relu, bool Scaled, class D, class S>
inline void insert_tile(D& dst, S& src, long row, long col, float scale) {
    const long rows = src.GetValidRow(), cols = src.GetValidCol();
    check_window<S, D>("TINSERT", row, col, rows, cols);
    move_block(dst, row, col, src, 0, 0, rows, cols, FixpipeRun<Relu, Scaled>{scale});
}

// Per-column scales of the *_FP forms.
template <bool Relu, class D, class S, class Fp>
inline void move_scaled_columns(D& dst, long d_row, long d_col, S& src, long s_row, long s_col, long rows, long cols,
                                Fp& fp) {
    for (long j = 0; j < cols; ++j)
        move_block(dst, d_row, d_col + j, src, s_row, s_col + j, rows, 1,
                   FixpipeRun<Relu, true>{scale_from_bits(static_cast<uint64_t>(fp.data()[j]))});
}

template <ReluPreMode Mode>
inline constexpr bool kRelu = Mode == ReluPreMode::NormalRelu;

}  // namespace isa

template <class D, class S, class... Rest,
          std::enable_if_t<!(std::is_arithmetic_v<std::remove_reference_t<Rest>> || ...), int> = 0>
PTO_INST RecordEvent TMOV(D& dst, S& src, Rest&&...) {
    isa::move_tile<false, false>(dst, src, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu>
PTO_INST RecordEvent TMOV(D& dst, S& src) {
    isa::move_tile<isa::kRelu<Relu>, false>(dst, src, 1.0f);
    return {};
}
template <class D, class S, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TMOV(D& dst, S& src) {
    isa::move_tile<isa::kRelu<Relu>, false>(dst, src, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TMOV(D& dst, S& src, uint64_t scale_bits) {
    isa::move_tile<isa::kRelu<Relu>, true>(dst, src, isa::scale_from_bits(scale_bits));
    return {};
}
template <class D, class S, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TMOV(D& dst, S& src, uint64_t scale_bits) {
    isa::move_tile<isa::kRelu<Relu>, true>(dst, src, isa::scale_from_bits(scale_bits));
    return {};
}
template <class D, class S, class Fp, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TMOV_FP(D& dst, S& src, Fp& fp) {
    isa::move_scaled_columns<isa::kRelu<Relu>>(dst, 0, 0, src, 0, 0, dst.GetValidRow(), dst.GetValidCol(), fp);
    return {};
}

template <class D, class S>
PTO_INST RecordEvent TEXTRACT(D& dst, S& src, int64_t row = 0, int64_t col = 0) {
    isa::extract_tile<false, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu>
PTO_INST RecordEvent TEXTRACT(D& dst, S& src, int64_t row, int64_t col) {
    isa::extract_tile<isa::kRelu<Relu>, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TEXTRACT(D& dst, S& src, int64_t row, int64_t col) {
    isa::extract_tile<isa::kRelu<Relu>, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TEXTRACT(D& dst, S& src, uint64_t scale_bits, int64_t row, int64_t col) {
    isa::extract_tile<isa::kRelu<Relu>, true>(dst, src, row, col, isa::scale_from_bits(scale_bits));
    return {};
}
template <class D, class S, class Fp, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TEXTRACT_FP(D& dst, S& src, Fp& fp, int64_t row, int64_t col) {
    isa::check_window<D, S>("TEXTRACT_FP", row, col, dst.GetValidRow(), dst.GetValidCol());
    isa::move_scaled_columns<isa::kRelu<Relu>>(dst, 0, 0, src, row, col, dst.GetValidRow(), dst.GetValidCol(), fp);
    return {};
}

template <class D, class S>
PTO_INST RecordEvent TINSERT(D& dst, S& src, int64_t row = 0, int64_t col = 0) {
    isa::insert_tile<false, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu>
PTO_INST RecordEvent TINSERT(D& dst, S& src, int64_t row, int64_t col) {
    isa::insert_tile<isa::kRelu<Relu>, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, AccToVecMode Mode, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TINSERT(D& dst, S& src, int64_t row, int64_t col) {
    isa::insert_tile<isa::kRelu<Relu>, false>(dst, src, row, col, 1.0f);
    return {};
}
template <class D, class S, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TINSERT(D& dst, S& src, uint64_t scale_bits, int64_t row, int64_t col) {
    isa::insert_tile<isa::kRelu<Relu>, true>(dst, src, row, col, isa::scale_from_bits(scale_bits));
    return {};
}
template <class D, class S, class Fp, ReluPreMode Relu = ReluPreMode::NoRelu>
PTO_INST RecordEvent TINSERT_FP(D& dst, S& src, Fp& fp, int64_t row, int64_t col) {
    isa::check_window<S, D>("TINSERT_FP", row, col, src.GetValidRow(), src.GetValidCol());
    isa::move_scaled_columns<isa::kRelu<Relu>>(dst, row, col, src, 0, 0, src.GetValidRow(), src.GetValidCol(), fp);
    return {};
}

// dst[i, j] = src[j, i]
template <class D, class S, class... Rest>
PTO_INST RecordEvent TTRANS(D& dst, S& src, Rest&&...) {
    isa::copy_block<isa::TileSide<D>, isa::TransposedTileSide<S>>(
        dst.data(), isa::tile_layout(dst), 0, 0, static_cast<const typename S::DType*>(src.data()),
        isa::transposed(isa::tile_layout(src)), 0, 0, isa::smaller(dst.GetValidRow(), S::Cols),
        isa::smaller(dst.GetValidCol(), S::Rows));
    return {};
}

// The valid columns of src0, then those of src1, row by row.
template <class D, class A, class B, class... Rest>
PTO_INST RecordEvent TCONCAT(D& dst, A& src0, B& src1, Rest&&...) {
    const long first = isa::smaller(src0.GetValidCol(), D::Cols), second = src1.GetValidCol();
    isa::move_block(dst, 0, 0, src0, 0, 0, isa::smaller(src0.GetValidRow(), D::Rows), first, isa::CopyRun());
    isa::move_block(dst, 0, first, src1, 0, 0, isa::smaller(src1.GetValidRow(), D::Rows),
                    isa::smaller(second, D::Cols - first), isa::CopyRun());
    return {};
}

}  // namespace pto
