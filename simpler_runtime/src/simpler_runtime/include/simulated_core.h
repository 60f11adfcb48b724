// What a simulated core offers to kernel code: on-chip memory, its cluster peers and blocking counters.
//
// The runtime fills one record per simulated core and hands it out through simpler_current_core(); the CPU
// instruction set includes this header when it is on the include path and falls back to private memory (and
// no cross-core pipes) when it is not, or when the kernel runs outside the runtime.
#pragma once
#include <cstddef>
#include <cstdint>

namespace simpler::sim {

inline constexpr uint32_t kCoreAbiVersion = 1;
inline constexpr int kMemorySpaceCount = 8;
inline constexpr int kCounterCount = 64;

enum class CoreKind : int32_t { kCube = 0, kVector = 1 };

// Index of SimulatedCore::memory.
enum class MemorySpace : int32_t { kVec, kMat, kLeft, kRight, kAcc, kBias, kLeftScale, kRightScale };

struct SimulatedCore {
    uint32_t abi_version;
    CoreKind kind;
    int32_t lane;                               // 0 or 1 for a vector core of a mixed task, else 0
    unsigned char* memory[kMemorySpaceCount];   // 64-byte aligned; null when this kind of core lacks the space
    size_t memory_size[kMemorySpaceCount];      // bytes
    SimulatedCore* peers[3];                    // AIC, AIV0, AIV1 of this block; null for a slot the task leaves empty
};

}  // namespace simpler::sim

// Provided by the runtime library; weak, so that a kernel can be loaded without it.
extern "C" {
__attribute__((weak)) simpler::sim::SimulatedCore* simpler_current_core();
// Adds `amount` to counter `index` of `owner` and wakes the core that waits for it.
__attribute__((weak)) void simpler_counter_add(simpler::sim::SimulatedCore* owner, int32_t index, int32_t amount);
// Waits until counter `index` of the calling core is at least `amount`, then subtracts it. Leaves by a C++
// exception (caught by the runtime) when the run was aborted or the block can never make progress.
__attribute__((weak)) void simpler_counter_take(int32_t index, int32_t amount);
}
