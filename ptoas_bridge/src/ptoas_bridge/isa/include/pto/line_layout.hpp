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

// Side of the blocks that transpose_block() moves in registers.
#if PTO_AVX512 && !defined(__clang__) && defined(__AVX512VBMI__)
template <class Bits>
inline constexpr int kTransposedSide = sizeof(Bits) <= 2 ? 16 : 8;
#elif PTO_AVX512 && !defined(__clang__)
template <class Bits>
inline constexpr int kTransposedSide = sizeof(Bits) == 2 ? 16 : 8;
#else
template <class Bits>
inline constexpr int kTransposedSide = 8;
#endif

#if PTO_AVX512 && !defined(__clang__)
// Lane numbers that turn a pair of 512-bit vectors into one. Vectors hold several rows of 16 elements: a lane number is
// the row inside the vector, then the four bits of the column. `Which` tells the two results of a pair apart.
template <class Bits>
struct LaneTable {
    alignas(64) Bits lane[64 / sizeof(Bits)];
};
// The pair exchanges the blocks whose columns differ in bit `Bit`.
template <class Bits, int Bit, int Which>
constexpr LaneTable<Bits> exchange_table() {
    constexpr int lanes = 64 / sizeof(Bits), bit = 1 << Bit;
    LaneTable<Bits> table{};
    for (int i = 0; i < lanes; ++i) {
        if (Which == 0)
            table.lane[i] = static_cast<Bits>(i & bit ? lanes + i - bit : i);
        else
            table.lane[i] = static_cast<Bits>(i & bit ? lanes + i : i + bit);
    }
    return table;
}
// The last exchange, after which a lane number is the column inside the vector, then the four bits of the row.
template <class Bits, int Bit, int Which>
constexpr LaneTable<Bits> finish_table() {
    constexpr int lanes = 64 / sizeof(Bits), rows = lanes / 16;
    LaneTable<Bits> table{};
    for (int i = 0; i < lanes; ++i) {
        const int row = i & 15, column = i >> 4;
        const int from = (row & (rows - 1)) << 4 | row >> (Bit + 1) << (Bit + 1) | Which << Bit | column;
        table.lane[i] = static_cast<Bits>((row >> Bit & 1 ? lanes : 0) + from);
    }
    return table;
}
template <class Bits, int Bit, int Which, bool Finish>
inline constexpr LaneTable<Bits> kLaneTable =
    Finish ? finish_table<Bits, Bit, Which>() : exchange_table<Bits, Bit, Which>();

template <class Bits, int Bit, bool Finish, int Count>
[[gnu::always_inline]] inline void permute_pairs(Vector<Bits, 64 / sizeof(Bits)> (&v)[Count], int distance) {
    using V = Vector<Bits, 64 / sizeof(Bits)>;
    const V first = load_vector<V>(kLaneTable<Bits, Bit, 0, Finish>.lane);
    const V second = load_vector<V>(kLaneTable<Bits, Bit, 1, Finish>.lane);
    for (int i = 0; i < Count; ++i) {
        if (i & distance) continue;
        const V a = v[i], b = v[i + distance];
        v[i] = __builtin_shuffle(a, b, first);
        v[i + distance] = __builtin_shuffle(a, b, second);
    }
}

// Rows of 16 elements of 16 or 8 bits that fill a 512-bit vector.
using Words8 = Vector<uint64_t, 8>;
using Words4 = Vector<uint64_t, 4>;
using Words2 = Vector<uint64_t, 2>;
template <class Bits>
[[gnu::always_inline]] inline Words8 load_rows(const Bits* from, long stride) {
    if constexpr (sizeof(Bits) == 2) {
        return __builtin_shufflevector(load_vector<Words4>(from), load_vector<Words4>(from + stride), 0, 1, 2, 3, 4, 5,
                                       6, 7);
    } else {
        const Words4 low =
            __builtin_shufflevector(load_vector<Words2>(from), load_vector<Words2>(from + stride), 0, 1, 2, 3);
        const Words4 high = __builtin_shufflevector(load_vector<Words2>(from + 2 * stride),
                                                    load_vector<Words2>(from + 3 * stride), 0, 1, 2, 3);
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    }
}
template <class Bits>
[[gnu::always_inline]] inline void store_rows(Bits* to, long stride, Words8 rows) {
    const Words4 low = __builtin_shufflevector(rows, rows, 0, 1, 2, 3);
    const Words4 high = __builtin_shufflevector(rows, rows, 4, 5, 6, 7);
    if constexpr (sizeof(Bits) == 2) {
        store_vector(to, low);
        store_vector(to + stride, high);
    } else {
        store_vector(to, __builtin_shufflevector(low, low, 0, 1));
        store_vector(to + stride, __builtin_shufflevector(low, low, 2, 3));
        store_vector(to + 2 * stride, __builtin_shufflevector(high, high, 0, 1));
        store_vector(to + 3 * stride, __builtin_shufflevector(high, high, 2, 3));
    }
}

template <class Bits>
[[gnu::always_inline]] inline void transpose_16x16(Bits* to, long to_stride, const Bits* from, long from_stride) {
    constexpr int count = 4 * sizeof(Bits), rows = 16 / count;
    using V = Vector<Bits, 64 / sizeof(Bits)>;
    V v[count];
    for (int i = 0; i < count; ++i) v[i] = (V)load_rows(from + i * rows * from_stride, from_stride);
    if constexpr (sizeof(Bits) == 2) {
        permute_pairs<Bits, 3, false>(v, 4);
        permute_pairs<Bits, 2, false>(v, 2);
        permute_pairs<Bits, 1, true>(v, 1);
    } else {
        permute_pairs<Bits, 3, false>(v, 2);
        permute_pairs<Bits, 2, true>(v, 1);
    }
    for (int i = 0; i < count; ++i) store_rows(to + i * rows * to_stride, to_stride, (Words8)v[i]);
}
#endif

