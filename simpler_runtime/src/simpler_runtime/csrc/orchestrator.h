// Builds the task graph of one run: allocation, dependency discovery, scopes, element access.
//
// Everything here runs on the thread that executes the orchestration function. Workers only see tasks after they have
// been published through their producers' successor lists or the ready queue.
#pragma once
#include <vector>

#include "engine.h"
#include "ring.h"
#include "task_storage.h"
#include "tensor_map.h"

namespace simpler {

struct RingSizes {
    uint32_t task_window[PTO2_MAX_RING_DEPTH];
    uint64_t heap[PTO2_MAX_RING_DEPTH];
    uint32_t dep_pool[PTO2_MAX_RING_DEPTH];
};

struct RunOptions {
    RingSizes rings;
    bool host_build_graph;
    bool serial;  // workers start when the graph is complete
    DiagnosticsOptions diagnostics;
    uint32_t interrupts_needed;  // 0: interrupts do not end the run
};

class Orchestrator : public OrchestrationRuntime {
public:
    Orchestrator(Engine &engine, Architecture arch, int clusters);

    // Runs one callable to its end. The result is in engine.errors.
    void run(const Callable &callable, const ChipTaskArgs &args, const RunOptions &options);

    static const OrchestrationOps &table();

    // When the last run built its graph and when its last task ended (monotonic ns).
    struct Times {
        int64_t start, graph_start, graph_end, drained, end;
    };
    const Times &times() const { return times_; }

private:
    struct Scope {
        uint32_t first_task;  // index in scope_tasks_
        bool manual;
    };
    struct Producer {
        Task *task;
        uint8_t flags;
    };

    bool fatal() const { return engine_.errors.set(); }

    // Leaves an orchestration function that keeps calling although the run has failed.
    struct Abandoned {};

    // After a failure every call is a no-op. A loop that waits for a result of such a call would never end, so the
    // function is left when it does not stop by itself.
    bool refused() {
        constexpr uint32_t kPatience = 100000;
        if (!fatal()) return false;
        if (++ignored_calls_ > kPatience) throw Abandoned{};
        return true;
    }

    // The orchestrator on entry of one of its functions; the monitor sees it inside until the object is gone.
    class Called {
    public:
        explicit Called(Orchestrator *target) : inside_(target->engine_.orchestration_calls), target_(target) {}
        Orchestrator *operator->() const { return target_; }

    private:
        InsideRuntime inside_;
        Orchestrator *target_;
    };
    static Called called(OrchestrationRuntime *runtime) { return Called(static_cast<Orchestrator *>(runtime)); }

    static void empty_result(SubmitResult &result) { result = SubmitResult{PTO2TaskId::invalid(), nullptr, nullptr, 0}; }

    void submit(const MixedKernels &kernels, const TaskArgsView &args, bool dummy, SubmitResult &result);
    void alloc(const TensorCreateInfo *const *infos, uint32_t count, const char *error, SubmitResult &result);
    void scope_begin(PTO2ScopeMode mode, const char *file, int line);
    void scope_end(const char *file, int line);
    bool read_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, void *value, uint32_t size);
    void write_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, const void *value, uint32_t size);

    bool resolve_kernels(const MixedKernels &kernels, const TaskArgsView &args, const Kernel *slots[3], int &active);
    bool check_launch(const TaskArgsView &args, const Kernel *const slots[3], int active);
    bool reserve_slot(Ring &ring, int ring_index);
    bool reserve_heap(Ring &ring, int ring_index, uint64_t bytes, unsigned char *&memory);
    bool reserve_dep_entries(Ring &ring, int ring_index, uint32_t count);
    bool reserve_writers(uint32_t count);
    void reclaim(Ring &ring);
    bool stuck_in_open_scope(const Ring &ring) const;
    void report_exhausted(int32_t code, const Ring &ring, int ring_index, const char *resource, uint64_t used,
                          uint64_t capacity, uint64_t wanted, const char *knob);

    bool collect_producers(const TaskArgsView &args, bool manual);
    void add_producer(Task *producer, uint8_t flags);
    void drop_producers();
    void build_graph(const Callable &callable, const ChipTaskArgs &args);
    void close_scope(const char *file, int line);
    void record_scope(bool begin, const char *file, int line);
    Task *find_task(PTO2TaskId id, bool &issued);
    Task *create_task(uint32_t tensors, uint32_t scalars, uint32_t outputs, uint32_t edges, int ring_index);
    void publish(Task &task, Ring &ring);
    void link(Task &task);
    static void fill(const TensorCreateInfo &info, unsigned char *memory, uint64_t bytes);
    void *element_address(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, uint32_t size,
                          const char *call);
    bool wait_for_users(const ChipTensor &tensor, bool writing, const char *call);

    int depth() const { return static_cast<int>(scopes_.size()) - 1; }
    int ring_index() const {
        const int last = host_build_graph_ ? 0 : PTO2_MAX_RING_DEPTH - 1;
        return depth() < last ? depth() : last;
    }

    Engine &engine_;
    uint32_t ignored_calls_ = 0;
    Architecture arch_;
    int clusters_;
    const Callable *callable_ = nullptr;
    Ring rings_[PTO2_MAX_RING_DEPTH];
    TensorMap map_;
    TaskStorage storage_;
    std::vector<Scope> scopes_;
    std::vector<Task *> scope_tasks_;
    std::vector<Producer> producers_;
    Times times_ = {};
    uint64_t submits_ = 0;
    uint64_t submitted_tasks_ = 0;
    bool host_build_graph_ = false;
};

}  // namespace simpler
