// A simulated cluster: one cube core and two vector cores, and how one block of a task runs on them.
#pragma once
#include <exception>

#include "core_memory.h"
#include "crash_guard.h"
#include "errors.h"
#include "fiber.h"
#include "intrinsic.h"
#include "kernel_library.h"
#include "task.h"

namespace simpler {

inline constexpr int kKernelArgSlots = SPMD_GLOBAL_CONTEXT_INDEX + 1;

// Thrown into a core that waits for a counter nobody can raise any more.
struct BlockAborted {};

struct CoreState : sim::SimulatedCore {
    int32_t counters[sim::kCounterCount];
    bool counters_used;
    int32_t awaited_counter;  // -1: not waiting
    int32_t awaited_amount;
    bool abort;
    bool in_fiber;
    const Kernel *kernel;
    GlobalContext global;
    int64_t args[kKernelArgSlots];
    Fiber fiber;
    CrashGuard guard;
    CoreMemory storage;
    enum class Outcome { kFinished, kCrashed, kThrew, kAborted } outcome;
    char text[256];

    // Inside a fiber: lets the other cores of the block run.
    void pause() {
        CrashGuard *const own = active_guard;
        active_guard = nullptr;
        fiber.suspend();
        active_guard = own;
        if (abort) throw BlockAborted{};
    }
};

extern thread_local CoreState *current_core;
// Counts the polls of kernels on this thread; null on threads that run none.
extern thread_local std::atomic<uint64_t> *poll_counter;

inline const char *slot_name(int slot) {
    constexpr const char *kNames[] = {"AIC", "AIV0", "AIV1"};
    return kNames[slot];
}

// "r<ring>t<local>", the way tasks are named in every message.
struct TaskLabel {
    explicit TaskLabel(PTO2TaskId id) { std::snprintf(text, sizeof text, "r%ut%u", id.ring(), id.local()); }
    char text[32];
};

class Cluster {
public:
    explicit Cluster(Architecture arch) {
        for (int slot = 0; slot < 3; ++slot) {
            CoreState &core = cores_[slot];
            core.abi_version = sim::kCoreAbiVersion;
            core.kind = slot == 0 ? sim::CoreKind::kCube : sim::CoreKind::kVector;
            core.lane = slot == 2 ? 1 : 0;
            core.counters_used = true;
            core.awaited_counter = -1;
            core.global = GlobalContext{core.lane, {}};
            core.args[SPMD_GLOBAL_CONTEXT_INDEX] = reinterpret_cast<int64_t>(&core.global);
            core.args[SPMD_LOCAL_CONTEXT_INDEX] = reinterpret_cast<int64_t>(&local_);
            core.storage.attach(core, arch, core.kind);
        }
        local_.async_ctx = AsyncCtx{&completions_, MAX_COMPLETIONS_PER_TASK, 0};
    }

    // Runs block `index` of the task to its end. False after a fault, which is then in `errors`.
    bool run_block(const Task &task, int32_t index, ErrorState &errors) {
        local_.block_idx = index;
        local_.block_num = task.block_num;
        int slots[3];
        int count = 0;
        for (int slot = 0; slot < 3; ++slot) {
            if (!task.kernels[slot]) continue;
            prepare(cores_[slot], task, slot);
            slots[count++] = slot;
        }
        if (count == 1) {
            run_alone(cores_[slots[0]]);
        } else {
            run_together(slots, count, task, errors);
        }
        bool healthy = true;
        for (int i = 0; i < count; ++i) {
            CoreState &core = cores_[slots[i]];
            if (core.outcome == CoreState::Outcome::kFinished) continue;
            healthy = false;
            report(core, slots[i], task, index, errors);
        }
        if (completions_.count > 0 || completions_.error) healthy = healthy && await_completions(task, index, errors);
        return healthy;
    }

private:
    void prepare(CoreState &core, const Task &task, int slot) {
        int64_t *args = core.args;
        for (int i = 0; i < task.tensor_count; ++i) args[i] = reinterpret_cast<int64_t>(task.tensors + i);
        for (int i = 0; i < task.scalar_count; ++i) args[task.tensor_count + i] = static_cast<int64_t>(task.scalars[i]);
        core.kernel = task.kernels[slot];
        for (int peer = 0; peer < 3; ++peer) core.peers[peer] = task.kernels[peer] ? &cores_[peer] : nullptr;
        core.outcome = CoreState::Outcome::kFinished;
        if (core.counters_used) {
            std::memset(core.counters, 0, sizeof core.counters);
            core.counters_used = false;
        }
    }

    static void run_alone(CoreState &core) {
        current_core = &core;
        core.in_fiber = false;
        call_kernel(core);
        current_core = nullptr;
    }

