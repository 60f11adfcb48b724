// TPRINT: the valid region of a tile or a view on standard output.
#pragma once
#include "gather.hpp"

namespace pto {

enum class PrintFormat : uint8_t { Width8_Precision4 = 0, Width8_Precision2 = 1, Width10_Precision6 = 2 };

namespace isa {

template <PrintFormat Format, class T>
inline void print_element(T value) {
    constexpr const char* formats[] = {"%8.4f ", "%8.2f ", "%10.6f "};
    if constexpr (kIsPair<T>)
        __builtin_printf("(%g, %g) ", double(value.low()), double(value.high()));
    else if constexpr (std::is_integral_v<T>)
        __builtin_printf("%8lld ", static_cast<long long>(value));
    else
        __builtin_printf(formats[static_cast<int>(Format)], static_cast<double>(static_cast<float>(value)));
}

}  // namespace isa

template <PrintFormat Format = PrintFormat::Width8_Precision4, class Object, class... Rest>
PTO_INST void TPRINT(Object& object, Rest&&...) {
    long rows, cols;
    if constexpr (isa::kIsTile<Object>) {
        rows = object.GetValidRow();
        cols = object.GetValidCol();
    } else {
        rows = isa::view_rows(object);
        cols = object.GetShape(4);
    }
    for (long i = 0; i < rows; ++i) {
        for (long j = 0; j < cols; ++j) {
            if constexpr (isa::kIsTile<Object>)
                isa::print_element<Format>(object.data()[Object::offset(i, j)]);
            else
                isa::print_element<Format>(object.data()[isa::view_offset(object, i, j)]);
        }
        __builtin_printf("\n");
    }
}

}  // namespace pto
