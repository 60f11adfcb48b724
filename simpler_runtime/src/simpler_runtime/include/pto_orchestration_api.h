// The orchestration API: what a generated orchestration source includes to build its task graph.
#pragma once
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if __has_include(<bits/stl_algobase.h>)
#include <bits/stl_algobase.h>  // std::min and std::max without the cost of <algorithm>
#else
#include <algorithm>
#endif

#include "orchestration_abi.h"

struct PTO2OrchestrationConfig {
    int expected_arg_count;
};

namespace simpler {

__attribute__((always_inline)) inline OrchestrationRuntime *current() { return bound_runtime; }

inline void log_message(int32_t level, const char *function, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
inline void log_message(int32_t level, const char *function, const char *file, int line, const char *format, ...) {
    if (!current()) return;
    va_list values;
    va_start(values, format);
    current()->ops->log(level, function, file, line, format, values);
    va_end(values);
}

inline void report_fatal(int32_t code, const char *function, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
inline void report_fatal(int32_t code, const char *function, const char *format, ...) {
    va_list values;
    va_start(values, format);
    current()->ops->report_fatal(current(), code, function, format, values);
    va_end(values);
}

constexpr PTO2ScopeMode scope_mode(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) { return mode; }

}  // namespace simpler

#define LOG_ERROR(...) ::simpler::log_message(40, __func__, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_WARN(...) ::simpler::log_message(30, __func__, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_TIMING(...) ::simpler::log_message(25, __func__, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_INFO(...) ::simpler::log_message(20, __func__, __FILE__, __LINE__, __VA_ARGS__)
#define LOG_DEBUG(...) ::simpler::log_message(10, __func__, __FILE__, __LINE__, __VA_ARGS__)

// For loops that poll memory: gives the processor to a thread that may change it.
#define SPIN_WAIT_HINT() ((void)sched_yield())

// Latches a fatal error: every later call is a no-op and the run fails with `code`.
#define rt_report_fatal(code, ...) ::simpler::report_fatal(code, __func__, __VA_ARGS__)

// The outputs the runtime allocated for one submitted task. Valid until the scope of the submit ends.
class TaskOutputTensors {
public:
    TaskOutputTensors() : result_{PTO2TaskId::invalid(), nullptr, nullptr, 0} {}
    explicit TaskOutputTensors(const simpler::SubmitResult &result) : result_(result) {}

    bool empty() const { return result_.output_count == 0; }
    uint32_t size() const { return result_.output_count; }
    PTO2TaskId task_id() const { return result_.id; }
    const ChipTensor &get_ref(uint32_t i) const & {
        SIMPLER_REQUIRE(i < result_.output_count, "TaskOutputTensors::get_ref: no such output");
        return result_.tensors[result_.output_index[i]];
    }
    const ChipTensor &get_ref(uint32_t i) && = delete;

private:
    simpler::SubmitResult result_;
};

namespace simpler {

template <typename Args>
inline TaskOutputTensors submit(const MixedKernels &kernels, const Args &args, bool dummy = false) {
    SubmitResult result;
    current()->ops->submit(current(), kernels, args.to_view(), dummy, result);
    return TaskOutputTensors(result);
}

}  // namespace simpler

inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgs &args) {
    SIMPLER_REQUIRE(kernels.aic_kernel_id >= 0 || kernels.aiv0_kernel_id >= 0 || kernels.aiv1_kernel_id >= 0,
                    "rt_submit_task: at least one kernel id must be set");
    return simpler::submit(kernels, args);
}
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const CoreTaskArgs &args) {
    return simpler::submit(MixedKernels{kernel_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args);
}
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const CoreTaskArgs &args) {
    return simpler::submit(MixedKernels{INVALID_KERNEL_ID, kernel_id, INVALID_KERNEL_ID}, args);
}
template <uint32_t N>
inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgsWithDeps<N> &args) {
    return simpler::submit(kernels, args);
}
template <uint32_t N>
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const CoreTaskArgsWithDeps<N> &args) {
    return simpler::submit(MixedKernels{kernel_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args);
}
template <uint32_t N>
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const CoreTaskArgsWithDeps<N> &args) {
    return simpler::submit(MixedKernels{INVALID_KERNEL_ID, kernel_id, INVALID_KERNEL_ID}, args);
}

// A node of the graph that runs no kernel.
inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs &args) {
    return simpler::submit(MixedKernels{}, args, true);
}

