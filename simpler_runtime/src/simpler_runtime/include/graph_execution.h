// rt_submit_graph: a named sub-graph with boundary arguments (host_build_graph only).
//
// The contract is that the result equals running the body inline, and on a CPU that is also the cheapest way to do it:
// submitting a task costs about as much as copying a recorded one. So nothing is recorded.
#pragma once
#include "task_args.h"

struct GraphKey {
    uint64_t value;
};

constexpr GraphKey make_graph_key(const char *name) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3ull;
    return GraphKey{hash};
}
#define GRAPH_KEY(name) make_graph_key(name)

struct GraphSubmitResult {
    bool execute_block;        // the body ran inline
    bool recording;
    PTO2TaskId task_id;        // invalid: the body's own tasks carry the dependencies
    void *recording_handle;
};

namespace simpler {

template <typename Function, typename... Config>
inline GraphSubmitResult run_graph_inline(Function body, const GraphTaskArgs &args, Config... config) {
    static_assert((std::is_arithmetic<Config>::value && ...), "graph configuration values are integers, bool or floating");
    if (args.has_error) report_fatal(PTO2_ERROR_INVALID_ARGS, "rt_submit_graph", "%s", args.error_msg);
    if (args.tensor_count() == 0) {
        report_fatal(PTO2_ERROR_INVALID_ARGS, "rt_submit_graph", "a graph needs at least one boundary tensor");
    }
    if (!current()->ops->is_fatal(current())) body(args, config...);
    return GraphSubmitResult{true, false, PTO2TaskId::invalid(), nullptr};
}

}  // namespace simpler

template <typename... Parameters, typename... Config>
inline GraphSubmitResult rt_submit_graph(void (*body)(const GraphTaskArgs &, Parameters...), const GraphTaskArgs &args,
                                         Config... config) {
    return simpler::run_graph_inline(body, args, config...);
}
template <typename... Parameters, typename... Config>
inline GraphSubmitResult rt_submit_graph(GraphKey, void (*body)(const GraphTaskArgs &, Parameters...),
                                         const GraphTaskArgs &args, Config... config) {
    return simpler::run_graph_inline(body, args, config...);
}
