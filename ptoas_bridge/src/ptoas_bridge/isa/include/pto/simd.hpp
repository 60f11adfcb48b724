// Vectors of the machine's widest registers (compiler vector extensions) and how each element type enters them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "types.hpp"

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

// half <-> float, one register of floats at a time.
[[gnu::always_inline]] inline FloatVector floats_from_halves(const half* from) {
#if PTO_AVX512 && !defined(__clang__)
    using Halves = Vector<short, 16>;
    return __builtin_ia32_vcvtph2ps512_mask(load_vector<Halves>(from), FloatVector{}, 0xffff, 4);
#elif defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
    using Halves = Vector<short, 8>;
    return __builtin_ia32_vcvtph2ps256(load_vector<Halves>(from));
#else
    return __builtin_convertvector((load_vector<Vector<half, kFloatLanes>>(from)), FloatVector);
#endif
}
[[gnu::always_inline]] inline void halves_from_floats(half* to, FloatVector value) {
#if PTO_AVX512 && !defined(__clang__)
    using Halves = Vector<short, 16>;
    store_vector(to, __builtin_ia32_vcvtps2ph512_mask(value, 0, Halves{}, 0xffff));
#elif defined(__F16C__) && defined(__AVX__) && !defined(__clang__)
    store_vector(to, __builtin_ia32_vcvtps2ph256(value, 0));
#else
    store_vector(to, __builtin_convertvector(value, Vector<half, kFloatLanes>));
#endif
}

[[gnu::always_inline]] inline FloatVector floats_from_bfloat16(const bfloat16_t* from) {
    return (FloatVector)(__builtin_convertvector(load_vector<ShortVector>(from), UIntVector) << 16);
}
[[gnu::always_inline]] inline void bfloat16_from_floats(bfloat16_t* to, FloatVector value) {
    const UIntVector bits = (UIntVector)value;
    const UIntVector rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const UIntVector quiet = (bits >> 16) | 0x40;
    const UIntVector chosen = (value != value) ? quiet : rounded;
    store_vector(to, __builtin_convertvector(chosen, ShortVector));
}

// Packet<T>: the register type in which elements of T are computed, and its loads and stores. 16-bit and 8-bit floats
// compute in float and round on every store.
template <class T>
struct Packet {
    static constexpr bool kWidened = kIsFloating<T> && !std::is_same_v<T, float> && !std::is_same_v<T, double>;
    static constexpr int kLanes = kWidened ? kFloatLanes : kVectorBytes / static_cast<int>(sizeof(T));
    using Lane = std::conditional_t<kWidened, float, T>;
    using V = Vector<Lane, kLanes>;

    [[gnu::always_inline]] static V load(const T* from) {
        if constexpr (std::is_same_v<T, half>) {
            return floats_from_halves(from);
        } else if constexpr (std::is_same_v<T, bfloat16_t>) {
            return floats_from_bfloat16(from);
        } else if constexpr (kWidened) {
            V value{};
            for (int i = 0; i < kLanes; ++i) value[i] = static_cast<float>(from[i]);
            return value;
        } else {
            return load_vector<V>(from);
        }
    }
    [[gnu::always_inline]] static void store(T* to, V value) {
        if constexpr (std::is_same_v<T, half>) {
            halves_from_floats(to, value);
        } else if constexpr (std::is_same_v<T, bfloat16_t>) {
            bfloat16_from_floats(to, value);
        } else if constexpr (kWidened) {
            for (int i = 0; i < kLanes; ++i) to[i] = T(float(value[i]));
        } else {
            store_vector(to, value);
        }
    }
    [[gnu::always_inline]] static V splat(Lane value) { return V{} + value; }

    // The first `count` (< kLanes) elements; other lanes hold `fill`.
    static V load_part(const T* from, long count, T fill = T(0)) {
        T lanes[kLanes];
        for (int i = 0; i < kLanes; ++i) lanes[i] = fill;
        for (long i = 0; i < count; ++i) lanes[i] = from[i];
        return load(lanes);
    }
    static void store_part(T* to, V value, long count) {
        T lanes[kLanes];
        store(lanes, value);
        for (long i = 0; i < count; ++i) to[i] = lanes[i];
    }
};

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
