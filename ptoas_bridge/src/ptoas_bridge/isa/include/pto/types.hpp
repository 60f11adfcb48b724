// Element types of tiles: half, bfloat16 and the 8-bit and 4-bit formats, with their scalar conversions.
#pragma once
#include <cstdint>
#include <type_traits>

#include "error.hpp"

using half = _Float16;

namespace pto::isa {

template <class To, class From>
inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast needs types of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(to));
    return to;
}

inline float float_from_bfloat16_bits(uint16_t bits) { return bit_cast<float>(uint32_t{bits} << 16); }

inline uint16_t bfloat16_bits(float value) {
    const uint32_t bits = bit_cast<uint32_t>(value);
    if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace pto::isa

// Upper half of an IEEE single; arithmetic happens in float and each result is rounded to nearest even.
struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>, int> = 0>
    bfloat16_t(T value) : bits(pto::isa::bfloat16_bits(static_cast<float>(value))) {}
    operator float() const { return pto::isa::float_from_bfloat16_bits(bits); }
    bfloat16_t& operator+=(float other) { return *this = bfloat16_t(float(*this) + other); }
    bfloat16_t& operator-=(float other) { return *this = bfloat16_t(float(*this) - other); }
    bfloat16_t& operator*=(float other) { return *this = bfloat16_t(float(*this) * other); }
    bfloat16_t& operator/=(float other) { return *this = bfloat16_t(float(*this) / other); }
};

namespace pto::isa {

// One decoded step of a small float format: value = (-1)^sign * mantissa * 2^exponent.
constexpr float power_of_two(int exponent) {
    float value = 1.0f;
    for (; exponent > 0; --exponent) value *= 2.0f;
    for (; exponent < 0; ++exponent) value *= 0.5f;
    return value;
}

constexpr float kInfinity = __builtin_huge_valf();

constexpr float decode_e4m3(uint8_t code) {
    const int exponent = (code >> 3) & 15, mantissa = code & 7;
    float value = 0;
    if (exponent == 15 && mantissa == 7)
        value = __builtin_nanf("");
    else if (exponent == 0)
        value = static_cast<float>(mantissa) * power_of_two(-9);
    else
        value = static_cast<float>(8 + mantissa) * power_of_two(exponent - 10);
    return (code & 0x80) ? -value : value;
}

constexpr float decode_e5m2(uint8_t code) {
    const int exponent = (code >> 2) & 31, mantissa = code & 3;
    float value = 0;
    if (exponent == 31)
        value = mantissa ? __builtin_nanf("") : kInfinity;
    else if (exponent == 0)
        value = static_cast<float>(mantissa) * power_of_two(-16);
    else
        value = static_cast<float>(4 + mantissa) * power_of_two(exponent - 17);
    return (code & 0x80) ? -value : value;
}

constexpr float decode_e8m0(uint8_t code) { return code == 255 ? __builtin_nanf("") : power_of_two(code - 127); }

// HiFloat8: a prefix code (the dot field) says how many exponent bits follow; the rest is mantissa.
constexpr float decode_hif8(uint8_t code) {
    const int body = code & 0x7f;
    if (code == 0x80) return __builtin_nanf("");
    if (body == 0x6f) return (code & 0x80) ? -kInfinity : kInfinity;
    int exponent_bits = 0, mantissa_bits = 3, field = 0;
    if (body & 0x40) {
        exponent_bits = (body & 0x20) ? 4 : 3;
        mantissa_bits = (body & 0x20) ? 1 : 2;
    } else if (body & 0x20) {
        exponent_bits = 2;
    } else if (body & 0x10) {
        exponent_bits = 1;
    } else if ((body & 0x08) == 0) {
        const int mantissa = body & 7;
        const float value = mantissa ? power_of_two(mantissa - 23) : 0.0f;
        return (code & 0x80) ? -value : value;
    }
    field = (body >> mantissa_bits) & ((1 << exponent_bits) - 1);
    int exponent = 0;
    if (exponent_bits > 0) {
        const int sign = field >> (exponent_bits - 1);
        const int magnitude = (1 << (exponent_bits - 1)) | (field & ((1 << (exponent_bits - 1)) - 1));
        exponent = sign ? -magnitude : magnitude;
    }
    const float fraction =
        static_cast<float>(body & ((1 << mantissa_bits) - 1)) / static_cast<float>(1 << mantissa_bits);
    const float value = (1.0f + fraction) * power_of_two(exponent);
    return (code & 0x80) ? -value : value;
}

constexpr float decode_e2m1(uint8_t code) {
    constexpr float values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return (code & 8) ? -values[code & 7] : values[code & 7];
}
constexpr float decode_e1m2(uint8_t code) {
    const float value = static_cast<float>(code & 7) * 0.25f;
    return (code & 8) ? -value : value;
}

// Nearest code with ties to the even mantissa; `limit` is the largest finite magnitude (overflow saturates to it unless
// `overflow` names a code), `mantissa_bits` and `least_exponent` give the spacing of the format.
inline float round_to_format(float magnitude, int mantissa_bits, int least_exponent) {
    int exponent = static_cast<int>((bit_cast<uint32_t>(magnitude) >> 23) & 255) - 127;
    if (exponent < least_exponent) exponent = least_exponent;
    const float step = bit_cast<float>(static_cast<uint32_t>(exponent - mantissa_bits + 127) << 23);
    return __builtin_rintf(magnitude / step) * step;
}

inline uint8_t encode_e4m3(float value) {
    const uint8_t sign = static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 24) & 0x80);
    if (value != value) return sign | 0x7f;
    const float magnitude = round_to_format(__builtin_fabsf(value), 3, -6);
    if (!(magnitude < 448.0f)) return sign | 0x7e;
    if (magnitude < 0.015625f) return sign | static_cast<uint8_t>(magnitude * 512.0f);
    const uint32_t bits = bit_cast<uint32_t>(magnitude);
    return sign | static_cast<uint8_t>((((bits >> 23) - 120) << 3) | ((bits >> 20) & 7));
}

