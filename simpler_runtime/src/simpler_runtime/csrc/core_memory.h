// On-chip memory of the simulated cores: sizes per architecture and lazily committed, guarded mappings.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "simulated_core.h"

namespace simpler {

enum class Architecture : int32_t { kA2A3, kA5 };

inline size_t memory_bytes(Architecture arch, sim::CoreKind kind, sim::MemorySpace space) {
    constexpr size_t kKiB = 1024;
    const bool a5 = arch == Architecture::kA5;
    if (kind == sim::CoreKind::kVector) return space == sim::MemorySpace::kVec ? (a5 ? 248 : 192) * kKiB : 0;
    switch (space) {
        case sim::MemorySpace::kVec: return 0;
        case sim::MemorySpace::kMat: return 512 * kKiB;
        case sim::MemorySpace::kLeft:
        case sim::MemorySpace::kRight: return 64 * kKiB;
        case sim::MemorySpace::kAcc: return (a5 ? 256 : 128) * kKiB;
        case sim::MemorySpace::kBias: return (a5 ? 4 : 1) * kKiB;
        case sim::MemorySpace::kLeftScale:
        case sim::MemorySpace::kRightScale: return a5 ? 4 * kKiB : 0;
    }
    return 0;
}

// One mapping holds all spaces of a core. A page of slack follows each space (vector code may read a little past
// a row), then a page without access, so that a stray address faults instead of changing another space.
class CoreMemory {
public:
    CoreMemory() = default;
    CoreMemory(const CoreMemory &) = delete;
    CoreMemory &operator=(const CoreMemory &) = delete;
    ~CoreMemory() {
        if (base_) munmap(base_, bytes_);
    }

    void attach(sim::SimulatedCore &core, Architecture arch, sim::CoreKind kind) {
        constexpr size_t kPage = 4096;
        const auto padded = [](size_t bytes) { return bytes ? (bytes + kPage - 1) / kPage * kPage + 2 * kPage : 0; };
        bytes_ = 0;
        for (int s = 0; s < sim::kMemorySpaceCount; ++s) {
            core.memory_size[s] = memory_bytes(arch, kind, static_cast<sim::MemorySpace>(s));
            bytes_ += padded(core.memory_size[s]);
        }
        void *memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        base_ = static_cast<unsigned char *>(memory);
        unsigned char *cursor = base_;
        for (int s = 0; s < sim::kMemorySpaceCount; ++s) {
            core.memory[s] = core.memory_size[s] ? cursor : nullptr;
            cursor += padded(core.memory_size[s]);
            if (core.memory_size[s]) mprotect(cursor - kPage, kPage, PROT_NONE);
        }
    }

private:
    unsigned char *base_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace simpler
