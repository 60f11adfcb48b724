// TQUANT and TDEQUANT: 8-bit integers with a scale (and zero point) per row, 8-bit floats with a scale per 32 columns.
#pragma once
#include "fixpipe.hpp"

namespace pto {
namespace isa {

// The value of row i of a column vector in any plain layout.
template <class TileT>
inline float row_value(const TileT& tile, long i) {
    return static_cast<float>(tile.data()[TileT::offset(i, 0)]);
}

template <class D, class S, class Scale, class Offset>
void quantize_rows(D& dst, S& src, Scale& scale, Offset* offset) {
    using T = typename D::DType;
    for (long i = 0; i < dst.GetValidRow(); ++i) {
        const float factor = row_value(scale, i), zero = offset ? row_value(*offset, i) : 0.0f;
        for (long j = 0; j < dst.GetValidCol(); ++j) {
            const float value = static_cast<float>(src.data()[S::offset(i, j)]);
            dst.data()[D::offset(i, j)] = saturate_to<T>(__builtin_rintf(value * factor) + zero);
        }
    }
}

// MX formats: per group of 32 columns the largest magnitude picks a power-of-two scale that keeps every element finite.
template <class D, class S, class Exponent, class Largest, class Scaling>
void quantize_groups(D& dst, S& src, Exponent& exponent, Largest* largest, Scaling* scaling) {
    using T = typename D::DType;
    static_assert(std::is_same_v<T, float8_e4m3_t>, "TQUANT to an MX format makes float8_e4m3_t elements");
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long first = 0; first < dst.GetValidCol(); first += 32) {
            const long last = first + 32 < dst.GetValidCol() ? first + 32 : dst.GetValidCol(), group = first / 32;
            float top = 0;
            for (long j = first; j < last; ++j) {
                const float magnitude = __builtin_fabsf(static_cast<float>(src.data()[S::offset(i, j)]));
                top = magnitude > top ? magnitude : top;
            }
            // 448 = 1.75 * 2^8 is the largest element; a group of zeros and tiny values takes the least scale.
            const int biased = static_cast<int>((bit_cast<uint32_t>(top) >> 23) & 255) - 8;
            const int code = biased < 0 ? 0 : biased;
            const float factor = power_of_two(127 - code);
            for (long j = first; j < last; ++j)
                dst.data()[D::offset(i, j)] = T(static_cast<float>(src.data()[S::offset(i, j)]) * factor);
            exponent.data()[Exponent::offset(i, group)] =
                bit_cast<typename Exponent::DType>(static_cast<uint8_t>(code));
            if (largest) largest->data()[Largest::offset(i, group)] = scalar_cast<typename Largest::DType>(top);
            if (scaling) scaling->data()[Scaling::offset(i, group)] = scalar_cast<typename Scaling::DType>(factor);
        }
}

}  // namespace isa

// Symmetric: clamp(rint(x * scale), -128, 127). Asymmetric: clamp(rint(x * scale) + offset, 0, 255).
template <QuantType Type, class D, class S, class Scale>
PTO_INST RecordEvent TQUANT(D& dst, S& src, Scale& scale, Scale* offset = nullptr) {
    static_assert(Type == QuantType::INT8_SYM || Type == QuantType::INT8_ASYM,
                  "this form of TQUANT makes 8-bit integers; MX formats take exponent, maximum and scaling tiles");
    isa::quantize_rows(dst, src, scale, offset);
    return {};
}
template <QuantType Type, class D, class S, class Scale, class Tmp, std::enable_if_t<isa::kIsTile<Tmp>, int> = 0>
PTO_INST RecordEvent TQUANT(D& dst, S& src, Scale& scale, Tmp&, Scale* offset = nullptr) {
    return TQUANT<Type>(dst, src, scale, offset);
}

// MX form: element codes, e8m0 exponents, group maxima and reciprocal scales.
template <QuantType Type, class D, class S, class Exponent, class Largest, class Scaling>
PTO_INST RecordEvent TQUANT(D& dst, S& src, Exponent* exponent, Largest* largest, Scaling* scaling) {
    static_assert(Type == QuantType::MXFP8, "TQUANT supports the MX format MXFP8; MXFP4_E2M1 is not supported");
    isa::quantize_groups(dst, src, *exponent, largest, scaling);
    return {};
}

// (q - offset) * scale per row
template <class D, class S, class Scale, class Offset, class... Rest>
PTO_INST RecordEvent TDEQUANT(D& dst, S& src, Scale& scale, Offset& offset, Rest&&...) {
    for (long i = 0; i < dst.GetValidRow(); ++i) {
        const float factor = isa::row_value(scale, i), zero = isa::row_value(offset, i);
        for (long j = 0; j < dst.GetValidCol(); ++j)
            dst.data()[D::offset(i, j)] =
                isa::scalar_cast<typename D::DType>((static_cast<float>(src.data()[S::offset(i, j)]) - zero) * factor);
    }
    return {};
}

}  // namespace pto
