// Where tiles live: the on-chip memory of the calling simulated core, or private memory outside the runtime.
#pragma once
#include <cstddef>
#include <cstdint>

#include "enums.hpp"
#include "error.hpp"

#if __has_include("simulated_core.h")
#include "simulated_core.h"
#define PTO_HAS_SIMULATED_CORE 1
#else
#define PTO_HAS_SIMULATED_CORE 0
#endif

namespace pto::isa {

// Memory that grows on demand and is freed with its thread.
class ThreadBuffer {
public:
    ~ThreadBuffer() { __builtin_free(memory_); }
    unsigned char* reserve(size_t bytes) {
        if (__builtin_expect(bytes > size_, 0)) grow(bytes);
        return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(memory_) + 63) & ~uintptr_t{63});
    }

private:
    [[gnu::noinline]] void grow(size_t bytes) {
        __builtin_free(memory_);
        memory_ = __builtin_calloc(bytes + 64, 1);
        if (memory_ == nullptr) {
            size_ = 0;
            fail("out of memory: %zu bytes of working space", bytes);
        }
        size_ = bytes;
    }
    void* memory_ = nullptr;
    size_t size_ = 0;
};

struct ThreadMemory {
    ThreadBuffer workspace;  // of one instruction
    ThreadBuffer operands;   // of a block-scaled product
    ThreadBuffer on_chip;    // the memory of tiles outside the runtime
};
// Hidden: each kernel library keeps its own, and unloading the library stays possible.
[[gnu::visibility("hidden")]] inline thread_local ThreadMemory thread_memory;

// Working space of one instruction, 64-byte aligned; valid until the next call on this thread.
[[gnu::noinline]] inline unsigned char* workspace(size_t bytes) { return thread_memory.workspace.reserve(bytes); }

struct MemoryBlock {
    unsigned char* base;
    size_t size;
};

inline constexpr int kSpaceCount = 9;

inline constexpr const char* kSpaceNames[] = {"Vec",  "Mat",     "Left",      "Right",      "Acc",
                                              "Bias", "Scaling", "ScaleLeft", "ScaleRight", "Ctrl"};
constexpr const char* space_name(TileType type) { return kSpaceNames[static_cast<int>(type)]; }

// Physical sizes of the larger architecture.
[[gnu::noinline]] inline MemoryBlock private_memory(TileType type) {
    constexpr size_t sizes[kSpaceCount] = {256 << 10, 512 << 10, 64 << 10, 64 << 10, 256 << 10,
                                           64 << 10,  256 << 10, 64 << 10, 64 << 10};
    size_t total = 0, before = 0;
    const int space = static_cast<int>(type) < kSpaceCount ? static_cast<int>(type) : 0;
    for (int i = 0; i < kSpaceCount; ++i) {
        if (i == space) before = total;
        total += sizes[i];
    }
    return {thread_memory.on_chip.reserve(total) + before, sizes[space]};
}

#if PTO_HAS_SIMULATED_CORE
inline simpler::sim::SimulatedCore* current_core() { return simpler_current_core ? simpler_current_core() : nullptr; }

// Index of SimulatedCore::memory, or -1 for a space the record does not have.
constexpr int core_memory_index(TileType type) {
    switch (type) {
        case TileType::Vec:
            return static_cast<int>(simpler::sim::MemorySpace::kVec);
        case TileType::Mat:
            return static_cast<int>(simpler::sim::MemorySpace::kMat);
        case TileType::Left:
            return static_cast<int>(simpler::sim::MemorySpace::kLeft);
        case TileType::Right:
            return static_cast<int>(simpler::sim::MemorySpace::kRight);
        case TileType::Acc:
            return static_cast<int>(simpler::sim::MemorySpace::kAcc);
        case TileType::Bias:
            return static_cast<int>(simpler::sim::MemorySpace::kBias);
        case TileType::ScaleLeft:
            return static_cast<int>(simpler::sim::MemorySpace::kLeftScale);
        case TileType::ScaleRight:
            return static_cast<int>(simpler::sim::MemorySpace::kRightScale);
        default:
            return -1;
    }
}
#endif

inline MemoryBlock memory_of(TileType type) {
#if PTO_HAS_SIMULATED_CORE
    const int index = core_memory_index(type);
    if (index >= 0) {
        if (auto* core = current_core()) {
            if (core->memory[index] == nullptr) fail("this core has no %s memory", space_name(type));
            return {core->memory[index], core->memory_size[index]};
        }
    }
#endif
    return private_memory(type);
}

// The memory of a tile of `bytes` bytes at a byte address of its space.
template <TileType Type>
[[gnu::noinline]] unsigned char* place(uint64_t address, uint64_t bytes) {
    const MemoryBlock memory = memory_of(Type);
    if (__builtin_expect(address > memory.size || bytes > memory.size - address, 0))
        fail("a %s tile of %llu bytes at address %llu exceeds the %zu bytes of that memory", space_name(Type),
             static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address), memory.size);
    return memory.base + address;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_unbound(TileType type) {
    fail("a %s tile is used before TASSIGN", space_name(type));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void fail_valid_region(TileType type, int64_t rows, int64_t cols,
                                                                     int tile_rows, int tile_cols) {
    fail("valid region [%lld, %lld] does not fit a %s tile of [%d, %d]", static_cast<long long>(rows),
         static_cast<long long>(cols), space_name(type), tile_rows, tile_cols);
}

}  // namespace pto::isa
