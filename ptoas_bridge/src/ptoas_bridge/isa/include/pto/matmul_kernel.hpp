// The matrix-product engine: panels of 4-byte words, a register-blocked micro-kernel, accumulators in NZ panels.
//
// Both operands become words: one float, or where the machine has instructions for it two bfloat16, two 16-bit integers
// or four bytes of neighbouring k. The left side is read as [k block][row][words of a block]; tiles whose elements need
// no conversion already have that form. The right side is transposed in 8x8 blocks into [k word][kTileCols] panels that
// stay in the first-level cache. Accumulators have rows of 16 columns per panel.
#pragma once
#include "line_layout.hpp"
#include "simd.hpp"

namespace pto::isa {

inline constexpr int kTileCols = 2 * kFloatLanes;  // columns of the micro-kernel
inline constexpr int kTileRows = PTO_AVX512 ? 8 : 4;
inline constexpr long kPanelWords = 256;  // k words per packed right panel: 32 KiB with 512-bit registers

using EightWords = Vector<uint32_t, 8>;

// A kind of words. Word and Accumulator: lanes of the result. Left: a word as it is broadcast. kStored: elements in
// memory are words as they stand. kLeftFlip: what words of the left side are xored with. load() makes eight words,
// bits() the part of a word that one element becomes, step() adds the products of two words to an accumulator.
struct FloatWords {
    using Word = float;
    using Left = float;
    using Accumulator = FloatVector;
    static constexpr int kPerWord = 1;
    static constexpr uint32_t kLeftFlip = 0;
    template <class T>
    static constexpr bool kStored = std::is_same_v<T, float>;

    template <class T>
    [[gnu::always_inline]] static EightWords load(const T* from) {
        if constexpr (std::is_same_v<T, bfloat16_t>) {
            return __builtin_convertvector((load_vector<Vector<uint16_t, 8>>(from)), EightWords) << 16;
        } else if constexpr (std::is_same_v<T, half>) {
#if defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
            return (EightWords)__builtin_ia32_vcvtph2ps256(load_vector<Vector<short, 8>>(from));
#else
            return (EightWords) __builtin_convertvector((load_vector<Vector<half, 8>>(from)), Vector<float, 8>);
#endif
        } else {
            return load_vector<EightWords>(from);
        }
    }
    template <class T>
    static uint32_t bits(T element) {
        return bit_cast<uint32_t>(static_cast<float>(element));
    }
    [[gnu::always_inline]] static FloatVector step(FloatVector a, FloatVector b, FloatVector sum) {
        return multiply_add(a, b, sum);
    }
};

struct ShortPairWords {
    using Word = int32_t;
    using Left = int32_t;
    using Accumulator = IntVector;
    static constexpr int kPerWord = 2;
    static constexpr uint32_t kLeftFlip = 0;
    template <class T>
    static constexpr bool kStored = false;

    template <class T>
    [[gnu::always_inline]] static EightWords load(const T* from) {
        return (EightWords) __builtin_convertvector((load_vector<Vector<T, 16>>(from)), Vector<int16_t, 16>);
    }
    template <class T>
    static uint32_t bits(T element) {
        return static_cast<uint16_t>(static_cast<int16_t>(element));
    }
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

// Elements that are parts of words as they stand in memory.
template <class T>
struct PackedWords {
    static constexpr int kPerWord = 4 / sizeof(T);
    template <class E>
    static constexpr bool kStored = true;

