// TASSIGN and TRESHAPE: which memory a tile or view names.
#pragma once
#include "global_tensor.hpp"
#include "tile.hpp"

namespace pto {

// Binds a tile to a byte address of its memory space, or a view to a pointer.
template <class T, class Address>
PTO_INST RecordEvent TASSIGN(T& object, Address address) {
    if constexpr (isa::kIsGlobal<T>)
        object.bind(address);
    else
        isa::bind_address(object, static_cast<uint64_t>(address));
    return {};
}
template <uint64_t Address, class T>
PTO_INST RecordEvent TASSIGN(T& tile) {
    isa::bind_address(tile, Address);
    return {};
}

// The same bytes under another shape or element type.
template <class D, class S>
PTO_INST RecordEvent TRESHAPE(D& dst, S& src) {
    static_assert(D::Loc == S::Loc, "TRESHAPE keeps the memory space");
    static_assert(D::isBoxedLayout == S::isBoxedLayout, "TRESHAPE cannot change between boxed and plain layouts");
    dst.bind(reinterpret_cast<typename D::DType*>(src.data()));
    return {};
}

}  // namespace pto
