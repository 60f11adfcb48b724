// Elementwise arithmetic and bit instructions on tiles, and their forms with a scalar operand.
#pragma once
#include "map.hpp"

namespace pto {
namespace isa {

// Integers wrap: arithmetic happens in the unsigned type of the same width.
template <class V>
using Element = std::remove_cv_t<std::remove_reference_t<decltype(V{}[0])>>;
template <class V>
inline constexpr bool kFloatVector = std::is_floating_point_v<Element<V>>;
template <class V, bool = kFloatVector<V>>
struct WrappingOf {
    using type = V;
};
template <class V>
struct WrappingOf<V, false> {
    using type = Vector<std::make_unsigned_t<Element<V>>, int(sizeof(V) / sizeof(Element<V>))>;
};
template <class V>
using Wrapping = typename WrappingOf<V>::type;

struct Add {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return (V)((Wrapping<V>)a + (Wrapping<V>)b);
    }
};
struct Subtract {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return (V)((Wrapping<V>)a - (Wrapping<V>)b);
    }
};
struct Multiply {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return (V)((Wrapping<V>)a * (Wrapping<V>)b);
    }
};
// Integer division truncates; a zero divisor gives 0 instead of a trap, and least / -1 wraps.
struct Divide {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        if constexpr (kFloatVector<V>) {
            return a / b;
        } else {
            V result{};
            for (int i = 0; i < int(sizeof(V) / sizeof(Element<V>)); ++i) {
                const Element<V> x = a[i], y = b[i];
                if constexpr (std::is_signed_v<Element<V>>)
                    result[i] = y == 0 ? 0 : y == -1 ? Element<V>(0 - std::make_unsigned_t<Element<V>>(x)) : x / y;
                else
                    result[i] = y == 0 ? 0 : x / y;
            }
            return result;
        }
    }
};
// A NaN operand gives NaN.
struct Maximum {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        const V result = larger(a, b);
        if constexpr (kFloatVector<V>)
            return (a != a) ? a : result;
        else
            return result;
    }
};
struct Minimum {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        const V result = lesser(a, b);
        if constexpr (kFloatVector<V>)
            return (a != a) ? a : result;
        else
            return result;
    }
};
// C remainder, element by element. By zero: NaN for floats, 0 for integers.
template <class V>
[[gnu::noinline]] void remainder_by_element(V& result, const V& a, const V& b) {
    for (int i = 0; i < int(sizeof(V) / sizeof(Element<V>)); ++i) {
        const Element<V> x = a[i], y = b[i];
        if constexpr (std::is_same_v<Element<V>, float>)
            result[i] = __builtin_fmodf(x, y);
        else if constexpr (std::is_same_v<Element<V>, double>)
            result[i] = __builtin_fmod(x, y);
        else if constexpr (std::is_signed_v<Element<V>>)
            result[i] = (y == 0 || y == -1) ? 0 : x % y;
        else
            result[i] = y == 0 ? 0 : x % y;
    }
}
// C remainder: sign of the dividend. The whole part of a float quotient below 2^23 is exact or one too large, so one
// fused step gives the exact remainder, perhaps one divisor too low.
struct TruncatedRemainder {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
#if PTO_AVX512 || defined(__FMA__)
        if constexpr (std::is_same_v<V, FloatVector>) {
            const FloatVector x = (FloatVector)((IntVector)a & 0x7fffffff),
                              y = (FloatVector)((IntVector)b & 0x7fffffff);
            const FloatVector quotient = x / y;
            const auto simple = (quotient < 8388608.0f) & (y < kInfinity);
            if (all_lanes(simple)) {
                const FloatVector whole =
                    __builtin_convertvector(__builtin_convertvector(quotient, IntVector), FloatVector);
                const FloatVector rest = multiply_add(-whole, y, x);
                const FloatVector positive = rest < 0.0f ? rest + y : rest;
                return (FloatVector)((IntVector)positive | ((IntVector)a & static_cast<int32_t>(0x80000000u)));
            }
        }
#endif
        V result;
        remainder_by_element(result, a, b);
        return result;
    }
};
// Remainder with the sign of the divisor (Python's %).
struct FlooredRemainder {
    template <class V>
    V operator()(V a, V b) const {
        const V rest = TruncatedRemainder()(a, b);
        const V zero{};
        const auto adjust = (rest != zero) & ((rest < zero) != (b < zero));
        return adjust ? (V)((Wrapping<V>)rest + (Wrapping<V>)b) : rest;
    }
};
struct BitAnd {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return a & b;
    }
};
struct BitOr {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return a | b;
    }
};
struct BitXor {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return a ^ b;
    }
};
// Shift counts at or above the width give what an endless sequence of one-bit shifts gives; negative counts count as
// such.
struct ShiftLeft {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        constexpr Element<V> width = sizeof(Element<V>) * 8;
        const auto inside = (Wrapping<V>)b < (Wrapping<V>)(V{} + width);
        return inside ? (V)((Wrapping<V>)a << (Wrapping<V>)(b & (width - 1))) : V{};
    }
};
struct ShiftRight {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        constexpr Element<V> width = sizeof(Element<V>) * 8;
        const auto inside = (Wrapping<V>)b < (Wrapping<V>)(V{} + width);
        const V beyond = std::is_signed_v<Element<V>> ? (V)(a >> (width - 1)) : V{};
        return inside ? (V)(a >> (b & (width - 1))) : beyond;
    }
};
struct ParametricRelu {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return a > 0 ? a : a * b;
    }
};
struct AddRelu {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return Maximum()(Add()(a, b), V{});
    }
};

