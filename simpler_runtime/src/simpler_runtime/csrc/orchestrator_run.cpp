// One run from start to end: scopes, back-pressure, element access, and the table the orchestration calls through.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "orchestrator.h"

namespace simpler {

void log_line(int32_t level, const char *function, const char *file, int line, const char *format, va_list values);

namespace {
// Whose orchestration function this thread executes; for calls that do not say.
thread_local Orchestrator *orchestrating = nullptr;
}  // namespace

// ---- run ---------------------------------------------------------------------------------------------------------

void Orchestrator::run(const Callable &callable, const ChipTaskArgs &args, const RunOptions &options) {
    ErrorState &errors = engine_.errors;
    errors.clear();
    times_ = Times{};
    times_.start = monotonic_ns();
    host_build_graph_ = options.host_build_graph;
    callable_ = &callable;
    const int ring_count = host_build_graph_ ? 1 : PTO2_MAX_RING_DEPTH;
    for (int r = 0; r < ring_count; ++r) {
        if (!rings_[r].configure(options.rings.task_window[r], options.rings.heap[r], options.rings.dep_pool[r])) {
            errors.report(PTO2_ERROR_HEAP_RING_DEADLOCK, "cannot reserve ring %d: %u slots and %llu heap bytes are more than this process can have", r,
                          options.rings.task_window[r], static_cast<unsigned long long>(options.rings.heap[r]));
            return;
        }
        rings_[r].restart();
    }
    install_crash_handlers();
    SignalStack signal_stack;
    const uint64_t completed_before = engine_.completed();
    engine_.begin_run(options.interrupts_needed);
    submitted_tasks_ = 0;
    submits_ = 0;
    map_.reset_high_water();
    if (host_build_graph_ || options.serial) engine_.hold();

    if (options.diagnostics.any()) {
        engine_.diagnostics = options.diagnostics.create(options.diagnostics, arch_ == Architecture::kA5);
    }
    scopes_.clear();
    scope_tasks_.clear();
    scopes_.push_back(Scope{0, false});
    record_scope(true, nullptr, 0);
    times_.graph_start = monotonic_ns();
    engine_.graph_complete(false);
    build_graph(callable, args);
    engine_.graph_complete(true);
    times_.graph_end = monotonic_ns();
    if (!fatal() && scopes_.size() != 1) {
        errors.report(PTO2_ERROR_INVALID_ARGS, "the orchestration left %zu scopes open", scopes_.size() - 1);
    }
    while (!scopes_.empty()) close_scope(nullptr, 0);

    if (host_build_graph_ || options.serial) engine_.release_held();
    const uint64_t target = completed_before + submitted_tasks_;
    engine_.wait_until([&] { return engine_.completed() == target; }, -1, Doorbell::kIdle);
    engine_.end_run();
    times_.drained = monotonic_ns();
    for (int r = 0; r < ring_count; ++r) {
        // A worker counts a task before its very last touch; it is never more than a moment away.
        while (rings_[r].live()) {
            reclaim(rings_[r]);
            if (rings_[r].live()) cpu_pause();
        }
    }
    if (Diagnostics *const diagnostics = engine_.diagnostics) {
        engine_.diagnostics = nullptr;
        if (!diagnostics->write(fatal(), rings_, ring_count, TensorMap::kCapacity, clusters_)) {
            errors.report(PTO2_ERROR_INVALID_ARGS, "cannot write the diagnostics files below %s: %s",
                          options.diagnostics.output_prefix, std::strerror(errno));
        }
        delete diagnostics;
    }
    times_.end = monotonic_ns();
}

// Calls the orchestration library. Whatever leaves it abnormally becomes the error of the run.
void Orchestrator::build_graph(const Callable &callable, const ChipTaskArgs &args) {
    ErrorState &errors = engine_.errors;
    CrashGuard guard;
    guard.calls = &engine_.orchestration_calls;
    ignored_calls_ = 0;
    engine_.begin_orchestration();
    orchestrating = this;
    const bool survived = run_guarded(guard, [&] {
        try {
            callable.bind(this);
            const int supplied = args.tensor_count() + args.scalar_count();
            const PTO2OrchestrationConfig config = callable.config(args);
            // More is allowed: a distributed call adds a tensor that only orders the calls of a chip.
            if (config.expected_arg_count > supplied) {
                errors.report(PTO2_ERROR_INVALID_ARGS,
                              "the orchestration expects %d arguments (tensors and scalars), %d were supplied",
                              config.expected_arg_count, supplied);
                return;
            }
            callable.entry(args);
        } catch (const Abandoned &) {
        } catch (const ContractViolation &violation) {
            errors.report(PTO2_ERROR_ORCHESTRATION_FAULT, "orchestration: %s", violation.message);
        } catch (const std::exception &error) {
            errors.report(PTO2_ERROR_ORCHESTRATION_FAULT, "orchestration threw: %s", error.what());
        } catch (...) {
            errors.report(PTO2_ERROR_ORCHESTRATION_FAULT, "orchestration threw an exception of unknown type");
        }
    });
    orchestrating = nullptr;
    engine_.end_orchestration();
    if (!survived) {
        errors.report(PTO2_ERROR_ORCHESTRATION_FAULT, "the orchestration function crashed (%s, address %p)",
                      signal_description(guard.signal_number), guard.address);
    }
    callable.bind(nullptr);
}

// ---- scopes --------------------------------------------------------------------------------------------------------

void Orchestrator::scope_begin(PTO2ScopeMode mode, const char *file, int line) {
    if (refused()) return;
    const bool manual = mode == PTO2ScopeMode::MANUAL;
    if (scopes_.back().manual && !manual) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "auto scope nested inside manual scope is not supported (%s:%d)",
                              file ? file : "?", line);
        return;
    }
    if (scopes_.size() > PTO2_MAX_SCOPE_DEPTH) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "scopes are nested deeper than %d (%s:%d)", PTO2_MAX_SCOPE_DEPTH,
                              file ? file : "?", line);
        return;
    }
    scopes_.push_back(Scope{static_cast<uint32_t>(scope_tasks_.size()), manual});
    record_scope(true, file, line);
}

