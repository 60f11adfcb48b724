// How a scalar travels through a 64-bit task slot: its object bytes in the low bytes, zeroes above.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

template <typename T>
inline uint64_t to_u64(T value) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a scalar argument has at most 8 plain bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <typename T>
inline T from_u64(uint64_t bits) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a scalar argument has at most 8 plain bytes");
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}
