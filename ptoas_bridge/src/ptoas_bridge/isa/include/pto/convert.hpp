// TCVT: conversion between element types with a rounding mode and a saturation mode.
#pragma once
#include "line_layout.hpp"
#include "unary.hpp"

namespace pto {
namespace isa {

// Floats to integral floats. Beyond 2^23 a float is integral already.
template <RoundMode Mode>
[[gnu::always_inline]] inline FloatVector round_with(FloatVector a) {
    const FloatVector magnitude = Absolute()(a);
    const auto fractional = magnitude < 8388608.0f;
    const IntVector sign = (IntVector)a & static_cast<int32_t>(0x80000000u);
    const FloatVector inside = fractional ? a : FloatVector{};
    const FloatVector whole = __builtin_convertvector(__builtin_convertvector(inside, IntVector), FloatVector);
    const FloatVector one = (FloatVector)(sign | 0x3f800000);
    FloatVector result;
    if constexpr (Mode == RoundMode::CAST_FLOOR) {
        result = whole - (whole > inside ? splat(1.0f) : FloatVector{});
    } else if constexpr (Mode == RoundMode::CAST_CEIL) {
        result = whole + (whole < inside ? splat(1.0f) : FloatVector{});
    } else if constexpr (Mode == RoundMode::CAST_ROUND) {
        result = whole + (Absolute()(inside - whole) >= 0.5f ? one : FloatVector{});
    } else if constexpr (Mode == RoundMode::CAST_TRUNC || Mode == RoundMode::CAST_NONE) {
        result = whole;
    } else {
        const FloatVector even = (magnitude + 8388608.0f) - 8388608.0f;
        result = (FloatVector)((IntVector)even | sign);
        if constexpr (Mode == RoundMode::CAST_ODD) {
            // An exact half goes to the odd neighbour: of `whole` and `whole + one` the one that is not even.
            const auto half_way = Absolute()(inside - whole) == 0.5f;
            const auto whole_is_odd = (__builtin_convertvector(whole, IntVector) & 1) != 0;
            const FloatVector odd = whole_is_odd ? whole : (FloatVector)(whole + one);
            result = half_way ? odd : result;
        }
    }
    // Keep the sign of zero, and values that were integral, infinite or NaN.
    return fractional ? (FloatVector)((IntVector)result | sign) : a;
}

template <RoundMode Mode>
inline double round_double(double a) {
    switch (Mode) {
        case RoundMode::CAST_FLOOR:
            return __builtin_floor(a);
        case RoundMode::CAST_CEIL:
            return __builtin_ceil(a);
        case RoundMode::CAST_ROUND:
            return __builtin_round(a);
        case RoundMode::CAST_TRUNC:
        case RoundMode::CAST_NONE:
            return __builtin_trunc(a);
        case RoundMode::CAST_ODD: {
            const double whole = __builtin_trunc(a);
            if (__builtin_fabs(a - whole) != 0.5) return __builtin_rint(a);
            const bool odd = __builtin_fmod(whole, 2.0) != 0.0;
            return odd ? whole : whole + __builtin_copysign(1.0, a);
        }
        default:
            return __builtin_rint(a);
    }
}

// Integral floats to integers: out of range saturates, NaN becomes 0.
template <class D>
[[gnu::always_inline]] inline void store_saturated(D* to, FloatVector value) {
    const FloatVector number = (value == value) ? value : FloatVector{};
    if constexpr (sizeof(D) <= 2) {
        const FloatVector low = splat(static_cast<float>(least<D>())), high = splat(static_cast<float>(greatest<D>()));
        FloatVector clamped = number < low ? low : number;
        clamped = clamped > high ? high : clamped;
        store_vector(to, __builtin_convertvector(__builtin_convertvector(clamped, IntVector), Vector<D, kFloatLanes>));
    } else if constexpr (std::is_same_v<D, int32_t>) {
        const auto over = number >= 2147483648.0f, under = number < -2147483648.0f;
        const IntVector inside = __builtin_convertvector((over | under) ? FloatVector{} : number, IntVector);
        const IntVector limit = over ? (IntVector{} + 2147483647) : (IntVector{} + static_cast<int32_t>(0x80000000u));
        store_vector(to, (over | under) ? limit : inside);
    } else {
        for (int i = 0; i < kFloatLanes; ++i) {
            const float x = number[i];
            const float low = static_cast<float>(least<D>()), high = static_cast<float>(greatest<D>());
            to[i] = x <= low ? least<D>() : x >= high ? greatest<D>() : static_cast<D>(x);
        }
    }
}

// Integers to narrower integers wrap, or clamp when saturation is on.
template <class D, class S>
inline D convert_integer(S value, bool saturate) {
    if (saturate) {
        if constexpr (std::is_signed_v<S> == std::is_signed_v<D>) {
            if constexpr (sizeof(D) < sizeof(S))
                return value < S(least<D>()) ? least<D>() : value > S(greatest<D>()) ? greatest<D>() : D(value);
        } else if constexpr (std::is_signed_v<S>) {
            if (value < 0) return D(0);
            if constexpr (sizeof(D) < sizeof(S)) return value > S(greatest<D>()) ? greatest<D>() : D(value);
        } else {
            if constexpr (sizeof(D) <= sizeof(S)) return value > S(greatest<D>()) ? greatest<D>() : D(value);
        }
    }
    return static_cast<D>(value);
}

// One register of elements, at least kFloatLanes of them readable and writable.
template <class D, class S, RoundMode Mode>
[[gnu::always_inline]] inline void convert_lanes(D* to, const S* from, bool saturate) {
    if constexpr (kIsFloating<S> && kIsFloating<D>) {
        const FloatVector value = Packet<S>::load(from);
        // Only float -> float rounds to integral values; between formats the mode has no say.
        if constexpr (std::is_same_v<S, D>)
            Packet<D>::store(to, Mode == RoundMode::CAST_NONE ? value : round_with<Mode>(value));
        else
            Packet<D>::store(to, value);
    } else if constexpr (kIsFloating<S>) {
        store_saturated(to, round_with<Mode>(Packet<S>::load(from)));
    } else if constexpr (kIsFloating<D>) {
        using Lanes = Vector<S, kFloatLanes>;
        Packet<D>::store(to, __builtin_convertvector(load_vector<Lanes>(from), FloatVector));
    } else if (!saturate || sizeof(D) > sizeof(S)) {
        using From = Vector<S, kFloatLanes>;
        using To = Vector<D, kFloatLanes>;
        store_vector(to, __builtin_convertvector(load_vector<From>(from), To));
    } else {
        for (int i = 0; i < kFloatLanes; ++i) to[i] = convert_integer<D>(from[i], true);
    }
}

template <class D, class S, RoundMode Mode>
[[gnu::noinline]] void convert_lines(D* to, long to_pitch, const S* from, long from_pitch, long lines, long length,
                                     bool saturate) {
    if (to_pitch == length && from_pitch == length) {
        length *= lines;
        lines = lines > 0;
    }
    for (; lines > 0; --lines, to += to_pitch, from += from_pitch) {
        long i = 0;
        for (; i + kFloatLanes <= length; i += kFloatLanes) convert_lanes<D, S, Mode>(to + i, from + i, saturate);
        if (i < length) {
            S source[kFloatLanes] = {};
            D target[kFloatLanes];
            __builtin_memcpy(source, from + i, (length - i) * sizeof(S));
            convert_lanes<D, S, Mode>(target, source, saturate);
            __builtin_memcpy(to + i, target, (length - i) * sizeof(D));
        }
    }
}

// Pairs of 4-bit floats to and from bfloat16: twice as many columns on the wide side.
template <class D, class S>
inline void convert_pairs(D& dst, S& src) {
    using TD = typename D::DType;
    using TS = typename S::DType;
    if constexpr (kIsPair<TS>) {
        for (long i = 0; i < dst.GetValidRow(); ++i)
            for (long j = 0; j < dst.GetValidCol(); ++j) {
                const TS pair = src.data()[S::offset(i, j / 2)];
                dst.data()[D::offset(i, j)] = static_cast<TD>(j % 2 ? pair.high() : pair.low());
            }
    } else {
        for (long i = 0; i < dst.GetValidRow(); ++i)
            for (long j = 0; j < dst.GetValidCol(); ++j)
                dst.data()[D::offset(i, j)] = TD::pack(static_cast<float>(src.data()[S::offset(i, 2 * j)]),
                                                       static_cast<float>(src.data()[S::offset(i, 2 * j + 1)]));
    }
}

template <RoundMode Mode, class D, class S>
void convert_tile(D& dst, S& src, bool saturate) {
    using TD = typename D::DType;
    using TS = typename S::DType;
    if constexpr (D::isBoxedLayout || S::isBoxedLayout || D::isRowMajor != S::isRowMajor) {
        for (long i = 0; i < dst.GetValidRow(); ++i)
            for (long j = 0; j < dst.GetValidCol(); ++j)
                convert_lines<TD, TS, Mode>(dst.data() + D::offset(i, j), 1, src.data() + S::offset(i, j), 1, 1, 1,
                                            saturate);
    } else {
        const long lines = D::isRowMajor ? dst.GetValidRow() : dst.GetValidCol();
        const long length = D::isRowMajor ? dst.GetValidCol() : dst.GetValidRow();
        long from_pitch = line_pitch<S>();
        const TS* from = src.data();
        const auto* first = reinterpret_cast<const unsigned char*>(from);
        const auto* target = reinterpret_cast<const unsigned char*>(dst.data());
        if (sizeof(TD) > sizeof(TS) && lines > 0 && target < first + (lines * from_pitch) * sizeof(TS) &&
            first < target + (lines * line_pitch<D>()) * sizeof(TD)) {
            // Widening in place would overwrite elements before they are read.
            TS* copy = reinterpret_cast<TS*>(workspace(lines * length * sizeof(TS)));
            copy_plain(copy, length, from, from_pitch, lines, length, CopyRun());
            from = copy;
            from_pitch = length;
        }
        convert_lines<TD, TS, Mode>(dst.data(), line_pitch<D>(), from, from_pitch, lines, length, saturate);
    }
}

template <class D, class S>
inline void convert(D& dst, S& src, RoundMode mode, SaturationMode saturation) {
    using TD = typename D::DType;
    using TS = typename S::DType;
    const bool saturate = saturation == SaturationMode::ON;
    if constexpr (kIsPair<TD> || kIsPair<TS>) {
        convert_pairs(dst, src);
    } else if constexpr (kIsFloating<TS> && (!kIsFloating<TD> || std::is_same_v<TD, TS>)) {
        switch (mode) {
            case RoundMode::CAST_RINT:
                return convert_tile<RoundMode::CAST_RINT>(dst, src, saturate);
            case RoundMode::CAST_ROUND:
                return convert_tile<RoundMode::CAST_ROUND>(dst, src, saturate);
            case RoundMode::CAST_FLOOR:
                return convert_tile<RoundMode::CAST_FLOOR>(dst, src, saturate);
            case RoundMode::CAST_CEIL:
                return convert_tile<RoundMode::CAST_CEIL>(dst, src, saturate);
            case RoundMode::CAST_ODD:
                return convert_tile<RoundMode::CAST_ODD>(dst, src, saturate);
            case RoundMode::CAST_NONE:
                return convert_tile<RoundMode::CAST_NONE>(dst, src, saturate);
            default:
                return convert_tile<RoundMode::CAST_TRUNC>(dst, src, saturate);
        }
    } else {
        convert_tile<RoundMode::CAST_RINT>(dst, src, saturate);
    }
}

}  // namespace isa

template <class D, class S>
PTO_INST RecordEvent TCVT(D& dst, S& src, RoundMode mode = RoundMode::CAST_RINT,
                          SaturationMode saturation = SaturationMode::OFF) {
    isa::convert(dst, src, mode, saturation);
    return {};
}
template <class D, class S, class Tmp, std::enable_if_t<isa::kIsTile<Tmp>, int> = 0>
PTO_INST RecordEvent TCVT(D& dst, S& src, Tmp&, RoundMode mode = RoundMode::CAST_RINT,
                          SaturationMode saturation = SaturationMode::OFF) {
    isa::convert(dst, src, mode, saturation);
    return {};
}

}  // namespace pto