// Binds the second operand of `Op` to one scalar.
template <class Op, class V>
struct WithScalar {
    V scalar;
    [[gnu::always_inline]] V operator()(V a) const { return Op()(a, scalar); }
};
template <class Op, class V>
struct ScalarFirst {
    V scalar;
    [[gnu::always_inline]] V operator()(V a) const { return Op()(scalar, a); }
};

template <class T, class X>
inline typename Packet<T>::V splat_scalar(X value) {
    return Packet<T>::splat(static_cast<typename Packet<T>::Lane>(scalar_cast<T>(value)));
}

template <class Op, class D, class S, class X>
inline void map_with_scalar(D& dst, S& src, X value) {
    using T = typename D::DType;
    map(WithScalar<Op, typename Packet<T>::V>{splat_scalar<T>(value)}, dst, src);
}

}  // namespace isa

#define PTO_BINARY_TILE(NAME, OP)                                    \
    template <class D, class A, class B, class... Rest>              \
    PTO_INST RecordEvent NAME(D& dst, A& src0, B& src1, Rest&&...) { \
        isa::map(isa::OP(), dst, src0, src1);                        \
        return {};                                                   \
    }
PTO_BINARY_TILE(TADD, Add)
PTO_BINARY_TILE(TSUB, Subtract)
PTO_BINARY_TILE(TMUL, Multiply)
PTO_BINARY_TILE(TMAX, Maximum)
PTO_BINARY_TILE(TMIN, Minimum)
PTO_BINARY_TILE(TAND, BitAnd)
PTO_BINARY_TILE(TOR, BitOr)
PTO_BINARY_TILE(TXOR, BitXor)
PTO_BINARY_TILE(TSHL, ShiftLeft)
PTO_BINARY_TILE(TSHR, ShiftRight)
PTO_BINARY_TILE(TPRELU, ParametricRelu)
PTO_BINARY_TILE(TADDRELU, AddRelu)
#undef PTO_BINARY_TILE

#define PTO_BINARY_TILE_PRECISION(NAME, OP, ALGORITHM)                                            \
    template <ALGORITHM Precision = ALGORITHM::DEFAULT, class D, class A, class B, class... Rest> \
    PTO_INST RecordEvent NAME(D& dst, A& src0, B& src1, Rest&&...) {                              \
        isa::map(isa::OP(), dst, src0, src1);                                                     \
        return {};                                                                                \
    }
PTO_BINARY_TILE_PRECISION(TDIV, Divide, DivAlgorithm)
PTO_BINARY_TILE_PRECISION(TREM, FlooredRemainder, RemAlgorithm)
PTO_BINARY_TILE_PRECISION(TFMOD, TruncatedRemainder, FmodAlgorithm)
#undef PTO_BINARY_TILE_PRECISION

#define PTO_SCALAR_TILE(NAME, OP)                                    \
    template <class D, class A, class X, class... Rest>              \
    PTO_INST RecordEvent NAME(D& dst, A& src, X scalar, Rest&&...) { \
        isa::map_with_scalar<isa::OP>(dst, src, scalar);             \
        return {};                                                   \
    }
PTO_SCALAR_TILE(TADDS, Add)
PTO_SCALAR_TILE(TSUBS, Subtract)
PTO_SCALAR_TILE(TMULS, Multiply)
PTO_SCALAR_TILE(TMAXS, Maximum)
PTO_SCALAR_TILE(TMINS, Minimum)
PTO_SCALAR_TILE(TANDS, BitAnd)
PTO_SCALAR_TILE(TORS, BitOr)
PTO_SCALAR_TILE(TXORS, BitXor)
PTO_SCALAR_TILE(TSHLS, ShiftLeft)
PTO_SCALAR_TILE(TSHRS, ShiftRight)
#undef PTO_SCALAR_TILE