inline uint8_t encode_e5m2(float value) {
    const uint8_t sign = static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 24) & 0x80);
    if (value != value) return sign | 0x7f;
    const float magnitude = round_to_format(__builtin_fabsf(value), 2, -14);
    if (magnitude > 57344.0f) return sign | 0x7c;
    if (magnitude < 6.103515625e-05f) return sign | static_cast<uint8_t>(magnitude * 65536.0f);
    const uint32_t bits = bit_cast<uint32_t>(magnitude);
    return sign | static_cast<uint8_t>((((bits >> 23) - 112) << 2) | ((bits >> 21) & 3));
}

inline uint8_t encode_e8m0(float value) {
    if (value != value) return 255;
    return static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 23) & 255);
}

// Formats without a closed form: the nearest of the codes 0..count-1 (ascending magnitudes), ties to the even code.
template <float (*Decode)(uint8_t)>
inline uint8_t nearest_code(float magnitude, int count) {
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (Decode(static_cast<uint8_t>(middle)) <= magnitude)
            low = middle;
        else
            high = middle - 1;
    }
    if (low == count - 1) return static_cast<uint8_t>(low);
    const float below = magnitude - Decode(static_cast<uint8_t>(low));
    const float above = Decode(static_cast<uint8_t>(low + 1)) - magnitude;
    return static_cast<uint8_t>(below < above || (below == above && low % 2 == 0) ? low : low + 1);
}

inline uint8_t encode_hif8(float value) {
    if (value != value) return 0x80;
    const uint8_t sign = static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 24) & 0x80);
    const float magnitude = __builtin_fabsf(value);
    // 40960 lies half way between the largest number and what would be the next one, whose code means infinity.
    if (magnitude >= 40960.0f) return sign | 0x6f;
    // Magnitudes do not ascend with the code: search all of them, half away from zero on ties.
    int best = 0;
    float best_distance = magnitude;
    for (int code = 1; code < 0x80; ++code) {
        if (code == 0x6f) continue;
        const float candidate = decode_hif8(static_cast<uint8_t>(code));
        const float distance = __builtin_fabsf(candidate - magnitude);
        if (distance < best_distance || (distance == best_distance && candidate > decode_hif8(uint8_t(best)))) {
            best = code;
            best_distance = distance;
        }
    }
    return best == 0 ? 0 : static_cast<uint8_t>(sign | best);
}

