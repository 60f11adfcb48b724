// What a diagnostics run records on the orchestrator thread: tasks, the reason of every edge, scope boundaries.
#pragma once
#include <string>
#include <vector>

#include "overlap.h"
#include "ring.h"
#include "task.h"

namespace simpler {

class DependencyRecorder {
public:
    void begin_task(PTO2TaskId id) { current_ = id; }
    void end_task(const Task &) {}
    void explicit_edge(PTO2TaskId, uint8_t) {}
    void creator_edge(PTO2TaskId, int, const ChipTensor &) {}
    void writer_edge(const Task &, int, const ChipTensor &, const Region &, Overlap) {}
    void scope(bool, const char *, int, int, int, const Ring &, uint32_t) {}

private:
    PTO2TaskId current_ = PTO2TaskId::invalid();
};

}  // namespace simpler