template <RemAlgorithm Precision = RemAlgorithm::DEFAULT, class D, class A, class X, class... Rest>
PTO_INST RecordEvent TREMS(D& dst, A& src, X scalar, Rest&&...) {
    isa::map_with_scalar<isa::FlooredRemainder>(dst, src, scalar);
    return {};
}
template <FmodAlgorithm Precision = FmodAlgorithm::DEFAULT, class D, class A, class X, class... Rest>
PTO_INST RecordEvent TFMODS(D& dst, A& src, X scalar, Rest&&...) {
    isa::map_with_scalar<isa::TruncatedRemainder>(dst, src, scalar);
    return {};
}

// TDIVS(dst, tile, scalar) or TDIVS(dst, scalar, tile).
template <DivAlgorithm Precision = DivAlgorithm::DEFAULT, class D, class A, class B, class... Rest>
PTO_INST RecordEvent TDIVS(D& dst, A&& first, B&& second, Rest&&...) {
    using T = typename D::DType;
    if constexpr (isa::kIsTile<A>)
        isa::map_with_scalar<isa::Divide>(dst, first, second);
    else
        isa::map(isa::ScalarFirst<isa::Divide, typename isa::Packet<T>::V>{isa::splat_scalar<T>(first)}, dst, second);
    return {};
}

namespace isa {

struct AddAdd {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b, V c) const {
        return Add()(Add()(a, b), c);
    }
};
struct SubtractAdd {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b, V c) const {
        return Add()(Subtract()(a, b), c);
    }
};
template <class First, class V>
struct ScalarThenAdd {
    V scalar;
    [[gnu::always_inline]] V operator()(V a, V b) const { return Add()(First()(a, scalar), b); }
};
template <class V>
struct MultiplyAddScalar {
    V scalar;
    [[gnu::always_inline]] V operator()(V dst, V src) const { return Add()(Multiply()(src, scalar), dst); }
};
// The slope stays in float whatever the element type.
template <class V>
struct LeakyRelu {
    V slope;
    [[gnu::always_inline]] V operator()(V a) const { return a > 0 ? a : a * slope; }
};

}  // namespace isa

template <class D, class A, class B, class C, class... Rest>
PTO_INST RecordEvent TADDC(D& dst, A& src0, B& src1, C& src2, Rest&&...) {
    isa::map(isa::AddAdd(), dst, src0, src1, src2);
    return {};
}
template <class D, class A, class B, class C, class... Rest>
PTO_INST RecordEvent TSUBC(D& dst, A& src0, B& src1, C& src2, Rest&&...) {
    isa::map(isa::SubtractAdd(), dst, src0, src1, src2);
    return {};
}
template <class D, class A, class X, class B, class... Rest>
PTO_INST RecordEvent TADDSC(D& dst, A& src0, X scalar, B& src1, Rest&&...) {
    using T = typename D::DType;
    isa::map(isa::ScalarThenAdd<isa::Add, typename isa::Packet<T>::V>{isa::splat_scalar<T>(scalar)}, dst, src0, src1);
    return {};
}
template <class D, class A, class X, class B, class... Rest>
PTO_INST RecordEvent TSUBSC(D& dst, A& src0, X scalar, B& src1, Rest&&...) {
    using T = typename D::DType;
    isa::map(isa::ScalarThenAdd<isa::Subtract, typename isa::Packet<T>::V>{isa::splat_scalar<T>(scalar)}, dst, src0,
             src1);
    return {};
}
// dst += scalar * src; the source may be narrower than the destination (half into float).
template <class D, class A, class X, class... Rest>
PTO_INST RecordEvent TAXPY(D& dst, A& src, X scalar, Rest&&...) {
    using T = typename D::DType;
    isa::map(isa::MultiplyAddScalar<typename isa::Packet<T>::V>{isa::splat_scalar<T>(scalar)}, dst, dst, src);
    return {};
}
template <class D, class A, class... Rest>
PTO_INST RecordEvent TLRELU(D& dst, A& src, float slope, Rest&&...) {
    using P = isa::Packet<typename D::DType>;
    isa::map(isa::LeakyRelu<typename P::V>{P::splat(static_cast<typename P::Lane>(slope))}, dst, src);
    return {};
}

}  // namespace pto
