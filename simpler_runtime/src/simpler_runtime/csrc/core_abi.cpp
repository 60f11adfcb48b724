// The functions of simulated_core.h that kernel code calls.
#include "cluster.h"

namespace simpler {
thread_local CoreState *current_core = nullptr;
thread_local std::atomic<uint64_t> *poll_counter = nullptr;
}

using simpler::CoreState;
using simpler::sim::SimulatedCore;

#define SIMPLER_EXPORT extern "C" __attribute__((visibility("default"), used))

SIMPLER_EXPORT SimulatedCore *simpler_current_core() { return simpler::current_core; }

SIMPLER_EXPORT void simpler_counter_add(SimulatedCore *owner, int32_t index, int32_t amount) {
    SIMPLER_REQUIRE(owner && index >= 0 && index < simpler::sim::kCounterCount, "simpler_counter_add: no such counter");
    // Cores of one block share a thread, so plain arithmetic is enough.
    CoreState *core = static_cast<CoreState *>(owner);
    core->counters[index] += amount;
    core->counters_used = true;
}

SIMPLER_EXPORT void simpler_counter_take(int32_t index, int32_t amount) {
    CoreState *core = simpler::current_core;
    SIMPLER_REQUIRE(core, "simpler_counter_take: called outside a kernel");
    SIMPLER_REQUIRE(index >= 0 && index < simpler::sim::kCounterCount, "simpler_counter_take: no such counter");
    while (core->counters[index] < amount) {
        core->awaited_counter = index;
        core->awaited_amount = amount;
        if (!core->in_fiber) throw simpler::BlockAborted{};
        core->pause();
        core->awaited_counter = -1;
    }
    core->counters[index] -= amount;
    core->counters_used = true;
}

// See kernel_prelude.h.
SIMPLER_EXPORT void simpler_core_yield() {
    CoreState *core = simpler::current_core;
    if (!core) return;
    if (simpler::poll_counter) {
        simpler::poll_counter->store(simpler::poll_counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (core->in_fiber) core->pause();
}
