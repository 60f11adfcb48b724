// TCMP and TSEL: packed predicate masks (bit c % 8 of byte c / 8 of each row) and selection by them.
#pragma once
#include "elementwise.hpp"

namespace pto {
namespace isa {

// The sign bits of a comparison result as an integer, lane 0 in bit 0.
template <class M>
[[gnu::always_inline]] inline uint64_t mask_bits(M mask) {
    constexpr int size = sizeof(Element<M>), lanes = sizeof(M) / size;
#if PTO_AVX512 && !defined(__clang__)
    if constexpr (size == 4)
        return static_cast<uint16_t>(__builtin_ia32_cvtd2mask512((Vector<int, 16>)mask));
    else if constexpr (size == 2)
        return static_cast<uint32_t>(__builtin_ia32_cvtw2mask512((Vector<short, 32>)mask));
    else if constexpr (size == 1)
        return static_cast<uint64_t>(__builtin_ia32_cvtb2mask512((Vector<char, 64>)mask));
#endif
    uint64_t bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= uint64_t(mask[i] != 0) << i;
    return bits;
}
// All-ones lanes where the bit is set.
template <class M>
[[gnu::always_inline]] inline M mask_from_bits(uint64_t bits) {
    constexpr int size = sizeof(Element<M>), lanes = sizeof(M) / size;
#if PTO_AVX512 && !defined(__clang__)
    if constexpr (size == 4)
        return (M)__builtin_ia32_cvtmask2d512(static_cast<unsigned short>(bits));
    else if constexpr (size == 2)
        return (M)__builtin_ia32_cvtmask2w512(static_cast<unsigned>(bits));
    else if constexpr (size == 1)
        return (M)__builtin_ia32_cvtmask2b512(static_cast<unsigned long long>(bits));
#endif
    M mask{};
    for (int i = 0; i < lanes; ++i) mask[i] = static_cast<Element<M>>(-static_cast<int>((bits >> i) & 1));
    return mask;
}

template <CmpMode Mode, class V>
[[gnu::always_inline]] inline auto compare(V a, V b) {
    if constexpr (Mode == CmpMode::EQ)
        return a == b;
    else if constexpr (Mode == CmpMode::NE)
        return a != b;
    else if constexpr (Mode == CmpMode::LT)
        return a < b;
    else if constexpr (Mode == CmpMode::LE)
        return a <= b;
    else if constexpr (Mode == CmpMode::GT)
        return a > b;
    else
        return a >= b;
}

// The mask bits of columns [j, j + count), j a multiple of the lanes: whole bytes, or parts of one byte for short
// registers.
template <int Lanes>
[[gnu::always_inline]] inline void put_bits(uint8_t* mask, long j, uint64_t bits, long count) {
    if constexpr (Lanes % 8 == 0) {
        if (count == Lanes) {
            __builtin_memcpy(mask + j / 8, &bits, Lanes / 8);
        } else {
            bits &= (uint64_t{1} << count) - 1;
            for (long k = 0; k < (count + 7) / 8; ++k) mask[j / 8 + k] = static_cast<uint8_t>(bits >> (8 * k));
        }
    } else {
        bits &= (uint64_t{1} << count) - 1;
        if (j % 8 == 0) mask[j / 8] = 0;
        mask[j / 8] |= static_cast<uint8_t>(bits << (j % 8));
    }
}
template <int Lanes>
[[gnu::always_inline]] inline uint64_t get_bits(const uint8_t* mask, long j, long count) {
    uint64_t bits = 0;
    if constexpr (Lanes % 8 == 0) {
        if (count == Lanes)
            __builtin_memcpy(&bits, mask + j / 8, Lanes / 8);
        else
            for (long k = 0; k < (count + 7) / 8; ++k) bits |= uint64_t{mask[j / 8 + k]} << (8 * k);
        return bits;
    } else {
        return mask[j / 8] >> (j % 8);
    }
}

// The bits of each row, and zeros to the end of the mask row.
template <CmpMode Mode, bool ScalarRight, class T>
[[gnu::noinline]] void compare_lines(uint8_t* mask, long mask_pitch, const T* left, long left_pitch, const T* right,
                                     long right_pitch, long rows, long cols) {
    using P = Packet<T>;
    constexpr long lanes = P::kLanes;
    const auto scalar = P::splat(static_cast<typename P::Lane>(right[0]));
    if (cols > mask_pitch * 8) cols = mask_pitch * 8;
    for (long i = 0; i < rows; ++i, mask += mask_pitch, left += left_pitch, right += right_pitch) {
        long j = 0;
        for (; j + lanes <= cols; j += lanes)
            put_bits<lanes>(
                mask, j, mask_bits(compare<Mode>(P::load(left + j), ScalarRight ? scalar : P::load(right + j))), lanes);
        if (const long rest = cols - j; rest > 0)
            put_bits<lanes>(mask, j,
                            mask_bits(compare<Mode>(P::load_part(left + j, rest),
                                                    ScalarRight ? scalar : P::load_part(right + j, rest))),
                            rest);
        for (long byte = (cols + 7) / 8; byte < mask_pitch; ++byte) mask[byte] = 0;
    }
}

template <bool ScalarRight, class T>
inline void compare_with(CmpMode mode, uint8_t* mask, long mask_pitch, const T* left, long left_pitch, const T* right,
                         long right_pitch, long rows, long cols) {
    const auto run = [&](auto constant) {
        compare_lines<decltype(constant)::value, ScalarRight>(mask, mask_pitch, left, left_pitch, right, right_pitch,
                                                              rows, cols);
    };
    switch (mode) {
        case CmpMode::EQ:
            return run(std::integral_constant<CmpMode, CmpMode::EQ>());
        case CmpMode::NE:
            return run(std::integral_constant<CmpMode, CmpMode::NE>());
        case CmpMode::LT:
            return run(std::integral_constant<CmpMode, CmpMode::LT>());
        case CmpMode::LE:
            return run(std::integral_constant<CmpMode, CmpMode::LE>());
        case CmpMode::GT:
            return run(std::integral_constant<CmpMode, CmpMode::GT>());
        case CmpMode::GE:
            return run(std::integral_constant<CmpMode, CmpMode::GE>());
    }
}

template <class TileT>
inline constexpr bool kPlainRows = !TileT::isBoxedLayout && TileT::isRowMajor;

template <class M>
inline uint8_t* mask_bytes(M& mask) {
    static_assert(std::is_integral_v<typename M::DType> && kPlainRows<M>, "a mask is a plain row-major integer tile");
    return reinterpret_cast<uint8_t*>(mask.data());
}
template <class M>
inline constexpr long kMaskPitch = long{M::RowStride} * long(sizeof(typename M::DType));

// to = bit ? yes : no, on the bits of the elements.
template <bool ScalarNo, class Bits>
[[gnu::noinline]] void select_lines(Bits* to, long to_pitch, const uint8_t* mask, long mask_pitch, const Bits* yes,
                                    long yes_pitch, const Bits* no, long no_pitch, long rows, long cols) {
    using P = Packet<Bits>;
    using V = typename P::V;
    using M = decltype(V{} < V{});
    constexpr long lanes = P::kLanes;
    const V scalar = P::splat(no[0]);
    for (long i = 0; i < rows; ++i, to += to_pitch, mask += mask_pitch, yes += yes_pitch, no += no_pitch) {
        long j = 0;
        for (; j + lanes <= cols; j += lanes) {
            const M chosen = mask_from_bits<M>(get_bits<lanes>(mask, j, lanes));
            P::store(to + j, chosen ? P::load(yes + j) : ScalarNo ? scalar : P::load(no + j));
        }
        if (const long rest = cols - j; rest > 0) {
            const M chosen = mask_from_bits<M>(get_bits<lanes>(mask, j, rest));
            P::store_part(to + j,
                          chosen     ? P::load_part(yes + j, rest)
                          : ScalarNo ? scalar
                                     : P::load_part(no + j, rest),
                          rest);
        }
    }
}

template <class D, class M, class A>
inline void select_scalar(D& dst, M& mask, A& yes, typename D::DType no) {
    using Bits = BitsOf<sizeof(typename D::DType)>;
    static_assert(kPlainRows<D> && kPlainRows<A>, "TSELS works on plain row-major tiles");
    const Bits scalar = bit_cast<Bits>(no);
    select_lines<true>(reinterpret_cast<Bits*>(dst.data()), D::RowStride, mask_bytes(mask), kMaskPitch<M>,
                       reinterpret_cast<const Bits*>(yes.data()), A::RowStride, &scalar, 0, dst.GetValidRow(),
                       dst.GetValidCol());
}

}  // namespace isa

template <class M, class A, class B, class... Rest>
PTO_INST RecordEvent TCMP(M& dst, A& src0, B& src1, CmpMode mode, Rest&&...) {
    using T = typename A::DType;
    static_assert(std::is_same_v<T, typename B::DType>, "TCMP compares tiles of one element type");
    static_assert(isa::kPlainRows<A> && isa::kPlainRows<B>, "TCMP compares plain row-major tiles");
    isa::compare_with<false, T>(mode, isa::mask_bytes(dst), isa::kMaskPitch<M>, src0.data(), A::RowStride, src1.data(),
                                B::RowStride, src0.GetValidRow(), src0.GetValidCol());
    return {};
}
template <class M, class A, class X, class... Rest>
PTO_INST RecordEvent TCMPS(M& dst, A& src, X&& scalar, CmpMode mode, Rest&&...) {
    using T = typename A::DType;
    static_assert(isa::kPlainRows<A>, "TCMPS compares a plain row-major tile");
    T value;
    if constexpr (isa::kIsTile<X>)
        value = scalar.data()[0];
    else
        value = isa::scalar_cast<T>(scalar);
    isa::compare_with<true, T>(mode, isa::mask_bytes(dst), isa::kMaskPitch<M>, src.data(), A::RowStride, &value, 0,
                               src.GetValidRow(), src.GetValidCol());
    return {};
}

template <class D, class M, class A, class B, class... Rest>
PTO_INST RecordEvent TSEL(D& dst, M& mask, A& src0, B& src1, Rest&&...) {
    using Bits = isa::BitsOf<sizeof(typename D::DType)>;
    static_assert(isa::kPlainRows<D> && isa::kPlainRows<A> && isa::kPlainRows<B>,
                  "TSEL works on plain row-major tiles");
    static_assert(sizeof(typename A::DType) == sizeof(Bits) && sizeof(typename B::DType) == sizeof(Bits),
                  "TSEL needs one element type");
    isa::select_lines<false>(reinterpret_cast<Bits*>(dst.data()), D::RowStride, isa::mask_bytes(mask),
                             isa::kMaskPitch<M>, reinterpret_cast<const Bits*>(src0.data()), A::RowStride,
                             reinterpret_cast<const Bits*>(src1.data()), B::RowStride, dst.GetValidRow(),
                             dst.GetValidCol());
    return {};
}
template <class D, class M, class A, class X, std::enable_if_t<!isa::kIsTile<X>, int> = 0>
PTO_INST RecordEvent TSELS(D& dst, M& mask, A& src, X scalar) {
    isa::select_scalar(dst, mask, src, isa::scalar_cast<typename D::DType>(scalar));
    return {};
}
template <class D, class M, class A, class Tmp, class X, class... Rest, std::enable_if_t<isa::kIsTile<Tmp>, int> = 0>
PTO_INST RecordEvent TSELS(D& dst, M& mask, A& src, Tmp&, X scalar, Rest&&...) {
    isa::select_scalar(dst, mask, src, isa::scalar_cast<typename D::DType>(scalar));
    return {};
}

}  // namespace pto