// to[j * to_stride + i] = from[i * from_stride + j] for a block of Side x Side.
template <int Side, class Bits>
[[gnu::always_inline]] inline void transpose_block(Bits* to, long to_stride, const Bits* from, long from_stride) {
#if PTO_AVX512 && !defined(__clang__)
    if constexpr (Side == 16) return transpose_16x16(to, to_stride, from, from_stride);
#endif
    transpose_8x8(to, to_stride, from, from_stride);
}

// A place in groups of `size` steps: `step` apart inside a group, and from group to group `group`.
struct Cursor {
    long size, step, group, within, base;
    Cursor(long size, long step, long group, long at)
        : size(size), step(step), group(group), within(at % size), base(at / size * group) {}
    long offset() const { return base + within * step; }
    bool holds(long count) const { return within + count <= size; }
    void advance(long count) {
        for (within += count; within >= size; within -= size) base += group;
    }
};
inline Cursor line_cursor(const LineLayout& layout, long line) {
    return {layout.box_lines, layout.line_stride, layout.box_stride, line};
}
inline Cursor position_cursor(const LineLayout& layout, long position) {
    return {layout.run, 1, layout.run_stride, position};
}

// Where a block starts on both sides: lines and positions of the destination, lines and positions of the source.
struct BlockCursor {
    Cursor d_lines, d_positions, s_lines, s_positions;
};

// Copies a block of at most Side lines and positions of the source; whole ones in registers, if they are contiguous
// along runs on both sides and equally spaced across lines.
template <int Side, class D, class S, class Convert>
inline void copy_transposed_block(D* to, const S* from, BlockCursor at, long lines, long length,
                                  const Convert& convert) {
    if constexpr (std::is_same_v<D, S> && Convert::kPlain && sizeof(D) <= 4) {
        if (lines == Side && length == Side && at.d_positions.holds(Side) && at.s_positions.holds(Side) &&
            at.d_lines.holds(Side) && at.s_lines.holds(Side)) {
            using Bits = BitsOf<sizeof(D)>;
            return transpose_block<Side>(
                reinterpret_cast<Bits*>(to + at.d_lines.offset() + at.d_positions.offset()), at.d_lines.step,
                reinterpret_cast<const Bits*>(from + at.s_lines.offset() + at.s_positions.offset()), at.s_lines.step);
        }
    }
    if constexpr (Side > 8) {
        for (long i = 0; i < lines; i += 8) {
            BlockCursor part = at;
            for (long j = 0; j < length; j += 8) {
                copy_transposed_block<8>(to, from, part, lines - i < 8 ? lines - i : 8, length - j < 8 ? length - j : 8,
                                         convert);
                part.s_positions.advance(8);
                part.d_lines.advance(8);
            }
            at.s_lines.advance(8);
            at.d_positions.advance(8);
        }
    } else {
        for (long i = 0; i < lines; ++i) {
            Cursor d = at.d_lines, s = at.s_positions;
            for (long j = 0; j < length; ++j, d.advance(1), s.advance(1))
                to[d.offset() + at.d_positions.offset()] =
                    convert.template one<D>(from[at.s_lines.offset() + s.offset()]);
            at.s_lines.advance(1);
            at.d_positions.advance(1);
        }
    }
}

// Copies between layouts of opposite direction: the lines of one side are the positions of the other.
// `s_lines` x `s_length` counts in the source's direction.
template <class D, class S, class Convert>
[[gnu::noinline]] void copy_transposed(D* to, const LineLayout& dl, long d_line, long d_position, const S* from,
                                       const LineLayout& sl, long s_line, long s_position, long s_lines, long s_length,
                                       const Convert& convert) {
    constexpr int side = kTransposedSide<D>;
    BlockCursor at{line_cursor(dl, d_line), position_cursor(dl, d_position), line_cursor(sl, s_line),
                   position_cursor(sl, s_position)};
    for (long i = 0; i < s_lines; i += side) {
        BlockCursor block = at;
        for (long j = 0; j < s_length; j += side) {
            copy_transposed_block<side>(to, from, block, s_lines - i < side ? s_lines - i : side,
                                        s_length - j < side ? s_length - j : side, convert);
            block.s_positions.advance(side);
            block.d_lines.advance(side);
        }
        at.s_lines.advance(side);
        at.d_positions.advance(side);
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

// The layout with positions counted in bytes: all plain copies share one loop.
template <int Size>
inline LineLayout in_bytes(const LineLayout& layout) {
    return {layout.by_column, layout.run * Size, layout.run_stride * Size, layout.box_lines, layout.line_stride * Size,
            layout.box_stride * Size};
}

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
        else if constexpr (std::is_same_v<D, S> && Convert::kPlain)
            copy_lines(reinterpret_cast<uint8_t*>(to), in_bytes<sizeof(D)>(dl), d_line, d_position * long(sizeof(D)),
                       reinterpret_cast<const uint8_t*>(from), in_bytes<sizeof(S)>(sl), s_line,
                       s_position * long(sizeof(S)), s_lines, s_length * long(sizeof(D)), CopyRun());
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
