// When blocks ran and tasks were submitted: the records behind chip_swimlane_records.json and pmu.csv.
#pragma once
#include <cstdint>
#include <vector>

#include "notifier.h"
#include "task.h"

namespace simpler {

class Timeline {
public:
    struct Block {
        uint64_t task;
        int32_t block;
        int32_t lane;
        int32_t kernels[3];  // -1: slot not used
        uint64_t start_ns;
        uint64_t end_ns;
    };
    struct Phase {
        int32_t lane;
        bool completes;     // releasing consumers; otherwise taking work and starting it
        uint64_t start_ns;
        uint64_t end_ns;
    };
    struct Submit {
        uint64_t task;
        uint64_t start_ns;
        uint64_t end_ns;
    };

    void block(const Task &task, int32_t index, int lane, uint64_t start, uint64_t end);
    void phase(int lane, bool completes, uint64_t start, uint64_t end);
    void submit(PTO2TaskId task, uint64_t start, uint64_t end) { submits_.push_back(Submit{task.raw, start, end}); }

    bool write_swimlane(const char *path, int level, uint64_t clock_hz, int clusters) const;
    bool write_pmu(const char *path, int event_type, uint64_t clock_hz, int clusters, bool a5) const;

private:
    SpinLock lock_;
    std::vector<Block> blocks_;
    std::vector<Phase> phases_;
    std::vector<Submit> submits_;
};

}  // namespace simpler
