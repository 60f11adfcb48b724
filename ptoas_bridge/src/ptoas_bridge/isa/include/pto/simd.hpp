// Vectors of the machine's widest registers (compiler vector extensions) and how each element type enters them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "types.hpp"

// Vectors wider than a register occur only inside functions that are always inlined: no ABI is involved.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace pto::isa {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define PTO_AVX512 1
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
#define PTO_AVX512 0
inline constexpr int kVectorBytes = 32;
#else
#define PTO_AVX512 0
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kFloatLanes = kVectorBytes / 4;

template <class T, int Lanes>
struct VectorOf {
    typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
template <class T, int Lanes>
using Vector = typename VectorOf<T, Lanes>::type;

using FloatVector = Vector<float, kFloatLanes>;
using IntVector = Vector<int32_t, kFloatLanes>;
using UIntVector = Vector<uint32_t, kFloatLanes>;
using ShortVector = Vector<uint16_t, kFloatLanes>;

template <class V>
[[gnu::always_inline]] inline V load_vector(const void* from) {
    V value;
    __builtin_memcpy(&value, from, sizeof(V));
    return value;
}
template <class V>
[[gnu::always_inline]] inline void store_vector(void* to, V value) {
    __builtin_memcpy(to, &value, sizeof(V));
}

// The first `count` elements of memory, the other lanes from `rest`; and a store of the first `count` lanes.
template <class V>
[[gnu::always_inline]] inline V load_first(const void* from, long count, V rest) {
#if PTO_AVX512 && !defined(__clang__)
    constexpr int size = sizeof(rest[0]);
    [[maybe_unused]] const uint64_t mask = (uint64_t{1} << count) - 1;
    if constexpr (sizeof(V) == 64 && size == 4)
        return (V)__builtin_ia32_loaddqusi512_mask(static_cast<const int*>(from), (Vector<int, 16>)rest,
                                                   uint16_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 8)
        return (V)__builtin_ia32_loaddqudi512_mask(static_cast<const long long*>(from), (Vector<long long, 8>)rest,
                                                   uint8_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 2)
        return (V)__builtin_ia32_loaddquhi512_mask(static_cast<const short*>(from), (Vector<short, 32>)rest,
                                                   uint32_t(mask));
    else if constexpr (sizeof(V) == 32 && size == 2)
        return (V)__builtin_ia32_loaddquhi256_mask(static_cast<const short*>(from), (Vector<short, 16>)rest,
                                                   uint16_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 1)
        return (V)__builtin_ia32_loaddquqi512_mask(static_cast<const char*>(from), (Vector<char, 64>)rest, mask);
#endif
    __builtin_memcpy(&rest, from, count * sizeof(rest[0]));
    return rest;
}
template <class V>
[[gnu::always_inline]] inline void store_first(void* to, V value, long count) {
#if PTO_AVX512 && !defined(__clang__)
    constexpr int size = sizeof(value[0]);
    [[maybe_unused]] const uint64_t mask = (uint64_t{1} << count) - 1;
    if constexpr (sizeof(V) == 64 && size == 4)
        return __builtin_ia32_storedqusi512_mask(static_cast<int*>(to), (Vector<int, 16>)value, uint16_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 8)
        return __builtin_ia32_storedqudi512_mask(static_cast<long long*>(to), (Vector<long long, 8>)value,
                                                 uint8_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 2)
        return __builtin_ia32_storedquhi512_mask(static_cast<short*>(to), (Vector<short, 32>)value, uint32_t(mask));
    else if constexpr (sizeof(V) == 32 && size == 2)
        return __builtin_ia32_storedquhi256_mask(static_cast<short*>(to), (Vector<short, 16>)value, uint16_t(mask));
    else if constexpr (sizeof(V) == 64 && size == 1)
        return __builtin_ia32_storedquqi512_mask(static_cast<char*>(to), (Vector<char, 64>)value, mask);
#endif
    __builtin_memcpy(to, &value, count * sizeof(value[0]));
}

// half and bfloat16 <-> float, one register of floats at a time.
[[gnu::always_inline]] inline FloatVector floats_from_halves(ShortVector bits) {
#if PTO_AVX512 && !defined(__clang__)
    return __builtin_ia32_vcvtph2ps512_mask((Vector<short, 16>)bits, FloatVector{}, 0xffff, 4);
#elif defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
    return __builtin_ia32_vcvtph2ps256((Vector<short, 8>)bits);
#else
    return __builtin_convertvector((Vector<half, kFloatLanes>)bits, FloatVector);
#endif
}
[[gnu::always_inline]] inline ShortVector halves_from_floats(FloatVector value) {
#if PTO_AVX512 && !defined(__clang__)
    return (ShortVector)__builtin_ia32_vcvtps2ph512_mask(value, 0, Vector<short, 16>{}, 0xffff);
#elif defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
    return (ShortVector)__builtin_ia32_vcvtps2ph256(value, 0);
#else
    return (ShortVector) __builtin_convertvector(value, Vector<half, kFloatLanes>);
#endif
}
[[gnu::always_inline]] inline FloatVector floats_from_bfloat16(ShortVector bits) {
    return (FloatVector)(__builtin_convertvector(bits, UIntVector) << 16);
}
[[gnu::always_inline]] inline ShortVector bfloat16_from_floats(FloatVector value) {
    const UIntVector bits = (UIntVector)value;
    const UIntVector rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const UIntVector quiet = (bits >> 16) | 0x40;
    const UIntVector chosen = (value != value) ? quiet : rounded;
    return __builtin_convertvector(chosen, ShortVector);
}

// Packet<T>: the register type in which elements of T are computed, and its loads and stores. 16-bit and 8-bit floats
// compute in float and round on every store.
template <class T>
struct Packet {
    static constexpr bool kWidened = kIsFloating<T> && !std::is_same_v<T, float> && !std::is_same_v<T, double>;
    static constexpr int kLanes = kWidened ? kFloatLanes : kVectorBytes / static_cast<int>(sizeof(T));
    using Lane = std::conditional_t<kWidened, float, T>;
    using V = Vector<Lane, kLanes>;
    using Stored =
        std::conditional_t<!kWidened, V, std::conditional_t<sizeof(T) == 2, ShortVector, Vector<uint8_t, kFloatLanes>>>;

