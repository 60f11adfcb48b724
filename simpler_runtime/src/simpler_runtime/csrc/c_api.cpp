// The C interface that the Python package calls through ctypes.
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interrupt.h"
#include "orchestrator.h"

namespace simpler {

std::atomic<int32_t> log_threshold{25};

void log_line(int32_t level, const char *function, const char *file, int line, const char *format, va_list values) {
    if (level < log_threshold.load(std::memory_order_relaxed)) return;
    const char *name = level >= 40 ? "ERROR" : level >= 30 ? "WARN" : level >= 25 ? "TIMING" : level >= 20 ? "INFO" : "DEBUG";
    char text[1024];
    std::vsnprintf(text, sizeof text, format, values);
    const char *slash = std::strrchr(file, '/');
    std::fprintf(stderr, "[mono_ns=%lld][T0x%lx][%s] %s: [%s:%d] %s\n", static_cast<long long>(monotonic_ns()),
                 static_cast<unsigned long>(pthread_self()), name, function, slash ? slash + 1 : file, line, text);
}

struct Device {
    Device(Architecture arch, int workers, int clusters) : engine(arch, workers), orchestrator(engine, arch, clusters) {}
    Engine engine;
    Orchestrator orchestrator;
};

}  // namespace simpler

using namespace simpler;

#define SIMPLER_EXPORT extern "C" __attribute__((visibility("default"), used))

// Mirrors simpler_runtime/_native.py.
struct SimplerRunRequest {
    const ChipTensor *tensors;
    const uint64_t *scalars;
    int32_t tensor_count;
    int32_t scalar_count;
    uint32_t task_window[PTO2_MAX_RING_DEPTH];
    uint64_t heap[PTO2_MAX_RING_DEPTH];
    uint32_t dep_pool[PTO2_MAX_RING_DEPTH];
    int32_t host_build_graph;
    int32_t serial;
    DiagnosticsOptions diagnostics;
    int32_t timing_markers;
    uint64_t callable_hash;
    int32_t interrupts_needed;  // that many SIGINT end the run; 0: none does
};

namespace {

// The spans of one run as [STRACE] lines.
void print_markers(const SimplerRunRequest &request, int64_t entered, const Orchestrator::Times &times) {
    static std::atomic<uint64_t> runs{0};
    const uint64_t run = runs.fetch_add(1);
    const int64_t left = monotonic_ns();
    const auto marker = [&](int depth, const char *name, int64_t from, int64_t to, const char *attributes) {
        if (to < from) return;
        std::fprintf(stderr,
                     "[mono_ns=%lld][T0x%lx][TIMING] run: [STRACE] v=1 pid=%d tid=%ld inv=%llu hid=%llx depth=%d name=chip.run%s "
                     "ts=%lld dur=%lld%s\n",
                     static_cast<long long>(left), static_cast<unsigned long>(pthread_self()), getpid(), syscall(SYS_gettid),
                     static_cast<unsigned long long>(run), static_cast<unsigned long long>(request.callable_hash), depth, name,
                     static_cast<long long>(from), static_cast<long long>(to - from), attributes);
    };
    marker(0, "", entered, left, "");
    marker(1, ".bind", entered, times.start, "");
    marker(2, ".bind.args", entered, times.start, "");
    marker(1, ".runner_run", times.start, times.end, "");
    marker(2, ".runner_run.device_wall", times.graph_start, times.drained, " clk=dev");
    marker(3, ".runner_run.device_wall.graph_build", times.graph_start, times.graph_end, " clk=dev");
    marker(3, ".runner_run.device_wall.orch", times.graph_start, times.graph_end, " clk=dev");
    marker(3, ".runner_run.device_wall.sched", times.graph_start, times.drained, " clk=dev");
    marker(1, ".validate", times.end, left, "");
}

}  // namespace

SIMPLER_EXPORT int32_t simpler_default_worker_count() {
    cpu_set_t set;
    const int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    // The thread that calls run() works too, once the graph is built.
    return cpus > 1 ? cpus - 1 : 1;
}

SIMPLER_EXPORT void simpler_set_log_level(int32_t level) { log_threshold.store(level); }

SIMPLER_EXPORT Device *simpler_device_create(int32_t arch, int32_t workers, int32_t clusters) {
    try {
        return new Device(arch == 1 ? Architecture::kA5 : Architecture::kA2A3, workers, clusters);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

SIMPLER_EXPORT void simpler_device_destroy(Device *device) { delete device; }

SIMPLER_EXPORT Callable *simpler_callable_load(const char *path, const char *entry, const char *config, int32_t kernel_count,
                                               const int32_t *func_ids, const char *const *kernel_paths,
                                               const char *const *kernel_names, const int32_t *core_kinds, char *error,
                                               int32_t error_size) {
    Callable *callable = new Callable;
    bool loaded = callable->load_orchestration(path, entry, config, error, error_size);
    for (int32_t i = 0; loaded && i < kernel_count; ++i) {
        loaded = callable->load_kernel(func_ids[i], kernel_paths[i], kernel_names[i],
                                       static_cast<sim::CoreKind>(core_kinds[i]), error, error_size);
    }
    if (loaded) return callable;
    delete callable;
    return nullptr;
}

SIMPLER_EXPORT void simpler_callable_free(Callable *callable) { delete callable; }

// Fails the run that the device is in, from any thread. Without one nothing happens.
SIMPLER_EXPORT void simpler_interrupt(Device *device) { device->engine.interrupt(); }

// 0, or minus the error code; `message` then holds the explanation.
SIMPLER_EXPORT int32_t simpler_run(Device *device, const Callable *callable, const SimplerRunRequest *request, char *message,
                                   int32_t message_size) {
    const int64_t entered = request->timing_markers ? monotonic_ns() : 0;
    const InterruptWatch interrupts(request->interrupts_needed > 0);
    ChipTaskArgs args;
    for (int32_t i = 0; i < request->tensor_count; ++i) args.add_input(request->tensors[i]);
    args.add_scalars(request->scalars, request->scalar_count);
    ErrorState &errors = device->engine.errors;
    if (args.has_error) {
        errors.clear();
        errors.report(PTO2_ERROR_INVALID_ARGS, "%s", args.error_msg);
    } else {
        RunOptions options;
        for (int r = 0; r < PTO2_MAX_RING_DEPTH; ++r) {
            options.rings.task_window[r] = request->task_window[r];
            options.rings.heap[r] = request->heap[r];
            options.rings.dep_pool[r] = request->dep_pool[r];
        }
        options.host_build_graph = request->host_build_graph != 0;
        options.serial = request->serial != 0;
        options.diagnostics = request->diagnostics;
        options.interrupts_needed = static_cast<uint32_t>(request->interrupts_needed);
        device->orchestrator.run(*callable, args, options);
        if (request->timing_markers) print_markers(*request, entered, device->orchestrator.times());
    }
    const int32_t code = errors.code();
    if (code == 0) return 0;
    const ErrorInfo &info = error_info(code);
    const bool scheduler = code >= 100;
    std::snprintf(message, message_size,
                  "%s\nPTO2 runtime failed: orch_error_code=%d sched_error_code=%d runtime_status=%d\n"
                  "error detail: %s=%d %s - %s\nerror hint: %s",
                  errors.text(), scheduler ? 0 : code, scheduler ? code : 0, -code,
                  scheduler ? "sched_error_code" : "orch_error_code", code, info.name, info.description, info.hint);
    if (log_threshold.load() <= 40 && code != PTO2_ERROR_INTERRUPTED) std::fprintf(stderr, "%s\n", message);
    return -code;
}
