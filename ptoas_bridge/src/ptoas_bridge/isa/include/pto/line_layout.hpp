// LineLayout: any tile or global view as lines made of contiguous runs, and copies between two of them.
//
// Row-major storage has one run per row; NZ and ZZ have one run per 32-byte box row; ZN, NN and column-major storage
// are the same with rows and columns exchanged (`by_column`). All data movement reduces to two copies: runs to runs of
// the same direction, and a transposing copy between the two directions.
#pragma once
#include <cstdint>

#include "global_tensor.hpp"
#include "simd.hpp"
#include "tile.hpp"

namespace pto::isa {

inline constexpr long kUnbounded = 1l << 40;

// A position along a line: the offset of its run and the place within it.
struct RunPosition {
    long run, within;
};

struct LineLayout {
    bool by_column;   // lines are columns
    long run;         // contiguous elements
    long run_stride;  // from one run of a line to the next
    long box_lines;   // lines that follow each other at line_stride
    long line_stride;
    long box_stride;  // from one group of box_lines lines to the next

    long line_offset(long line) const {
        return box_lines >= kUnbounded ? line * line_stride
                                       : (line / box_lines) * box_stride + (line % box_lines) * line_stride;
    }
    RunPosition run_position(long position) const { return {(position / run) * run_stride, position % run}; }
    long offset(long line, long position) const {
        const RunPosition at = run_position(position);
        return line_offset(line) + at.run + at.within;
    }
};

template <class TileT>
inline constexpr bool kByColumn = TileT::isBoxedLayout ? !TileT::isInnerRowMajor : !TileT::isRowMajor;

template <class TileT>
inline LineLayout tile_layout(const TileT& tile) {
    constexpr long plus = TileT::Compact == CompactMode::RowPlusOne;
    constexpr long inner_rows = TileT::InnerRows, inner_cols = TileT::InnerCols, box = inner_rows * inner_cols;
    // A compact tile packs its column panels to the valid rows.
    const long rows = TileT::Compact == CompactMode::Normal && TileT::isBoxedLayout && !TileT::isRowMajor
                          ? (tile.GetValidRow() + 15) / 16 * 16
                          : TileT::Rows + plus;
    constexpr long cols = TileT::Cols + plus;
    if constexpr (!TileT::isBoxedLayout) {
        if constexpr (TileT::isRowMajor)
            return {false, kUnbounded, 0, kUnbounded, TileT::RowStride, 0};
        else
            return {true, kUnbounded, 0, kUnbounded, TileT::ColStride, 0};
    } else if constexpr (TileT::isInnerRowMajor) {
        if constexpr (TileT::isRowMajor)
            return {false, inner_cols, box, inner_rows, inner_cols, cols * inner_rows};
        else
            return {false, inner_cols, rows * inner_cols, kUnbounded, inner_cols, 0};
    } else {
        if constexpr (TileT::isRowMajor)
            return {true, inner_rows, cols * inner_rows, kUnbounded, inner_rows, 0};
        else
            return {true, inner_rows, box, inner_cols, inner_rows, rows * inner_cols};
    }
}

template <int Bytes>
using BitsOf =
    std::conditional_t<Bytes == 1, uint8_t,
                       std::conditional_t<Bytes == 2, uint16_t, std::conditional_t<Bytes == 4, uint32_t, uint64_t>>>;

template <class T>
inline constexpr bool kFloatRegister =
    std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

// Converts `count` contiguous elements; between the wide float types one register at a time.
template <class D, class S>
inline void convert_run(D* to, const S* from, long count) {
    long i = 0;
    if constexpr (kFloatRegister<D> && kFloatRegister<S>)
        for (; i + kFloatLanes <= count; i += kFloatLanes) Packet<D>::store(to + i, Packet<S>::load(from + i));
    for (; i < count; ++i) to[i] = scalar_cast<D>(from[i]);
}

// Converters of a run: how elements of one type become elements of another on the way.
struct CopyRun {
    template <class D, class S>
    [[gnu::always_inline]] void operator()(D* to, const S* from, long count) const {
        if constexpr (std::is_same_v<D, S>) {
            __builtin_memcpy(to, from, count * sizeof(D));
        } else {
            convert_run(to, from, count);
        }
    }
    template <class D, class S>
    D one(S value) const {
        return scalar_cast<D>(value);
    }
    static constexpr bool kPlain = true;
};

// Copies lines that are contiguous on both sides; pitches and length in bytes.
[[gnu::noinline]] inline void copy_bytes(char* to, long to_pitch, const char* from, long from_pitch, long lines,
                                         long length) {
    if (to_pitch == length && from_pitch == length) {
        length *= lines;
        lines = 1;
    }
    for (; lines > 0; --lines, to += to_pitch, from += from_pitch) __builtin_memcpy(to, from, length);
}
template <class D, class S, class Convert>
[[gnu::noinline]] void convert_plain(D* to, long to_pitch, const S* from, long from_pitch, long lines, long length,
                                     const Convert& convert) {
    for (; lines > 0; --lines, to += to_pitch, from += from_pitch) convert(to, from, length);
}
template <class D, class S, class Convert>
inline void copy_plain(D* to, long to_pitch, const S* from, long from_pitch, long lines, long length,
                       const Convert& convert) {
    if constexpr (std::is_same_v<D, S> && Convert::kPlain)
        copy_bytes(reinterpret_cast<char*>(to), to_pitch * sizeof(D), reinterpret_cast<const char*>(from),
                   from_pitch * sizeof(D), lines, length * sizeof(D));
    else
        convert_plain(to, to_pitch, from, from_pitch, lines, length, convert);
}

// Copies `lines` runs of `count` elements; box rows of 32 and 64 bytes move in registers.
template <class D, class S, class Convert>
[[gnu::always_inline]] inline void copy_group(D* to, long to_stride, const S* from, long from_stride, long lines,
                                              long count, const Convert& convert) {
    if constexpr (std::is_same_v<D, S> && Convert::kPlain) {
        if (count * long(sizeof(D)) == 32) {
            for (long i = 0; i < lines; ++i) __builtin_memcpy(to + i * to_stride, from + i * from_stride, 32);
            return;
        }
        if (count * long(sizeof(D)) == 64) {
            for (long i = 0; i < lines; ++i) __builtin_memcpy(to + i * to_stride, from + i * from_stride, 64);
            return;
        }
    }
    for (long i = 0; i < lines; ++i) convert(to + i * to_stride, from + i * from_stride, count);
}

// Copies `lines` x `length` elements between layouts of the same direction, starting at (line, position) of each.
template <class D, class S, class Convert>
[[gnu::noinline]] void copy_lines(D* to, const LineLayout& dl, long d_line, long d_position, const S* from,
                                  const LineLayout& sl, long s_line, long s_position, long lines, long length,
                                  const Convert& convert) {
    const RunPosition d_start = dl.run_position(d_position), s_start = sl.run_position(s_position);
    // Sixteen lines at a time: both the strided and the panel side stay within a few pages.
    for (long first = 0; first < lines;) {
        const long dn = d_line + first, sn = s_line + first;
        long group = lines - first < 16 ? lines - first : 16;
        if (dl.box_lines - dn % dl.box_lines < group) group = dl.box_lines - dn % dl.box_lines;
        if (sl.box_lines - sn % sl.box_lines < group) group = sl.box_lines - sn % sl.box_lines;
        D* d = to + dl.line_offset(dn);
        const S* s = from + sl.line_offset(sn);
        long dp = d_start.within, sp = s_start.within, d_run = d_start.run, s_run = s_start.run;
        for (long left = length; left > 0;) {
            long count = left;
            if (dl.run - dp < count) count = dl.run - dp;
            if (sl.run - sp < count) count = sl.run - sp;
            copy_group(d + d_run + dp, dl.line_stride, s + s_run + sp, sl.line_stride, group, count, convert);
            left -= count;
            if ((dp += count) == dl.run) dp = 0, d_run += dl.run_stride;
            if ((sp += count) == sl.run) sp = 0, s_run += sl.run_stride;
        }
        first += group;
    }
}

// One stage of an in-register transpose of eight vectors of eight lanes: pairs (i, i + Half) exchange blocks.
template <class V, int Half>
[[gnu::always_inline]] inline void transpose_stage(V (&rows)[8]) {
    for (int i = 0; i < 8; ++i) {
        if (i & Half) continue;
        const V a = rows[i], b = rows[i + Half];
        if constexpr (Half == 4) {
            rows[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
            rows[i + Half] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
        } else if constexpr (Half == 2) {
            rows[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
            rows[i + Half] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
        } else {
            rows[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
            rows[i + Half] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
        }
    }
}

// Transposes an 8x8 block: to[j * to_stride + i] = from[i * from_stride + j].
template <class Bits>
[[gnu::always_inline]] inline void transpose_8x8(Bits* to, long to_stride, const Bits* from, long from_stride) {
    using V = Vector<Bits, 8>;
    V rows[8];
    for (int i = 0; i < 8; ++i) rows[i] = load_vector<V>(from + i * from_stride);
    transpose_stage<V, 4>(rows);
    transpose_stage<V, 2>(rows);
    transpose_stage<V, 1>(rows);
    for (int i = 0; i < 8; ++i) store_vector(to + i * to_stride, rows[i]);
}

// Copies between layouts of opposite direction: the lines of one side are the positions of the other.
// `s_lines` x `s_length` counts in the source's direction.
template <class D, class S, class Convert>
[[gnu::noinline]] void copy_transposed(D* to, const LineLayout& dl, long d_line, long d_position, const S* from,
                                       const LineLayout& sl, long s_line, long s_position, long s_lines, long s_length,
                                       const Convert& convert) {
    constexpr bool kBlocks = std::is_same_v<D, S> && Convert::kPlain && sizeof(D) <= 4;
    for (long i = 0; i < s_lines; i += 8) {
        const bool eight_lines = i + 8 <= s_lines;
        for (long j = 0; j < s_length; j += 8) {
            if constexpr (kBlocks) {
                // The block is contiguous along runs on both sides, and equally spaced across lines.
                const long dp = d_position + i, sp = s_position + j, dn = d_line + j, sn = s_line + i;
                if (eight_lines && j + 8 <= s_length && dp % dl.run + 8 <= dl.run && sp % sl.run + 8 <= sl.run &&
                    dn % dl.box_lines + 8 <= dl.box_lines && sn % sl.box_lines + 8 <= sl.box_lines) {
                    using Bits = BitsOf<sizeof(D)>;
                    transpose_8x8<Bits>(reinterpret_cast<Bits*>(to + dl.offset(dn, dp)), dl.line_stride,
                                        reinterpret_cast<const Bits*>(from + sl.offset(sn, sp)), sl.line_stride);
                    continue;
                }
            }
            for (long a = i; a < i + 8 && a < s_lines; ++a)
                for (long b = j; b < j + 8 && b < s_length; ++b)
                    to[dl.offset(d_line + b, d_position + a)] =
                        convert.template one<D>(from[sl.offset(s_line + a, s_position + b)]);
        }
    }
}

// What is known at compile time about one side of a copy: its direction and whether its lines are contiguous.
template <bool ByColumn, bool Plain>
struct Side {
    static constexpr bool kByColumn = ByColumn;
    static constexpr bool kPlain = Plain;
};
template <class TileT>
using TileSide = Side<kByColumn<TileT>, !TileT::isBoxedLayout>;
template <class TileT>
using TransposedTileSide = Side<!kByColumn<TileT>, !TileT::isBoxedLayout>;

// Copies the rows x cols block at (s_row, s_col) of the source to (d_row, d_col) of the destination.
template <class DSide, class SSide, class D, class S, class Convert = CopyRun>
inline void copy_block(D* to, const LineLayout& dl, long d_row, long d_col, const S* from, const LineLayout& sl,
                       long s_row, long s_col, long rows, long cols, const Convert& convert = Convert()) {
    if constexpr (std::is_same_v<D, S> && Convert::kPlain && !std::is_same_v<D, BitsOf<sizeof(D)>>) {
        // Without a conversion only the size of the elements matters: all types of one size share the copies.
        using Bits = BitsOf<sizeof(D)>;
        copy_block<DSide, SSide>(reinterpret_cast<Bits*>(to), dl, d_row, d_col, reinterpret_cast<const Bits*>(from), sl,
                                 s_row, s_col, rows, cols);
    } else {
        if (rows <= 0 || cols <= 0) return;
        const long d_line = DSide::kByColumn ? d_col : d_row, d_position = DSide::kByColumn ? d_row : d_col;
        const long s_line = SSide::kByColumn ? s_col : s_row, s_position = SSide::kByColumn ? s_row : s_col;
        const long s_lines = SSide::kByColumn ? cols : rows, s_length = SSide::kByColumn ? rows : cols;
        if constexpr (DSide::kByColumn != SSide::kByColumn)
            copy_transposed(to, dl, d_line, d_position, from, sl, s_line, s_position, s_lines, s_length, convert);
        else if constexpr (DSide::kPlain && SSide::kPlain)
            copy_plain(to + d_line * dl.line_stride + d_position, dl.line_stride,
                       from + s_line * sl.line_stride + s_position, sl.line_stride, s_lines, s_length, convert);
        else
            copy_lines(to, dl, d_line, d_position, from, sl, s_line, s_position, s_lines, s_length, convert);
    }
}

// The same storage with rows and columns exchanged.
inline LineLayout transposed(LineLayout layout) {
    layout.by_column = !layout.by_column;
    return layout;
}

}  // namespace pto::isa