void Orchestrator::scope_end(const char *file, int line) {
    if (fatal()) return;  // destructors call this: nothing may be thrown
    if (scopes_.size() <= 1) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "rt_scope_end without a matching rt_scope_begin");
        return;
    }
    close_scope(file, line);
}

// The tasks of the scope lose its reference; nothing is waited for.
void Orchestrator::close_scope(const char *file, int line) {
    for (uint32_t i = scopes_.back().first_task; i < scope_tasks_.size(); ++i) {
        scope_tasks_[i]->scope_closed = true;
        scope_tasks_[i]->release();
    }
    scope_tasks_.resize(scopes_.back().first_task);
    record_scope(false, file, line);
    scopes_.pop_back();
}

void Orchestrator::record_scope(bool begin, const char *file, int line) {
    if (!engine_.diagnostics) return;
    const int number = ring_index();
    engine_.diagnostics->scope({begin, file, line, depth(), number, &rings_[number], map_.used()});
}

// ---- back-pressure ---------------------------------------------------------------------------------------------------

void Orchestrator::reclaim(Ring &ring) {
    for (Task *task = ring.oldest(); task && task->consumed(); task = ring.oldest()) {
        ring.pop();
        map_.remove_task(*task);
        storage_.release(task, task->storage_bytes);
    }
}

// The oldest task belongs to a scope that cannot end before the caller returns: waiting would be for ever.
bool Orchestrator::stuck_in_open_scope(const Ring &ring) const {
    const Task *oldest = ring.oldest();
    return oldest && !oldest->scope_closed;
}

void Orchestrator::report_exhausted(int32_t code, const Ring &ring, int ring_number, const char *resource, uint64_t used,
                                    uint64_t capacity, uint64_t wanted, const char *knob) {
    engine_.errors.report(code,
                          "ring %d: no room in the %s (used %llu of %llu, %llu more needed); current task %u, last alive task "
                          "%u; the oldest task belongs to a scope that is still open; raise %s",
                          ring_number, resource, static_cast<unsigned long long>(used),
                          static_cast<unsigned long long>(capacity), static_cast<unsigned long long>(wanted), ring.head(),
                          ring.tail(), knob);
}

bool Orchestrator::reserve_slot(Ring &ring, int ring_number) {
    if (!host_build_graph_) reclaim(ring);
    if (ring.has_slot()) return true;
    if (host_build_graph_) {
        engine_.errors.report(PTO2_ERROR_FLOW_CONTROL_DEADLOCK,
                              "Task Window Exhausted: the graph needs more than %u tasks; raise ring_task_window",
                              ring.window() - 1);
        return false;
    }
    engine_.wait_until(
        [&] {
            reclaim(ring);
            return ring.has_slot() || stuck_in_open_scope(ring) || fatal();
        },
        -1);
    if (ring.has_slot() && !fatal()) return true;
    const bool own_scope = scope_tasks_.size() - scopes_.back().first_task >= ring.window() - 1;
    report_exhausted(own_scope ? PTO2_ERROR_SCOPE_DEADLOCK : PTO2_ERROR_FLOW_CONTROL_DEADLOCK, ring, ring_number,
                     "task window", ring.live(), ring.window() - 1, 1, "ring_task_window");
    return false;
}