    [[gnu::always_inline]] static V load(const T* from) { return widen(load_vector<Stored>(from)); }
    [[gnu::always_inline]] static void store(T* to, V value) { store_vector(to, narrow(value)); }
    // Subtracting zero keeps -0.0, unlike adding it, and costs no instruction.
    [[gnu::always_inline]] static V splat(Lane value) { return value - V{}; }

    // The first `count` (< kLanes) elements; other lanes hold `fill`.
    [[gnu::always_inline]] static V load_part(const T* from, long count, Lane fill = Lane(0)) {
        return widen(load_first(from, count, narrow(splat(fill))));
    }
    [[gnu::always_inline]] static void store_part(T* to, V value, long count) { store_first(to, narrow(value), count); }

private:
    [[gnu::always_inline]] static V widen(Stored stored) {
        if constexpr (std::is_same_v<T, half>) {
            return floats_from_halves(stored);
        } else if constexpr (std::is_same_v<T, bfloat16_t>) {
            return floats_from_bfloat16(stored);
        } else if constexpr (kWidened) {
            V value{};
            for (int i = 0; i < kLanes; ++i) value[i] = static_cast<float>(bit_cast<T>(uint8_t(stored[i])));
            return value;
        } else {
            return stored;
        }
    }
    [[gnu::always_inline]] static Stored narrow(V value) {
        if constexpr (std::is_same_v<T, half>) {
            return halves_from_floats(value);
        } else if constexpr (std::is_same_v<T, bfloat16_t>) {
            return bfloat16_from_floats(value);
        } else if constexpr (kWidened) {
            Stored stored{};
            for (int i = 0; i < kLanes; ++i) stored[i] = bit_cast<uint8_t>(T(float(value[i])));
            return stored;
        } else {
            return value;
        }
    }
};

// a > b ? a : b and a < b ? a : b in one instruction where compilers do not find it: b when one of them is a NaN.
template <class V>
[[gnu::always_inline]] inline V larger(V a, V b) {
#if PTO_AVX512 && !defined(__clang__)
    if constexpr (std::is_same_v<V, FloatVector>) return __builtin_ia32_maxps512_mask(a, b, a, 0xffff, 4);
#elif defined(__AVX__) && !defined(__clang__)
    if constexpr (std::is_same_v<V, FloatVector>) return __builtin_ia32_maxps256(a, b);
#endif
    return a > b ? a : b;
}
template <class V>
[[gnu::always_inline]] inline V lesser(V a, V b) {
#if PTO_AVX512 && !defined(__clang__)
    if constexpr (std::is_same_v<V, FloatVector>) return __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4);
#elif defined(__AVX__) && !defined(__clang__)
    if constexpr (std::is_same_v<V, FloatVector>) return __builtin_ia32_minps256(a, b);
#endif
    return a < b ? a : b;
}

// Whether every lane of a comparison result is set.
template <class M>
[[gnu::always_inline]] inline bool all_lanes(M mask) {
    uint64_t parts[sizeof(M) / 8];
    __builtin_memcpy(parts, &mask, sizeof(M));
    uint64_t all = parts[0];
    for (uint64_t part : parts) all &= part;
    return all == ~uint64_t{0};
}

// a * b + c with one rounding where the machine can, whatever the contraction flags of the build.
[[gnu::always_inline]] inline FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if PTO_AVX512 && !defined(__clang__)
    return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xffff, 4);
#elif defined(__FMA__) && !defined(__clang__)
    return __builtin_ia32_vfmaddps256(a, b, c);
#elif defined(__clang__) && defined(__FMA__)
    return __builtin_elementwise_fma(a, b, c);
#else
    return a * b + c;
#endif
}

}  // namespace pto::isa