inline uint8_t encode_e2m1(float value) {
    const uint8_t sign = static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 28) & 8);
    return sign | (value != value ? 7 : nearest_code<decode_e2m1>(__builtin_fabsf(value), 8));
}
inline uint8_t encode_e1m2(float value) {
    const uint8_t sign = static_cast<uint8_t>((bit_cast<uint32_t>(value) >> 28) & 8);
    return sign | (value != value ? 7 : nearest_code<decode_e1m2>(__builtin_fabsf(value), 8));
}

// A one-byte float: storage plus conversions through float.
template <float (*Decode)(uint8_t), uint8_t (*Encode)(float)>
struct ByteFloat {
    uint8_t bits;
    ByteFloat() = default;
    template <class T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>, int> = 0>
    ByteFloat(T value) : bits(Encode(static_cast<float>(value))) {}
    operator float() const { return Decode(bits); }
};

// Two 4-bit floats in a byte: the even element is the low nibble.
template <float (*Decode)(uint8_t), uint8_t (*Encode)(float)>
struct NibblePair {
    uint8_t bits;
    NibblePair() = default;
    explicit NibblePair(uint8_t code) : bits(code) {}
    float low() const { return Decode(bits & 15); }
    float high() const { return Decode(bits >> 4); }
    static NibblePair pack(float low, float high) {
        return NibblePair(static_cast<uint8_t>(Encode(low) | (Encode(high) << 4)));
    }
};

}  // namespace pto::isa

using float8_e4m3_t = pto::isa::ByteFloat<pto::isa::decode_e4m3, pto::isa::encode_e4m3>;
using float8_e5m2_t = pto::isa::ByteFloat<pto::isa::decode_e5m2, pto::isa::encode_e5m2>;
using float8_e8m0_t = pto::isa::ByteFloat<pto::isa::decode_e8m0, pto::isa::encode_e8m0>;
using hifloat8_t = pto::isa::ByteFloat<pto::isa::decode_hif8, pto::isa::encode_hif8>;
using float4_e2m1x2_t = pto::isa::NibblePair<pto::isa::decode_e2m1, pto::isa::encode_e2m1>;
using float4_e1m2x2_t = pto::isa::NibblePair<pto::isa::decode_e1m2, pto::isa::encode_e1m2>;

namespace pto::isa {

template <class T>
inline constexpr bool kIsPair = std::is_same_v<T, float4_e2m1x2_t> || std::is_same_v<T, float4_e1m2x2_t>;
template <class T>
inline constexpr bool kIsByteFloat = std::is_same_v<T, float8_e4m3_t> || std::is_same_v<T, float8_e5m2_t> ||
                                     std::is_same_v<T, float8_e8m0_t> || std::is_same_v<T, hifloat8_t>;
template <class T>
inline constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> || kIsByteFloat<T>;

// Greatest and least values used for padding and empty reductions: infinities where the format has them.
template <class T>
inline T greatest() {
    if constexpr (std::is_same_v<T, float8_e4m3_t>)
        return T(448.0f);
    else if constexpr (kIsFloating<T>)
        return static_cast<T>(kInfinity);
    else
        return static_cast<T>(std::is_signed_v<T> ? (1ull << (sizeof(T) * 8 - 1)) - 1 : ~0ull);
}
template <class T>
inline T least() {
    if constexpr (std::is_same_v<T, float8_e4m3_t>)
        return T(-448.0f);
    else if constexpr (kIsFloating<T>)
        return static_cast<T>(-kInfinity);
    else
        return static_cast<T>(std::is_signed_v<T> ? 1ull << (sizeof(T) * 8 - 1) : 0ull);
}

// Scalar conversion between any two element types: C rules, integers wrap, floats round to nearest even.
template <class To, class From>
inline To scalar_cast(From value) {
    if constexpr (std::is_same_v<To, From>)
        return value;
    else if constexpr (kIsFloating<From> && !std::is_floating_point_v<From>)
        return static_cast<To>(static_cast<float>(value));
    else
        return static_cast<To>(value);
}

}  // namespace pto::isa
