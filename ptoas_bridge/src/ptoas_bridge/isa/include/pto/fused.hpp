// Further elementwise instructions of hand-written kernels: powers, fused forms, interleaving, windows.
#pragma once
#include "assign.hpp"
#include "elementwise.hpp"

namespace pto {
namespace isa {

struct Power {
    template <class V>
    V operator()(V a, V b) const {
        V result{};
        for (int i = 0; i < int(sizeof(V) / sizeof(Element<V>)); ++i) {
            if constexpr (kFloatVector<V>) {
                result[i] = __builtin_powf(a[i], b[i]);
            } else {
                using U = std::make_unsigned_t<Element<V>>;
                // Wrapping integer power; a negative exponent leaves only the units.
                const Element<V> base = a[i], exponent = b[i];
                U value = 1, square = static_cast<U>(base);
                if (exponent < 0) {
                    value = base == 1 ? U(1) : base == Element<V>(-1) ? (exponent % 2 ? U(-1) : U(1)) : U(0);
                } else {
                    for (U left = static_cast<U>(exponent); left; left >>= 1, square *= square)
                        if (left & 1) value *= square;
                }
                result[i] = static_cast<Element<V>>(value);
            }
        }
        return result;
    }
};
struct MultiplyDestination {
    template <class V>
    [[gnu::always_inline]] V operator()(V dst, V a, V b) const {
        return Add()(Multiply()(a, b), dst);
    }
};
struct MultiplyThenAdd {
    template <class V>
    [[gnu::always_inline]] V operator()(V dst, V a, V b) const {
        return Add()(Multiply()(a, dst), b);
    }
};
struct MultiplyThenAddRelu {
    template <class V>
    [[gnu::always_inline]] V operator()(V dst, V a, V b) const {
        return Maximum()(MultiplyThenAdd()(dst, a, b), V{});
    }
};
struct SubtractRelu {
    template <class V>
    [[gnu::always_inline]] V operator()(V a, V b) const {
        return Maximum()(Subtract()(a, b), V{});
    }
};

}  // namespace isa

template <PowAlgorithm Precision = PowAlgorithm::DEFAULT, class D, class A, class B, class... Rest>
PTO_INST RecordEvent TPOW(D& dst, A& base, B& exponent, Rest&&...) {
    isa::map(isa::Power(), dst, base, exponent);
    return {};
}
template <PowAlgorithm Precision = PowAlgorithm::DEFAULT, class D, class A, class X, class... Rest>
PTO_INST RecordEvent TPOWS(D& dst, A& base, X exponent, Rest&&...) {
    isa::map_with_scalar<isa::Power>(dst, base, exponent);
    return {};
}
// dst = src0 * src1 + dst
template <class D, class A, class B, class... Rest>
PTO_INST RecordEvent TMULADDDST(D& dst, A& src0, B& src1, Rest&&...) {
    isa::map(isa::MultiplyDestination(), dst, dst, src0, src1);
    return {};
}
// dst = src0 * dst + src1
template <class D, class A, class B, class... Rest>
PTO_INST RecordEvent TFUSEDMULADD(D& dst, A& src0, B& src1, Rest&&...) {
    isa::map(isa::MultiplyThenAdd(), dst, dst, src0, src1);
    return {};
}
template <class D, class A, class B, class... Rest>
PTO_INST RecordEvent TFUSEDMULADDRELU(D& dst, A& src0, B& src1, Rest&&...) {
    isa::map(isa::MultiplyThenAddRelu(), dst, dst, src0, src1);
    return {};
}
template <class D, class A, class B, class... Rest>
PTO_INST RecordEvent TSUBRELU(D& dst, A& src0, B& src1, Rest&&...) {
    isa::map(isa::SubtractRelu(), dst, src0, src1);
    return {};
}

// dst names the window of src that starts at (row, col).
template <class D, class S>
PTO_INST RecordEvent TSUBVIEW(D& dst, S& src, int64_t row, int64_t col) {
    static_assert(D::Loc == S::Loc && std::is_same_v<typename D::DType, typename S::DType>,
                  "TSUBVIEW keeps memory space and element type");
    if (row < 0 || col < 0 || row + dst.GetValidRow() > S::Rows || col + dst.GetValidCol() > S::Cols)
        isa::fail("TSUBVIEW: window [%ld, %ld] + [%d, %d] leaves the tile of [%d, %d]", long(row), long(col),
                  dst.GetValidRow(), dst.GetValidCol(), S::Rows, S::Cols);
    dst.bind(src.data() + S::offset(row, col));
    return {};
}

}  // namespace pto
