// The table of calls between an orchestration library and the runtime that executes it.
//
// An orchestration shared object links to nothing: the runtime binds a table to the calling thread
// (framework_bind_runtime) before it calls the entry point.
#pragma once
#include <cstdarg>
#include <cstdint>

#include "error_codes.h"
#include "pto_arg_with_deps.h"

enum class PTO2ScopeMode : uint8_t { AUTO = 0, MANUAL = 1 };

struct MixedKernels {
    int32_t aic_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv0_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv1_kernel_id = INVALID_KERNEL_ID;
};

namespace simpler {

struct OrchestrationRuntime;

struct SubmitResult {
    PTO2TaskId id;
    const ChipTensor *tensors;      // arguments of the task, in the runtime's storage
    const uint8_t *output_index;    // positions of the allocated outputs in `tensors`
    uint32_t output_count;
};

struct OrchestrationOps {
    void (*submit)(OrchestrationRuntime *, const MixedKernels &, const TaskArgsView &, bool dummy, SubmitResult &);
    void (*alloc)(OrchestrationRuntime *, const TensorCreateInfo *const *infos, uint32_t count, const char *error,
                  SubmitResult &);
    void (*scope_begin)(OrchestrationRuntime *, PTO2ScopeMode, const char *file, int line);
    void (*scope_end)(OrchestrationRuntime *, const char *file, int line);
    int32_t (*cluster_count)(OrchestrationRuntime *);
    int32_t (*aiv_count)(OrchestrationRuntime *);
    bool (*is_fatal)(OrchestrationRuntime *);
    void (*report_fatal)(OrchestrationRuntime *, int32_t code, const char *function, const char *format, va_list);
    bool (*read_element)(OrchestrationRuntime *, const ChipTensor &, uint32_t ndims, const uint32_t *indices,
                         void *value, uint32_t size);
    void (*write_element)(OrchestrationRuntime *, const ChipTensor &, uint32_t ndims, const uint32_t *indices,
                          const void *value, uint32_t size);
    void (*log)(int32_t level, const char *function, const char *file, int line, const char *format, va_list);
    void (*orchestration_done)(OrchestrationRuntime *);
};

struct OrchestrationRuntime {
    const OrchestrationOps *ops;
};

}  // namespace simpler

using PTO2Runtime = simpler::OrchestrationRuntime;

namespace simpler {
inline thread_local OrchestrationRuntime *bound_runtime = nullptr;
}

extern "C" {
__attribute__((visibility("default"), weak)) void framework_bind_runtime(PTO2Runtime *runtime) {
    simpler::bound_runtime = runtime;
}
__attribute__((visibility("default"), weak)) PTO2Runtime *framework_current_runtime() {
    return simpler::bound_runtime;
}
}
