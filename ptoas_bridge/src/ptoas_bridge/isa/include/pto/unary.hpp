// Unary instructions: absolute value, negation, relu, complement, and the elementary functions.
#pragma once
#include "elementwise.hpp"

namespace pto {
namespace isa {

struct Absolute {
    template <class V>
    [[gnu::always_inline]] V operator()(V a) const {
        if constexpr (kFloatVector<V>)
            return (V)((IntVector)a & 0x7fffffff);
        else
            return a < 0 ? (V)(V{} - a) : a;
    }
};
struct Negate {
    template <class V>
    [[gnu::always_inline]] V operator()(V a) const {
        if constexpr (kFloatVector<V>)
            return -a;
        else
            return (V)(Wrapping<V>{} - (Wrapping<V>)a);
    }
};
struct Complement {
    template <class V>
    [[gnu::always_inline]] V operator()(V a) const {
        return ~a;
    }
};
// Keeps NaN.
struct Relu {
    template <class V>
    [[gnu::always_inline]] V operator()(V a) const {
        return a < 0 ? V{} : a;
    }
};

[[gnu::always_inline]] inline FloatVector splat(float value) { return value - FloatVector{}; }

// Nearest integer (ties to even) for |a| < 2^22, as a float.
[[gnu::always_inline]] inline FloatVector round_small(FloatVector a) { return (a + 12582912.0f) - 12582912.0f; }

// 2^n for integral n within the exponent range of normal numbers.
[[gnu::always_inline]] inline FloatVector exponent_power(IntVector n) { return (FloatVector)((n + 127) << 23); }

// e^a: reduction by multiples of ln 2 in two parts, a polynomial of degree six, and a two-step scaling that reaches the
// denormal range. Relative error below 3e-7 in the normal range.
struct Exponential {
    [[gnu::always_inline]] FloatVector operator()(FloatVector a) const {
        // Beyond these bounds the result is 0 or infinity; a NaN passes through the comparisons.
        const FloatVector high = splat(89.0f), low = splat(-104.0f);
        FloatVector x = a > high ? high : a;
        x = x < low ? low : x;
        const FloatVector n = round_small(x * 1.44269504088896341f);
        FloatVector r = multiply_add(n, splat(-0.693359375f), x);
        r = multiply_add(n, splat(2.12194440e-4f), r);
        FloatVector p = splat(1.3888889e-3f);
        p = multiply_add(p, r, splat(8.3333337e-3f));
        p = multiply_add(p, r, splat(4.1666668e-2f));
        p = multiply_add(p, r, splat(1.6666667e-1f));
        p = multiply_add(p, r, splat(0.5f));
        p = multiply_add(p, r * r, r) + 1.0f;
#if PTO_AVX512 && !defined(__clang__)
        return __builtin_ia32_scalefps512_mask(p, n, FloatVector{}, 0xffff, 4);
#else
        const IntVector whole = __builtin_convertvector(n, IntVector);
        const IntVector first = whole >> 1;
        return p * exponent_power(first) * exponent_power(whole - first);
#endif
    }
};

// ln a: mantissa in [sqrt(1/2), sqrt(2)), a polynomial in m - 1, and the exponent times ln 2 in two parts.
struct Logarithm {
    [[gnu::always_inline]] FloatVector operator()(FloatVector a) const {
        const auto tiny = a < 1.17549435e-38f;
        const FloatVector scaled = tiny ? (FloatVector)(a * 8388608.0f) : a;
        const IntVector bits = (IntVector)scaled;
        IntVector exponent = ((bits - 0x3f3504f3) >> 23);
        const FloatVector m = (FloatVector)(bits - (exponent << 23)) - 1.0f;
        exponent = exponent - (tiny & 23);
        const FloatVector e = __builtin_convertvector(exponent, FloatVector);
        FloatVector p = splat(7.0376836292e-2f);
        p = multiply_add(p, m, splat(-1.1514610310e-1f));
        p = multiply_add(p, m, splat(1.1676998740e-1f));
        p = multiply_add(p, m, splat(-1.2420140846e-1f));
        p = multiply_add(p, m, splat(1.4249322787e-1f));
        p = multiply_add(p, m, splat(-1.6668057665e-1f));
        p = multiply_add(p, m, splat(2.0000714765e-1f));
        p = multiply_add(p, m, splat(-2.4999993993e-1f));
        p = multiply_add(p, m, splat(3.3333331174e-1f));
        const FloatVector square = m * m;
        FloatVector result = p * m * square;
        result = result + e * -2.12194440e-4f;
        result = result - square * 0.5f;
        result = (m + result) + e * 0.693359375f;
        result = (a == splat(kInfinity)) ? a : result;
        result = (a == 0.0f) ? splat(-kInfinity) : result;
        return ((a < 0.0f) | (a != a)) ? splat(__builtin_nanf("")) : result;
    }
};

struct SquareRoot {
    [[gnu::always_inline]] FloatVector operator()(FloatVector a) const {
#if PTO_AVX512 && !defined(__clang__)
        return __builtin_ia32_sqrtps512_mask(a, FloatVector{}, 0xffff, 4);
#elif defined(__AVX__) && !defined(__clang__)
        return __builtin_ia32_sqrtps256(a);
#elif defined(__clang__)
        return __builtin_elementwise_sqrt(a);
#else
        FloatVector result;
        for (int i = 0; i < kFloatLanes; ++i) result[i] = __builtin_sqrtf(a[i]);
        return result;
#endif
    }
};
struct ReciprocalSquareRoot {
    [[gnu::always_inline]] FloatVector operator()(FloatVector a) const { return 1.0f / SquareRoot()(a); }
};
struct Reciprocal {
    [[gnu::always_inline]] FloatVector operator()(FloatVector a) const { return 1.0f / a; }
};

template <class Op, class D, class S>
inline void map_function(D& dst, S& src) {
    static_assert(kFloatRegister<typename D::DType>, "this function needs a half, bfloat16 or float tile");
    map(Op(), dst, src);
}

}  // namespace isa

#define PTO_UNARY_TILE(NAME, OP)                           \
    template <class D, class S, class... Rest>             \
    PTO_INST RecordEvent NAME(D& dst, S& src, Rest&&...) { \
        isa::map(isa::OP(), dst, src);                     \
        return {};                                         \
    }
PTO_UNARY_TILE(TABS, Absolute)
PTO_UNARY_TILE(TNEG, Negate)
PTO_UNARY_TILE(TNOT, Complement)
PTO_UNARY_TILE(TRELU, Relu)
#undef PTO_UNARY_TILE

#define PTO_FUNCTION_TILE(NAME, OP, ALGORITHM)                                           \
    template <ALGORITHM Precision = ALGORITHM::DEFAULT, class D, class S, class... Rest> \
    PTO_INST RecordEvent NAME(D& dst, S& src, Rest&&...) {                               \
        isa::map_function<isa::OP>(dst, src);                                            \
        return {};                                                                       \
    }
PTO_FUNCTION_TILE(TEXP, Exponential, ExpAlgorithm)
PTO_FUNCTION_TILE(TLOG, Logarithm, LogAlgorithm)
PTO_FUNCTION_TILE(TSQRT, SquareRoot, SqrtAlgorithm)
PTO_FUNCTION_TILE(TRSQRT, ReciprocalSquareRoot, RsqrtAlgorithm)
PTO_FUNCTION_TILE(TRECIP, Reciprocal, RecipAlgorithm)
#undef PTO_FUNCTION_TILE

}  // namespace pto