bool Orchestrator::reserve_heap(Ring &ring, int ring_number, uint64_t bytes, unsigned char *&memory) {
    memory = ring.heap.allocate(bytes);
    if (memory) return true;
    if (host_build_graph_) {
        engine_.errors.report(PTO2_ERROR_HEAP_RING_DEADLOCK,
                              "Graph Heap Exhausted: %llu of %llu bytes used, %llu more needed; raise ring_heap",
                              static_cast<unsigned long long>(ring.heap.used()),
                              static_cast<unsigned long long>(ring.heap.capacity()), static_cast<unsigned long long>(bytes));
        return false;
    }
    if (bytes <= ring.heap.capacity()) {
        engine_.wait_until(
            [&] {
                reclaim(ring);
                memory = ring.heap.allocate(bytes);
                return memory || stuck_in_open_scope(ring) || fatal();
            },
            -1);
        if (memory) return true;
    }
    report_exhausted(PTO2_ERROR_HEAP_RING_DEADLOCK, ring, ring_number, "output heap", ring.heap.used(),
                     ring.heap.capacity(), bytes, "ring_heap");
    return false;
}

bool Orchestrator::reserve_dep_entries(Ring &ring, int ring_number, uint32_t count) {
    const auto fits = [&] { return ring.dep_used + count <= ring.dep_capacity; };
    if (fits()) return true;
    if (host_build_graph_) {
        engine_.errors.report(PTO2_ERROR_DEP_POOL_OVERFLOW, "Fanin Capacity Exhausted: %u of %u entries used, %u more needed",
                              ring.dep_used, ring.dep_capacity, count);
        return false;
    }
    if (count <= ring.dep_capacity) {
        engine_.wait_until(
            [&] {
                reclaim(ring);
                return fits() || stuck_in_open_scope(ring) || fatal();
            },
            -1);
        if (fits() && !fatal()) return true;
    }
    report_exhausted(PTO2_ERROR_DEP_POOL_OVERFLOW, ring, ring_number, "dependency pool", ring.dep_used, ring.dep_capacity,
                     count, "ring_dep_pool");
    return false;
}

bool Orchestrator::reserve_writers(uint32_t count) {
    const auto fits = [&] { return map_.used() + count <= TensorMap::kCapacity; };
    const auto exhausted = [&] {
        for (Ring &ring : rings_) {
            if (ring.live() && !stuck_in_open_scope(ring)) return false;
        }
        return true;
    };
    if (!host_build_graph_) {
        engine_.wait_until(
            [&] {
                for (Ring &ring : rings_) reclaim(ring);
                return fits() || exhausted() || fatal();
            },
            -1);
    }
    if (fits() && !fatal()) return true;
    engine_.errors.report(PTO2_ERROR_TENSORMAP_OVERFLOW,
                          "%s: %u writers of tensors are live (limit %u); end scopes earlier so that they can be reclaimed",
                          host_build_graph_ ? "TensorMap Entry Pool Exhausted" : "the table of tensor writers is full",
                          map_.used(), TensorMap::kCapacity);
    return false;
}

// ---- element access --------------------------------------------------------------------------------------------------

void *Orchestrator::element_address(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, uint32_t size,
                                    const char *call) {
    const uint64_t element = get_element_size(tensor.dtype);
    if (tensor.buffer.addr == 0) {
        log_message(40, call, __FILE__, __LINE__, "the tensor has no memory");
        return nullptr;
    }
    if (ndims > tensor.ndims || size > 8) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "%s: %u indices for a tensor of rank %u", call, ndims, tensor.ndims);
        return nullptr;
    }
    for (uint32_t d = 0; d < ndims; ++d) {
        if (indices[d] >= tensor.shapes[d]) {
            engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "%s: index %u is out of range for dimension %u of extent %u", call,
                                  indices[d], d, tensor.shapes[d]);
            return nullptr;
        }
    }
    return reinterpret_cast<void *>(tensor.buffer.addr + tensor.compute_flat_offset(indices, ndims) * element);
}

