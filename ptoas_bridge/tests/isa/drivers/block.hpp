// A block of simulated cores (one Cube, two Vector lanes) on threads, with the counters the runtime would provide.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "driver.hpp"
#include "simulated_core.h"

using simpler::sim::CoreKind;
using simpler::sim::SimulatedCore;

namespace {

struct Counters {
    std::mutex mutex;
    std::condition_variable changed;
    int32_t value[simpler::sim::kCounterCount] = {};
    bool aborted = false;
};

std::map<SimulatedCore*, Counters*> all_counters;
thread_local SimulatedCore* this_core = nullptr;

}  // namespace

extern "C" SimulatedCore* simpler_current_core() { return this_core; }
extern "C" void simpler_counter_add(SimulatedCore* owner, int32_t index, int32_t amount) {
    Counters& counters = *all_counters.at(owner);
    std::lock_guard<std::mutex> lock(counters.mutex);
    counters.value[index] += amount;
    counters.changed.notify_all();
}
extern "C" void simpler_counter_take(int32_t index, int32_t amount) {
    Counters& counters = *all_counters.at(this_core);
    std::unique_lock<std::mutex> lock(counters.mutex);
    // A test must not hang: a wait of two seconds is a deadlock.
    const bool done =
        counters.changed.wait_for(lock, std::chrono::seconds(2), [&] { return counters.value[index] >= amount; });
    if (!done) pto::isa::fail("counter %d of a core never reached %d", index, amount);
    counters.value[index] -= amount;
}

// Runs cube() on the Cube core and vector(lane) on both lanes; returns the first error.
template <class Cube, class VectorBody>
inline void run_block(const Cube& cube, const VectorBody& vector) {
    constexpr size_t kBytes = 512 << 10;
    SimulatedCore cores[3] = {};
    Counters counters[3];
    std::vector<std::unique_ptr<unsigned char[]>> storage;
    const auto memory = [&] {
        storage.emplace_back(new unsigned char[kBytes + 64]());
        return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(storage.back().get()) + 63) &
                                                ~uintptr_t{63});
    };
    all_counters.clear();
    for (int i = 0; i < 3; ++i) {
        cores[i].abi_version = simpler::sim::kCoreAbiVersion;
        cores[i].kind = i == 0 ? CoreKind::kCube : CoreKind::kVector;
        cores[i].lane = i == 2 ? 1 : 0;
        for (int space = 0; space < simpler::sim::kMemorySpaceCount; ++space) {
            const bool is_vec = space == static_cast<int>(simpler::sim::MemorySpace::kVec);
            if (is_vec != (i == 0)) {
                cores[i].memory[space] = memory();
                cores[i].memory_size[space] = kBytes;
            }
        }
        for (int j = 0; j < 3; ++j) cores[i].peers[j] = &cores[j];
        all_counters[&cores[i]] = &counters[i];
    }
    std::string errors[3];
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&, i] {
            this_core = &cores[i];
            try {
                if (i == 0)
                    cube();
                else
                    vector(i - 1);
            } catch (const pto::Error& error) {
                errors[i] = error.what();
            }
        });
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors)
        if (!error.empty()) pto::isa::fail("%s", error.c_str());
}
