// Names of submitted tasks and the small records that describe an allocation and its place.
#pragma once
#include <cstdint>

struct PTO2TaskId {
    uint64_t raw;

    static constexpr PTO2TaskId make(uint8_t ring, uint32_t local) {
        return PTO2TaskId{(static_cast<uint64_t>(ring) << 32) | local};
    }
    static constexpr PTO2TaskId invalid() { return PTO2TaskId{~0ull}; }
    constexpr uint8_t ring() const { return static_cast<uint8_t>(raw >> 32); }
    constexpr uint32_t local() const { return static_cast<uint32_t>(raw); }
    constexpr bool is_valid() const { return raw != ~0ull; }
    constexpr bool is_invalid() const { return raw == ~0ull; }
    constexpr bool operator==(const PTO2TaskId &other) const { return raw == other.raw; }
    constexpr bool operator!=(const PTO2TaskId &other) const { return raw != other.raw; }
};

// Address and size in bytes of one allocation.
struct PTOBufferHandle {
    uint64_t addr;
    uint64_t size;
};

enum class AddressSpace : uint8_t { HOST = 0, DEVICE = 1 };
