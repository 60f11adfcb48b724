// The matrix-product engine: panels of 4-byte words, a register-blocked micro-kernel, accumulators in NZ panels.
//
// Both operands become words: one float, or two 16-bit integers of neighbouring k for int8. The left side is read as
// [k block][row][words of a block]; float tiles already have that form. The right side is transposed in 8x8 blocks
// into [k word][kTileCols] panels that stay in the first-level cache. Accumulators have rows of 16 columns per panel.
#pragma once
#include "line_layout.hpp"
#include "simd.hpp"

namespace pto::isa {

inline constexpr int kTileCols = 2 * kFloatLanes;  // columns of the micro-kernel
inline constexpr int kTileRows = PTO_AVX512 ? 8 : 4;
inline constexpr long kPanelWords = 256;  // k words per packed right panel: 32 KiB with 512-bit registers

// What a word holds and how two words multiply into an accumulator register.
struct FloatWords {
    using Word = float;
    using Accumulator = FloatVector;
    static constexpr int kPerWord = 1;
    [[gnu::always_inline]] static FloatVector step(FloatVector a, FloatVector b, FloatVector sum) {
        return multiply_add(a, b, sum);
    }
};
struct ShortPairWords {
    using Word = int32_t;
    using Accumulator = IntVector;
    static constexpr int kPerWord = 2;
    [[gnu::always_inline]] static IntVector step(IntVector a, IntVector b, IntVector sum) {
#if PTO_AVX512 && defined(__AVX512VNNI__) && !defined(__clang__)
        return __builtin_ia32_vpdpwssd_v16si(sum, a, b);
#elif PTO_AVX512 && defined(__clang__)
        using Shorts = Vector<short, 32>;
        return sum + (IntVector)__builtin_ia32_pmaddwd512((Shorts)a, (Shorts)b);
#elif PTO_AVX512
        using Shorts = Vector<short, 32>;
        return sum + __builtin_ia32_pmaddwd512_mask((Shorts)a, (Shorts)b, IntVector{}, 0xffff);
#elif defined(__AVX2__) && !PTO_AVX512
        using Shorts = Vector<short, 16>;
        return sum + (IntVector)__builtin_ia32_pmaddwd256((Shorts)a, (Shorts)b);
#else
        return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
    }
};
template <class T>
using WordsOf = std::conditional_t<std::is_integral_v<T>, ShortPairWords, FloatWords>;

// Eight words from contiguous elements (16 for int8).
using EightWords = Vector<uint32_t, 8>;
template <class T>
[[gnu::always_inline]] inline EightWords load_words(const T* from) {
    if constexpr (std::is_same_v<T, bfloat16_t>) {
        return __builtin_convertvector((load_vector<Vector<uint16_t, 8>>(from)), EightWords) << 16;
    } else if constexpr (std::is_same_v<T, half>) {
#if defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
        return (EightWords)__builtin_ia32_vcvtph2ps256(load_vector<Vector<short, 8>>(from));
#else
        return (EightWords) __builtin_convertvector((load_vector<Vector<half, 8>>(from)), Vector<float, 8>);
#endif
    } else if constexpr (sizeof(T) == 1) {
        return (EightWords) __builtin_convertvector((load_vector<Vector<T, 16>>(from)), Vector<int16_t, 16>);
    } else {
        return load_vector<EightWords>(from);
    }
}
// A word from elements fetched one by one: element(k) for k = first, first + 1; those at or past `limit` count as 0.
template <class W, class Fetch>
inline uint32_t gather_word(long first, long limit, const Fetch& element) {
    if constexpr (W::kPerWord == 1) {
        return bit_cast<uint32_t>(static_cast<float>(element(first)));
    } else {
        const uint16_t low = static_cast<uint16_t>(static_cast<int16_t>(element(first)));
        const uint16_t high =
            first + 1 < limit ? static_cast<uint16_t>(static_cast<int16_t>(element(first + 1))) : uint16_t{0};
        return low | (uint32_t{high} << 16);
    }
}

// Left operand as words: word w of row r at data[(w / block) * block_stride + row_offset(r) + w % block].
struct LeftPanels {
    const uint32_t* data;
    long block;
    long block_stride;
    long box_lines, line_stride, box_stride;
    const uint32_t* row(long r) const { return data + (r / box_lines) * box_stride + (r % box_lines) * line_stride; }
};

// Words per panel row, and the size of a converted left operand in words.
inline constexpr long kLeftBlock = 16;
inline long left_words(long rows, long words) {
    return (rows + kTileRows - 1) / kTileRows * kTileRows * ((words + kLeftBlock - 1) / kLeftBlock * kLeftBlock);
}

template <class T>
inline LeftPanels pack_left(uint32_t* to, const T* from, const LineLayout& layout, long rows, long k) {
    using W = WordsOf<T>;
    constexpr long per_run = kLeftBlock * W::kPerWord;
    const long words = (k + W::kPerWord - 1) / W::kPerWord;
    const long padded = (rows + kTileRows - 1) / kTileRows * kTileRows;
    const bool runs = !layout.by_column && layout.run == per_run && sizeof(T) <= 2 && !kIsByteFloat<T>;
    for (long block = 0; block * kLeftBlock < words; ++block) {
        uint32_t* panel = to + block * padded * kLeftBlock;
        if (runs) {
            if constexpr (sizeof(T) <= 2 && !kIsByteFloat<T>) {
                uint32_t* out = panel;
                for (long box = 0; box < rows; box += layout.box_lines) {
                    const T* line = from + block * layout.run_stride + box / layout.box_lines * layout.box_stride;
                    const long last = rows - box < layout.box_lines ? rows - box : layout.box_lines;
                    for (long r = 0; r < last; ++r, line += layout.line_stride, out += kLeftBlock) {
                        store_vector(out, load_words(line));
                        store_vector(out + 8, load_words(line + 8 * W::kPerWord));
                    }
                }
            }
        } else {
            for (long r = 0; r < rows; ++r) {
                const auto element = [&](long at) {
                    return from[layout.by_column ? layout.offset(at, r) : layout.offset(r, at)];
                };
                for (long w = 0; w < kLeftBlock && block * kLeftBlock + w < words; ++w)
                    panel[r * kLeftBlock + w] = gather_word<W>((block * kLeftBlock + w) * W::kPerWord, k, element);
            }
        }
        for (long r = rows; r < padded; ++r) __builtin_memset(panel + r * kLeftBlock, 0, kLeftBlock * 4);
    }
    return {to, kLeftBlock, padded * kLeftBlock, kUnbounded, kLeftBlock, 0};
}

// Packs `words` k words from word `first` of columns [col, col + cols) into to[word][kTileCols].
template <class T>
[[gnu::noinline]] void pack_right(uint32_t* to, const T* from, const LineLayout& layout, long first, long words,
                                  long col, long cols, long k) {
    using W = WordsOf<T>;
    constexpr long step = 8 * W::kPerWord;
    const bool runs = layout.by_column && layout.run % step == 0 && layout.run < kUnbounded &&
                      layout.box_lines >= kUnbounded && !kIsByteFloat<T> && cols % 8 == 0;
    for (long w = 0; w < words; w += 8) {
        const long at = (first + w) * W::kPerWord;
        const T* strip = from + at / layout.run * layout.run_stride + at % layout.run + col * layout.line_stride;
        for (long c = 0; c < cols; c += 8) {
            if (runs) {
                if constexpr (!kIsByteFloat<T>) {
                    EightWords rows[8];
                    const T* source = strip + c * layout.line_stride;
                    for (int i = 0; i < 8; ++i) rows[i] = load_words(source + i * layout.line_stride);
                    transpose_stage<EightWords, 4>(rows);
                    transpose_stage<EightWords, 2>(rows);
                    transpose_stage<EightWords, 1>(rows);
                    for (int i = 0; i < 8; ++i) store_vector(to + (w + i) * kTileCols + c, rows[i]);
                }
                continue;
            }
            for (long i = 0; i < 8 && w + i < words; ++i)
                for (long j = 0; j < 8 && c + j < cols; ++j) {
                    const auto element = [&](long row) {
                        return from[layout.by_column ? layout.offset(col + c + j, row)
                                                     : layout.offset(row, col + c + j)];
                    };
                    to[(w + i) * kTileCols + c + j] = gather_word<W>(at + i * W::kPerWord, k, element);
                }
        }
    }
    // The second half of the last pair lies past k: it must not count.
    if (W::kPerWord == 2 && k % 2 == 1 && (first + words) * 2 > k)
        for (long c = 0; c < cols; ++c) to[(words - 1) * kTileCols + c] &= 0xffff;
}

// c[Rows][Registers] (+)= left * right over `words` k words, for Rows rows that follow each other at `block` words.
template <class W, int Rows, int Registers>
[[gnu::noinline]] void multiply_panel(typename W::Word* const (&c)[Registers], const uint32_t* left, long block,
                                      long block_stride, const uint32_t* right, long words, bool accumulate,
                                      int stored_rows) {
    using V = typename W::Accumulator;
    // A load in the word's own type broadcasts from memory; through an integer register it would cost three steps.
    typedef typename W::Word Word __attribute__((may_alias));
    constexpr int lanes = kFloatLanes;
    V sum[Rows][Registers];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Registers; ++v)
            sum[i][v] = accumulate && i < stored_rows ? load_vector<V>(c[v] + i * 16) : V{};
    for (; words > 0; words -= block, left += block_stride) {
        const long count = words < block ? words : block;
        const Word* a = reinterpret_cast<const Word*>(left);
        for (long k = 0; k < count; ++k, ++a, right += kTileCols) {
            V b[Registers];
#pragma GCC unroll 4
            for (int v = 0; v < Registers; ++v) b[v] = load_vector<V>(right + v * lanes);
#pragma GCC unroll 16
            for (int i = 0; i < Rows; ++i) {
                const V splatted = a[i * block] - V{};
#pragma GCC unroll 4
                for (int v = 0; v < Registers; ++v) sum[i][v] = W::step(splatted, b[v], sum[i][v]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
        if (i < stored_rows)
#pragma GCC unroll 4
            for (int v = 0; v < Registers; ++v) store_vector(c[v] + i * 16, sum[i][v]);
}

template <class W, int Registers>
inline void multiply_rows(typename W::Word* const (&c)[Registers], const LeftPanels& left, long left_rows, long rows,
                          long first_word, const uint32_t* right, long words, bool accumulate) {
    const long skip = first_word / left.block * left.block_stride;
    for (long r = 0; r < rows;) {
        typename W::Word* at[Registers];
        for (int v = 0; v < Registers; ++v) at[v] = c[v] + r * 16;
        const bool full =
            r + kTileRows <= left_rows && rows - r > 2 && r % left.box_lines + kTileRows <= left.box_lines;
        if (full) {
            const int stored = rows - r < kTileRows ? static_cast<int>(rows - r) : kTileRows;
            multiply_panel<W, kTileRows, Registers>(at, left.row(r) + skip, left.block, left.block_stride, right, words,
                                                    accumulate, stored);
            r += kTileRows;
        } else {
            multiply_panel<W, 1, Registers>(at, left.row(r) + skip, left.block, left.block_stride, right, words,
                                            accumulate, 1);
            ++r;
        }
    }
}

// c (+)= a * b, where column j of c starts at c + (j / 16) * panel_stride + j % 16 and rows are 16 elements apart.
template <class TA, class TB, class C>
[[gnu::noinline]] void multiply(C* c, long panel_stride, const TA* a, const LineLayout& al, long a_rows, const TB* b,
                                const LineLayout& bl, long m, long n, long k, bool accumulate) {
    using W = WordsOf<TA>;
    static_assert(std::is_same_v<C, typename W::Word>, "accumulators are float, or int32_t for integer operands");
    if (m <= 0 || n <= 0) return;
    const long words = (k + W::kPerWord - 1) / W::kPerWord;
    const bool direct = std::is_same_v<TA, float> && !al.by_column && al.run < kUnbounded &&
                        kPanelWords % al.run == 0 && al.line_stride == al.run;
    const long left_size = direct ? 0 : left_words(m, words);
    const long block_words = kPanelWords < words ? kPanelWords : (words + 7) / 8 * 8;
    uint32_t* memory = reinterpret_cast<uint32_t*>(workspace((left_size + block_words * kTileCols) * 4));
    LeftPanels left{
        reinterpret_cast<const uint32_t*>(a), al.run, al.run_stride, al.box_lines, al.line_stride, al.box_stride};
    long left_rows = a_rows;
    if (!direct) {
        left = pack_left(memory + block_words * kTileCols, a, al, m, k);
        left_rows = (m + kTileRows - 1) / kTileRows * kTileRows;
    }
    for (long col = 0; col < n; col += kTileCols) {
        const long cols = n - col < kTileCols ? n - col : kTileCols;
        for (long first = 0; first < words || first == 0; first += kPanelWords) {
            const long part = words - first < kPanelWords ? words - first : kPanelWords;
            // Whole groups of eight columns: the physical columns of a boxed tile come in sixteens.
            pack_right(memory, b, bl, first, part, col, (cols + 7) / 8 * 8, k);
            const bool keep = accumulate || first > 0;
            const auto column = [&](long j) { return c + (j / 16) * panel_stride + j % 16; };
            if (cols > kFloatLanes) {
                C* const at[2] = {column(col), column(col + kFloatLanes)};
                multiply_rows<W, 2>(at, left, left_rows, m, first, memory, part, keep);
            } else {
                C* const at[1] = {column(col)};
                multiply_rows<W, 1>(at, left, left_rows, m, first, memory, part, keep);
            }
        }
    }
}

}  // namespace pto::isa