    [[gnu::always_inline]] static EightWords load(const T* from) { return load_vector<EightWords>(from); }
    static uint32_t bits(T element) { return bit_cast<BitsOf<sizeof(T)>>(element); }
};

// The instruction adds both products in float; subnormal operands and sums count as zero.
struct BFloat16PairWords : PackedWords<bfloat16_t> {
    using Word = float;
    using Left = int32_t;
    using Accumulator = FloatVector;
    static constexpr uint32_t kLeftFlip = 0;
#if PTO_AVX512
    [[gnu::always_inline]] static FloatVector step(IntVector a, FloatVector b, FloatVector sum) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
        return sum;
    }
#endif
};

// The instruction multiplies unsigned by signed bytes. The left side is taken as unsigned, 128 too large, which adds
// 128 times the sum of a column of the right side: accumulators start from what takes that away. Exact modulo 2^32.
struct ByteQuadWords : PackedWords<int8_t> {
    using Word = int32_t;
    using Left = int32_t;
    using Accumulator = IntVector;
    static constexpr uint32_t kLeftFlip = 0x80808080;
    template <class E>
    static constexpr bool kStored = false;
#if PTO_AVX512
    [[gnu::always_inline]] static IntVector step(IntVector a, IntVector b, IntVector sum) {
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
#endif
};

#if PTO_AVX512 && defined(__AVX512BF16__)
inline constexpr bool kMultipliesBFloat16 = true;
#else
inline constexpr bool kMultipliesBFloat16 = false;
#endif
#if PTO_AVX512 && defined(__AVX512VNNI__)
inline constexpr bool kMultipliesBytes = true;
#else
inline constexpr bool kMultipliesBytes = false;
#endif

template <class A, class B>
using WordsOf = std::conditional_t<
    kMultipliesBFloat16 && std::is_same_v<A, bfloat16_t> && std::is_same_v<B, bfloat16_t>, BFloat16PairWords,
    std::conditional_t<kMultipliesBytes && std::is_same_v<A, int8_t> && std::is_same_v<B, int8_t>, ByteQuadWords,
                       std::conditional_t<std::is_integral_v<A>, ShortPairWords, FloatWords>>>;

// Words from elements fetched one by one, for layouts without runs of words: word first_word + w of line first_line + i
// goes to to[w * word_step + i * line_step]. Lines are rows of the left and columns of the right side; `along` tells
// whether they are lines of the layout. Elements at or past k count as 0.
template <class W, class T>
[[gnu::noinline]] void gather_words(uint32_t* to, long word_step, long line_step, const T* from,
                                    const LineLayout& layout, bool along, long first_line, long lines, long first_word,
                                    long words, long k) {
    for (long line = first_line; line < first_line + lines; ++line, to += line_step)
        for (long w = 0; w < words; ++w) {
            uint32_t word = 0;
            const long first = (first_word + w) * W::kPerWord;
            for (int i = 0; i < W::kPerWord && first + i < k; ++i) {
                const long at = along ? layout.offset(line, first + i) : layout.offset(first + i, line);
                word |= W::bits(from[at]) << (32 / W::kPerWord * i);
            }
            to[w * word_step] = word;
        }
}

// The bits of the last word that belong to elements before k.
template <class W>
inline uint32_t last_word_mask(long k) {
    const long rest = k % W::kPerWord;
    return rest == 0 ? ~uint32_t{0} : (uint32_t{1} << (32 / W::kPerWord * rest)) - 1;
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

// Words of eight as they lie in the storage of a tile: whether they do, and where the words of element `at` start.
template <class W, class T>
inline bool has_word_runs(const LineLayout& layout) {
    return layout.run < kUnbounded && layout.run % (8 * W::kPerWord) == 0 && !kIsByteFloat<T>;
}
inline long run_offset(const LineLayout& layout, long at) {
    return at / layout.run * layout.run_stride + at % layout.run;
}

template <class W, class T>
inline LeftPanels pack_left(uint32_t* to, const T* from, const LineLayout& layout, long rows, long k) {
    const long words = (k + W::kPerWord - 1) / W::kPerWord;
    const long padded = (rows + kTileRows - 1) / kTileRows * kTileRows;
    const bool runs = !layout.by_column && has_word_runs<W, T>(layout);
    const uint32_t mask = last_word_mask<W>(k);
    for (long first = 0; first < words; first += kLeftBlock) {
        uint32_t* const panel = to + first * padded;
        const long count = words - first < kLeftBlock ? words - first : kLeftBlock;
        if (runs) {
            if constexpr (!kIsByteFloat<T>) {
                for (long w = 0; w < count; w += 8) {
                    const T* strip = from + run_offset(layout, (first + w) * W::kPerWord);
                    uint32_t* out = panel + w;
                    for (long box = 0; box < rows; box += layout.box_lines) {
                        const T* line = strip + box / layout.box_lines * layout.box_stride;
                        const long last = rows - box < layout.box_lines ? rows - box : layout.box_lines;
                        for (long r = 0; r < last; ++r, line += layout.line_stride, out += kLeftBlock)
                            store_vector(out, W::load(line) ^ W::kLeftFlip);
                    }
                }
                if (first + count == words && ~mask)
                    for (long r = 0; r < rows; ++r) panel[r * kLeftBlock + count - 1] &= mask;
            }
        } else {
            gather_words<W>(panel, 1, kLeftBlock, from, layout, !layout.by_column, 0, rows, first, count, k);
            if constexpr (W::kLeftFlip != 0)
                for (long i = 0; i < rows * kLeftBlock; ++i) panel[i] ^= W::kLeftFlip;
        }
        for (long r = rows; r < padded; ++r) __builtin_memset(panel + r * kLeftBlock, 0, kLeftBlock * 4);
    }
    return {to, kLeftBlock, padded * kLeftBlock, kUnbounded, kLeftBlock, 0};
}

// Packs `words` k words from word `first` of columns [col, col + cols) into to[word][kTileCols].
template <class W, class T>
[[gnu::noinline]] void pack_right(uint32_t* to, const T* from, const LineLayout& layout, long first, long words,
                                  long col, long cols, long k) {
    const bool runs =
        layout.by_column && has_word_runs<W, T>(layout) && layout.box_lines >= kUnbounded && cols % 8 == 0;
    if (!runs) {
        gather_words<W>(to, kTileCols, 1, from, layout, layout.by_column, col, cols, first, words, k);
        return;
    }
    if constexpr (!kIsByteFloat<T>) {
        for (long w = 0; w < words; w += 8) {
            const T* const strip = from + run_offset(layout, (first + w) * W::kPerWord) + col * layout.line_stride;
            for (long c = 0; c < cols; c += 8) {
                EightWords rows[8];
                for (int i = 0; i < 8; ++i) rows[i] = W::load(strip + (c + i) * layout.line_stride);
                transpose_stage<EightWords, 4>(rows);
                transpose_stage<EightWords, 2>(rows);
                transpose_stage<EightWords, 1>(rows);
                for (int i = 0; i < 8; ++i) store_vector(to + (w + i) * kTileCols + c, rows[i]);
            }
        }
    }
    // What lies past k in the last word must not count.
    const uint32_t mask = last_word_mask<W>(k);
    if (~mask && (first + words) * W::kPerWord > k)
        for (long c = 0; c < cols; ++c) to[(words - 1) * kTileCols + c] &= mask;
}

// What the columns of a right panel start from: -128 times their sums.
template <class W>
inline void start_columns(typename W::Accumulator (&start)[2], const uint32_t* panel, long words) {
    using V = typename W::Accumulator;
    start[0] = start[1] = V{};
    const V ones = V{} + 0x01010101;
    for (long w = 0; w < words; ++w, panel += kTileCols)
        for (int v = 0; v < 2; ++v) start[v] = W::step(ones, load_vector<V>(panel + v * kFloatLanes), start[v]);
    for (int v = 0; v < 2; ++v) start[v] *= -128;
}

// c[Rows][Registers] (+)= left * right over `words` k words, for Rows rows that follow each other at `block` words.
// `start` is what is added to the columns first, for words that need it.
template <class W, int Rows, int Registers>
[[gnu::noinline]] void multiply_panel(typename W::Word* const (&c)[Registers], const uint32_t* left, long block,
                                      long block_stride, const uint32_t* right, long words, bool accumulate,
                                      const typename W::Accumulator* start) {
    using V = typename W::Accumulator;
    // A load in the word's own type broadcasts from memory; through an integer register it would cost three steps.
    typedef typename W::Left Left __attribute__((may_alias));
    using Splatted = Vector<typename W::Left, kFloatLanes>;
    constexpr int lanes = kFloatLanes;
    V sum[Rows][Registers];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Registers; ++v) sum[i][v] = W::kLeftFlip != 0 ? start[v] : V{};
    if (accumulate)
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
            for (int v = 0; v < Registers; ++v) sum[i][v] += load_vector<V>(c[v] + i * 16);
    for (; words > 0; words -= block, left += block_stride) {
        const long count = words < block ? words : block;
        const Left* a = reinterpret_cast<const Left*>(left);
        for (long k = 0; k < count; ++k, ++a, right += kTileCols) {
            V b[Registers];
#pragma GCC unroll 4
            for (int v = 0; v < Registers; ++v) b[v] = load_vector<V>(right + v * lanes);
#pragma GCC unroll 16
            for (int i = 0; i < Rows; ++i) {
                const Splatted splatted = a[i * block] - Splatted{};
#pragma GCC unroll 4
                for (int v = 0; v < Registers; ++v) sum[i][v] = W::step(splatted, b[v], sum[i][v]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Registers; ++v) store_vector(c[v] + i * 16, sum[i][v]);
}

template <class V, class Word>
inline void copy_rows(Word* to, const Word* from, long rows) {
    for (long i = 0; i < rows; ++i) store_vector(to + i * 16, load_vector<V>(from + i * 16));
}

template <class W, int Registers>
inline void multiply_rows(typename W::Word* const (&c)[Registers], const LeftPanels& left, long left_rows, long rows,
                          long first_word, const uint32_t* right, long words, bool accumulate,
                          const typename W::Accumulator* start) {
    using V = typename W::Accumulator;
    typename W::Word scratch[Registers][kTileRows * 16];  // takes the rows of the last group that c does not have
    const long skip = first_word / left.block * left.block_stride;
    for (long r = 0; r < rows;) {
        typename W::Word* at[Registers];
        for (int v = 0; v < Registers; ++v) at[v] = c[v] + r * 16;
        const uint32_t* const from = left.row(r) + skip;
        const bool full =
            r + kTileRows <= left_rows && rows - r > 2 && r % left.box_lines + kTileRows <= left.box_lines;
        if (full) {
            const bool partial = rows - r < kTileRows;
            for (int v = 0; partial && v < Registers; ++v) {
                copy_rows<V>(scratch[v], at[v], rows - r);
                at[v] = scratch[v];
            }
            multiply_panel<W, kTileRows, Registers>(at, from, left.block, left.block_stride, right, words, accumulate,
                                                    start);
            for (int v = 0; partial && v < Registers; ++v) copy_rows<V>(c[v] + r * 16, scratch[v], rows - r);
            r += kTileRows;
        } else {
            multiply_panel<W, 1, Registers>(at, from, left.block, left.block_stride, right, words, accumulate, start);
            ++r;
        }
    }
}

// c (+)= a * b, where column j of c starts at c + (j / 16) * panel_stride + j % 16 and rows are 16 elements apart.
template <class TA, class TB, class C>
[[gnu::noinline]] void multiply(C* c, long panel_stride, const TA* a, const LineLayout& al, long a_rows, const TB* b,
                                const LineLayout& bl, long m, long n, long k, bool accumulate) {
    using W = WordsOf<TA, TB>;
    static_assert(std::is_same_v<C, typename W::Word>, "accumulators are float, or int32_t for integer operands");
    if (m <= 0 || n <= 0) return;
    constexpr long per_word = W::kPerWord;
    const long words = (k + per_word - 1) / per_word;
    // What lies past k in the last word must not meet the zeros of the right side: it may be NaN.
    const bool direct = W::template kStored<TA> && !al.by_column && al.run < kUnbounded &&
                        kPanelWords * per_word % al.run == 0 && al.line_stride == al.run &&
                        k % per_word == 0;
    const long left_size = direct ? 0 : left_words(m, words);
    const long block_words = kPanelWords < words ? kPanelWords : (words + 7) / 8 * 8;
    uint32_t* const memory = reinterpret_cast<uint32_t*>(workspace((left_size + block_words * kTileCols) * 4));
    LeftPanels left{reinterpret_cast<const uint32_t*>(a), al.run / per_word,         al.run_stride / per_word,
                    al.box_lines,                         al.line_stride / per_word, al.box_stride / per_word};
    long left_rows = a_rows;
    if (!direct) {
        left = pack_left<W>(memory + block_words * kTileCols, a, al, m, k);
        left_rows = (m + kTileRows - 1) / kTileRows * kTileRows;
    }
    for (long col = 0; col < n; col += kTileCols) {
        const long cols = n - col < kTileCols ? n - col : kTileCols;
        for (long first = 0; first < words || first == 0; first += kPanelWords) {
            const long part = words - first < kPanelWords ? words - first : kPanelWords;
            // Whole groups of eight columns: the physical columns of a boxed tile come in sixteens.
            pack_right<W>(memory, b, bl, first, part, col, (cols + 7) / 8 * 8, k);
            typename W::Accumulator start[2];
            if constexpr (W::kLeftFlip != 0) start_columns<W>(start, memory, part);
            const bool keep = accumulate || first > 0;
            const auto column = [&](long j) { return c + (j / 16) * panel_stride + j % 16; };
            if (cols > kFloatLanes) {
                C* const at[2] = {column(col), column(col + kFloatLanes)};
                multiply_rows<W, 2>(at, left, left_rows, m, first, memory, part, keep, start);
            } else {
                C* const at[1] = {column(col)};
                multiply_rows<W, 1>(at, left, left_rows, m, first, memory, part, keep, start);
            }
        }
    }
}

}  // namespace pto::isa
