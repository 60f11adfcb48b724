// TQUANT and TDEQUANT: 8-bit integers with a scale (and zero point) per row.
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
