// What a run tells its diagnostics. The collectors are a library of their own (folder diagnostics), which is built and
// loaded when a run asks for one: most never do, and it would be a third of the build of the core.
#pragma once
#include "notifier.h"
#include "ring.h"

namespace simpler {

class Diagnostics;

struct DiagnosticsOptions {
    int32_t swimlane_level;
    int32_t dump_level;
    int32_t pmu_event;
    int32_t dep_gen;
    int32_t scope_stats;
    const char *output_prefix;
    Diagnostics *(*create)(const DiagnosticsOptions &options, bool a5);  // simpler_diagnostics_create, if any is on
    bool any() const { return swimlane_level || dump_level || pmu_event || dep_gen || scope_stats; }
};

inline uint64_t timeline_clock() { return static_cast<uint64_t>(monotonic_ns()); }

// A scope boundary and the state of its ring there.
struct ScopeBoundary {
    bool begin;
    const char *file;  // null: the runtime's own scope
    int line;
    int depth;
    int ring_number;
    const Ring *ring;
    uint32_t map_entries;
};

class Diagnostics {
public:
    virtual ~Diagnostics() = default;

    // Swimlane and PMU; times are those of timeline_clock(). Not called unless `timed`.
    bool timed = false;
    virtual void block(const Task &task, int32_t index, int lane, uint64_t start, uint64_t end) = 0;
    virtual void phase(int lane, bool completes, uint64_t start, uint64_t end) = 0;

    // Dependency graph, scope statistics, args dump. `args` as submitted, `task` as created.
    virtual void submit(const Task &task, const TaskArgsView &args, bool manual, uint64_t start) = 0;
    virtual void alloc(const Task &task) = 0;
    virtual void scope(const ScopeBoundary &boundary) = 0;
    virtual void before_dispatch(const Task &task) = 0;
    virtual void after_completion(const Task &task) = 0;

    // Writes the files of all collectors; false when one could not be written (errno tells why).
    virtual bool write(bool fatal, const Ring *rings, int ring_count, uint32_t map_capacity, int clusters) = 0;
};

}  // namespace simpler