    static void call_kernel(CoreState &core) {
        const bool survived = run_guarded(core.guard, [&core] {
            try {
                core.kernel->entry(core.args);
            } catch (const BlockAborted &) {
                core.outcome = CoreState::Outcome::kAborted;
            } catch (const ContractViolation &violation) {
                core.outcome = CoreState::Outcome::kThrew;
                std::snprintf(core.text, sizeof core.text, "%s", violation.message);
            } catch (const std::exception &error) {
                core.outcome = CoreState::Outcome::kThrew;
                std::snprintf(core.text, sizeof core.text, "%s", error.what());
            } catch (...) {
                core.outcome = CoreState::Outcome::kThrew;
                std::snprintf(core.text, sizeof core.text, "an exception of unknown type");
            }
        });
        if (!survived) core.outcome = CoreState::Outcome::kCrashed;
    }

    // The members take turns; a member that waits for a counter hands over to the others.
    void run_together(const int *slots, int count, const Task &task, ErrorState &errors) {
        CoreState *const outer_core = current_core;
        CrashGuard *const outer_guard = active_guard;
        for (int i = 0; i < count; ++i) {
            CoreState &core = cores_[slots[i]];
            core.in_fiber = true;
            core.abort = false;
            core.awaited_counter = -1;
            core.fiber.start([](void *argument) { call_kernel(*static_cast<CoreState *>(argument)); }, &core);
        }
        for (bool deadlocked = false;;) {
            bool progress = false, alive = false;
            for (int i = 0; i < count; ++i) {
                CoreState &core = cores_[slots[i]];
                if (core.fiber.finished()) continue;
                alive = true;
                const bool ready = core.awaited_counter < 0 || core.counters[core.awaited_counter] >= core.awaited_amount;
                if (!ready && !deadlocked) continue;
                core.abort = deadlocked;
                progress = true;
                current_core = &core;
                // Guards belong to a stack: none is active while stacks change.
                active_guard = nullptr;
                core.fiber.resume();
                active_guard = outer_guard;
            }
            if (!alive) break;
            if (!progress) {
                deadlocked = true;
                report_deadlock(slots, count, task, errors);
            }
        }
        current_core = outer_core;
    }

    void report_deadlock(const int *slots, int count, const Task &task, ErrorState &errors) const {
        char text[700];
        size_t used = 0;
        for (int i = 0; i < count && used < sizeof text; ++i) {
            const CoreState &core = cores_[slots[i]];
            if (core.fiber.finished()) {
                used += std::snprintf(text + used, sizeof text - used, "; %s '%s' has finished", slot_name(slots[i]),
                                      core.kernel->name);
            } else {
                used += std::snprintf(text + used, sizeof text - used, "; %s '%s' waits for counter %d (has %d, needs %d)",
                                      slot_name(slots[i]), core.kernel->name, core.awaited_counter,
                                      core.counters[core.awaited_counter], core.awaited_amount);
            }
        }
        errors.report(PTO2_ERROR_BLOCK_DEADLOCK, "block %d of task %s can never make progress%s", local_.block_idx,
                      TaskLabel(task.id).text, text);
    }

    static void report(const CoreState &core, int slot, const Task &task, int32_t index, ErrorState &errors) {
        char where[300];
        std::snprintf(where, sizeof where, "kernel '%s' (func_id %d, %s, block %d of %d) of task %s", core.kernel->name,
                      core.kernel->func_id, slot_name(slot), index, task.block_num, TaskLabel(task.id).text);
        switch (core.outcome) {
            case CoreState::Outcome::kCrashed:
                remember_kernel_crash(where);
                errors.report(PTO2_ERROR_KERNEL_FAULT, "%s crashed (%s, address %p)", where,
                              signal_description(core.guard.signal_number), core.guard.address);
                break;
            case CoreState::Outcome::kThrew:
                errors.report(PTO2_ERROR_KERNEL_FAULT, "%s threw: %s", where, core.text);
                break;
            default:
                errors.report(PTO2_ERROR_BLOCK_DEADLOCK, "%s waits for counter %d, which no other core of its block can raise",
                              where, core.awaited_counter);
        }
    }

    // The conditions that the kernels registered: the block ends when all hold, or when the run has failed.
    bool await_completions(const Task &task, int32_t index, ErrorState &errors) {
        const int32_t count = completions_.count, error = completions_.error;
        completions_.count = 0;
        completions_.error = 0;
        if (error) {
            errors.report(error, "block %d of task %s registered a completion condition that cannot be kept", index,
                          TaskLabel(task.id).text);
            return false;
        }
        for (int32_t i = 0; i < count; ++i) {
            const CompletionToken &token = completions_.tokens[i];
            auto *counter = reinterpret_cast<const uint32_t *>(token.addr);
            while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < token.expected_value) {
                if (errors.set()) return false;
                if (poll_counter) poll_counter->store(poll_counter->load() + 1, std::memory_order_relaxed);
                usleep(20);
            }
        }
        return true;
    }

    CoreState cores_[3];
    CompletionSlab completions_ = {};
    LocalContext local_ = {};
};

}  // namespace simpler
