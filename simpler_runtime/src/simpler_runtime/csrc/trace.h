// Recording of a diagnostics run: what was submitted, why tasks wait for each other, and when blocks ran.
#pragma once
#include <time.h>

#include <cstdint>
#include <vector>

#include "notifier.h"
#include "overlap.h"
#include "task.h"

namespace simpler {

inline uint64_t trace_clock() { return static_cast<uint64_t>(monotonic_ns()); }

struct BlockRecord {
    uint64_t task;
    int32_t block;
    int32_t lane;
    int32_t slots;  // bit 0 AIC, bit 1 AIV0, bit 2 AIV1
    uint64_t start_ns;
    uint64_t end_ns;
};

class Trace {
public:
    void block(const Task &task, int32_t index, int lane, uint64_t start, uint64_t end) {
        int32_t slots = 0;
        for (int s = 0; s < 3; ++s) slots |= task.kernels[s] ? 1 << s : 0;
        SpinGuard guard(lock_);
        blocks.push_back(BlockRecord{task.id.raw, index, lane, slots, start, end});
    }

    std::vector<BlockRecord> blocks;

private:
    SpinLock lock_;
};

}  // namespace simpler
