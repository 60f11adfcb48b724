// The collectors of one diagnostics run. Null pointers are collectors that are off.
#pragma once
#include <memory>

#include "args_dump.h"
#include "graph_recorder.h"
#include "scope_recorder.h"
#include "timeline.h"

namespace simpler {

struct DiagnosticsOptions {
    int32_t swimlane_level;
    int32_t dump_level;
    int32_t pmu_event;
    int32_t dep_gen;
    int32_t scope_stats;
    const char *output_prefix;
    bool any() const { return swimlane_level || dump_level || pmu_event || dep_gen || scope_stats; }
};

class Diagnostics {
public:
    Diagnostics(const DiagnosticsOptions &options, bool a5);
    // Writes the files of all collectors; false when one could not be written (errno tells why).
    bool write(bool fatal, const Ring *rings, int ring_count, uint32_t map_capacity, int clusters);

    std::unique_ptr<Timeline> timeline;
    std::unique_ptr<GraphRecorder> graph;
    std::unique_ptr<ScopeRecorder> scopes;
    std::unique_ptr<ArgsDump> args;

private:
    DiagnosticsOptions options_;
    std::string folder_;
    bool a5_;
};

}  // namespace simpler