bool Orchestrator::wait_for_users(const ChipTensor &tensor, bool writing, const char *call) {
    std::vector<Task *> users;
    bool issued = false;
    if (tensor.owner_task_id.is_valid()) {
        if (Task *owner = find_task(tensor.owner_task_id, issued)) users.push_back(owner);
    }
    map_.lookup(tensor, [&](WriterEntry &entry, Overlap) {
        users.push_back(entry.task);
        return false;
    });
    if (users.empty()) return true;
    if (host_build_graph_) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS,
                              "%s: the tensor is produced by a task, and with host_build_graph no task has run yet", call);
        return false;
    }
    const auto idle = [&] {
        for (const Task *task : users) {
            if (!task->completed()) return false;
            // Its scope may still hold a reference; every other one is an unfinished consumer.
            if (writing && task->references.load(std::memory_order_acquire) > (task->scope_closed ? 0 : 1)) return false;
        }
        return true;
    };
    const int64_t limit = PTO2_TENSOR_DATA_TIMEOUT_MS * 1000000ll;
    if (!engine_.wait_until([&] { return idle() || fatal(); }, limit)) {
        engine_.errors.report(PTO2_ERROR_TENSOR_WAIT_TIMEOUT, "%s: task %s that uses the tensor did not finish in %d ms", call,
                              TaskLabel(users[0]->id).text, PTO2_TENSOR_DATA_TIMEOUT_MS);
    }
    return !fatal();
}

bool Orchestrator::read_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, void *value,
                                uint32_t size) {
    if (refused()) return false;
    const void *address = element_address(tensor, ndims, indices, size, "get_tensor_data");
    if (!address || !wait_for_users(tensor, false, "get_tensor_data")) return false;
    const uint64_t element = get_element_size(tensor.dtype);
    std::memcpy(value, address, size < element ? size : element);
    return true;
}

void Orchestrator::write_element(const ChipTensor &tensor, uint32_t ndims, const uint32_t *indices, const void *value,
                                 uint32_t size) {
    if (refused()) return;
    void *address = element_address(tensor, ndims, indices, size, "set_tensor_data");
    if (!address || !wait_for_users(tensor, true, "set_tensor_data")) return;
    const uint64_t element = get_element_size(tensor.dtype);
    std::memcpy(address, value, size < element ? size : element);
}

// ---- table -----------------------------------------------------------------------------------------------------------

const OrchestrationOps &Orchestrator::table() {
    using Runtime = OrchestrationRuntime;
    static const OrchestrationOps kOps = [] {
        OrchestrationOps t = {};
        t.submit = [](Runtime *r, const MixedKernels &k, const TaskArgsView &a, bool dummy, SubmitResult &result) {
            called(r)->submit(k, a, dummy, result);
        };
        t.alloc = [](Runtime *r, const TensorCreateInfo *const *infos, uint32_t n, const char *error, SubmitResult &result) {
            called(r)->alloc(infos, n, error, result);
        };
        t.scope_begin = [](Runtime *r, PTO2ScopeMode mode, const char *file, int line) {
            called(r)->scope_begin(mode, file, line);
        };
        t.scope_end = [](Runtime *r, const char *file, int line) { called(r)->scope_end(file, line); };
        t.cluster_count = [](Runtime *r) -> int32_t { return static_cast<Orchestrator *>(r)->clusters_; };
        t.aiv_count = [](Runtime *r) -> int32_t { return 2 * static_cast<Orchestrator *>(r)->clusters_; };
        t.is_fatal = [](Runtime *r) { return static_cast<Orchestrator *>(r)->fatal(); };
        t.report_fatal = [](Runtime *r, int32_t code, const char *function, const char *format, va_list values) {
            const Called orchestrator = called(r);
            char text[1500];
            std::vsnprintf(text, sizeof text, format, values);
            orchestrator->engine_.errors.report(code, "%s: %s", function, text);
        };
        t.read_element = [](Runtime *r, const ChipTensor &tensor, uint32_t n, const uint32_t *i, void *v, uint32_t size) {
            return called(r)->read_element(tensor, n, i, v, size);
        };
        t.write_element = [](Runtime *r, const ChipTensor &tensor, uint32_t n, const uint32_t *i, const void *v,
                             uint32_t size) { called(r)->write_element(tensor, n, i, v, size); };
        t.log = [](int32_t level, const char *function, const char *file, int line, const char *format, va_list values) {
            if (!orchestrating) return log_line(level, function, file, line, format, values);
            const Called self = called(orchestrating);
            log_line(level, function, file, line, format, values);
            self->refused();
        };
        t.orchestration_done = [](Runtime *) {};
        return t;
    }();
    return kOps;
}

}  // namespace simpler