// Intermediates without a producer: a task that is complete the moment it exists.
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t count) {
    const TensorCreateInfo *pointers[256];
    const char *error = count > 256 ? "alloc_tensors: more than 256 tensors in one call" : nullptr;
    for (uint32_t i = 0; i < count && !error; ++i) pointers[i] = &infos[i];
    simpler::SubmitResult result;
    simpler::current()->ops->alloc(simpler::current(), pointers, count, error, result);
    return TaskOutputTensors(result);
}
inline TaskOutputTensors alloc_tensors(const CoreTaskArgs &args) {
    const TensorCreateInfo *pointers[CORE_MAX_TENSOR_ARGS];
    const char *error = args.has_error ? args.error_msg : nullptr;
    if (!error && args.scalar_count() > 0) error = "alloc_tensors takes no scalars";
    for (int i = 0; i < args.tensor_count() && !error; ++i) {
        if (args.tag(i) != TensorArgType::OUTPUT) error = "alloc_tensors takes only TensorCreateInfo outputs";
        pointers[i] = &args.tensor(i).create_info();
    }
    simpler::SubmitResult result;
    simpler::current()->ops->alloc(simpler::current(), pointers, static_cast<uint32_t>(args.tensor_count()), error,
                                   result);
    return TaskOutputTensors(result);
}
template <typename... Infos>
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo &first, const Infos &...rest) {
    static_assert((std::is_same<Infos, TensorCreateInfo>::value && ...), "alloc_tensors takes TensorCreateInfo objects");
    static_assert(sizeof...(Infos) < 256, "alloc_tensors: at most 256 tensors in one call");
    const TensorCreateInfo *pointers[] = {&first, &rest...};
    simpler::SubmitResult result;
    simpler::current()->ops->alloc(simpler::current(), pointers, 1 + sizeof...(Infos), nullptr, result);
    return TaskOutputTensors(result);
}

inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) {
    simpler::current()->ops->scope_begin(simpler::current(), mode, nullptr, 0);
}
inline void rt_scope_end() { simpler::current()->ops->scope_end(simpler::current(), nullptr, 0); }

class PTO2ScopeGuard {
public:
    explicit PTO2ScopeGuard(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, const char *file = nullptr, int line = 0)
        : file_(file), line_(line) {
        simpler::current()->ops->scope_begin(simpler::current(), mode, file, line);
    }
    ~PTO2ScopeGuard() { simpler::current()->ops->scope_end(simpler::current(), file_, line_); }
    PTO2ScopeGuard(const PTO2ScopeGuard &) = delete;
    PTO2ScopeGuard &operator=(const PTO2ScopeGuard &) = delete;

private:
    const char *file_;
    int line_;
};

#define SIMPLER_JOIN_(a, b) a##b
#define SIMPLER_JOIN(a, b) SIMPLER_JOIN_(a, b)
// A block whose tasks share a lifetime: PTO2_SCOPE() { ... } or PTO2_SCOPE(PTO2ScopeMode::MANUAL) { ... }.
#define PTO2_SCOPE(...)                                                                                            \
    if (PTO2ScopeGuard SIMPLER_JOIN(scope_guard_, __LINE__){::simpler::scope_mode(__VA_ARGS__), __FILE__, __LINE__}; \
        false) {                                                                                                   \
    } else
#define PTO2_SCOPE_GUARD(...) \
    PTO2ScopeGuard SIMPLER_JOIN(scope_guard_, __LINE__) { ::simpler::scope_mode(__VA_ARGS__), __FILE__, __LINE__ }
#define SIMPLER_SCOPE(...) PTO2_SCOPE(__VA_ARGS__)
#define SIMPLER_SCOPE_GUARD(...) PTO2_SCOPE_GUARD(__VA_ARGS__)

inline int32_t rt_available_cluster_count() { return simpler::current()->ops->cluster_count(simpler::current()); }
inline int32_t rt_available_aiv_count() { return simpler::current()->ops->aiv_count(simpler::current()); }
inline bool rt_is_fatal() { return simpler::current()->ops->is_fatal(simpler::current()); }
inline void rt_orchestration_done() { simpler::current()->ops->orchestration_done(simpler::current()); }

// One element, after every producer of the tensor has completed.
template <typename T = uint64_t>
inline T get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[]) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "an element has at most 8 plain bytes");
    unsigned char bytes[sizeof(T)] = {};
    simpler::current()->ops->read_element(simpler::current(), tensor, ndims, indices, bytes, sizeof(T));
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
}

// Writes one element after its producers completed and the tasks that read them finished.
template <typename T = uint64_t>
inline void set_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[], T value) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "an element has at most 8 plain bytes");
    simpler::current()->ops->write_element(simpler::current(), tensor, ndims, indices, &value, sizeof(T));
}

#ifdef SIMPLER_HOST_BUILD_GRAPH
#include "graph_execution.h"
#endif
