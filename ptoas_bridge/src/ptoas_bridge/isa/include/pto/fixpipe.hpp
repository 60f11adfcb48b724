// What happens to accumulator values on their way out: scaling, relu, rounding to the destination type, atomic
// addition.
#pragma once
#include "line_layout.hpp"

namespace pto::isa {

// Rounds to nearest even and clamps to the range of an integer type; floats just convert.
template <class D>
inline D saturate_to(float value) {
    if constexpr (std::is_integral_v<D>) {
        const float rounded = __builtin_rintf(value);
        if (!(rounded > static_cast<float>(least<D>()))) return value != value ? D(0) : least<D>();
        if (rounded >= static_cast<float>(greatest<D>())) return greatest<D>();
        return static_cast<D>(rounded);
    } else {
        return static_cast<D>(value);
    }
}

// Run converter of an accumulator: value * scale (when Scaled), relu before the conversion.
template <bool Relu, bool Scaled>
struct FixpipeRun {
    float scale;
    template <class D, class S>
    void operator()(D* to, const S* from, long count) const {
        if constexpr (!Relu && !Scaled) {
            CopyRun()(to, from, count);
        } else {
            for (long i = 0; i < count; ++i) to[i] = one<D>(from[i]);
        }
    }
    template <class D, class S>
    D one(S value) const {
        if constexpr (Relu) value = value > S(0) ? value : S(0);
        if constexpr (Scaled)
            return saturate_to<D>(static_cast<float>(value) * scale);
        else
            return scalar_cast<D>(value);
    }
    static constexpr bool kPlain = !Relu && !Scaled;
};

// Adds one value to memory that other cores may add to at the same time.
template <class T>
inline void atomic_add(T* target, T value) {
    if constexpr (std::is_integral_v<T>) {
        __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
    } else {
        using Bits = BitsOf<sizeof(T)>;
        Bits* cell = reinterpret_cast<Bits*>(target);
        Bits seen = __atomic_load_n(cell, __ATOMIC_RELAXED);
        for (;;) {
            const T sum = static_cast<T>(bit_cast<T>(seen) + value);
            if (__atomic_compare_exchange_n(cell, &seen, bit_cast<Bits>(sum), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return;
        }
    }
}

template <class Inner>
struct AtomicAddRun {
    Inner inner;
    template <class D, class S>
    void operator()(D* to, const S* from, long count) const {
        for (long i = 0; i < count; ++i) atomic_add(to + i, inner.template one<D>(from[i]));
    }
};

}  // namespace pto::isa
