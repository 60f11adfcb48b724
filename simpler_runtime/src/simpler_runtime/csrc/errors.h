// The first fatal error of a run: code, text, and the description and advice that belong to each code.
#pragma once
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "orchestration_abi.h"

namespace simpler {

struct ErrorInfo {
    int32_t code;
    const char *name;
    const char *description;
    const char *hint;
};

inline const ErrorInfo &error_info(int32_t code) {
    static constexpr ErrorInfo kInfos[] = {
        {1, "SCOPE_DEADLOCK", "one scope holds every slot of its task window",
         "split the scope or raise ring_task_window: the window must exceed the tasks of the largest scope by one, "
         "twice that is comfortable"},
        {2, "HEAP_RING_DEADLOCK", "the output heap of a ring cannot satisfy a request",
         "raise ring_heap or end scopes earlier so that outputs can be reclaimed"},
        {3, "FLOW_CONTROL_DEADLOCK", "the task window is full of tasks of enclosing scopes",
         "raise ring_task_window or flatten the scope nesting (depths of three and more share ring 3)"},
        {4, "DEP_POOL_OVERFLOW", "the dependency pool of a ring is exhausted", "raise ring_dep_pool"},
        {5, "INVALID_ARGS", "a call of the orchestration API was given invalid arguments",
         "correct the orchestration source"},
        {7, "REQUIRE_SYNC_START_INVALID", "a task that must start all blocks together asks for more than the cores",
         "limit the block count to rt_available_cluster_count() or rt_available_aiv_count()"},
        {8, "TENSOR_WAIT_TIMEOUT", "get/set_tensor_data waited too long for the tasks that use the tensor",
         "look for a kernel that does not return"},
        {9, "EXPLICIT_ORCH_FATAL", "the orchestration reported a fatal error", "see the message"},
        {10, "SCOPE_TASKS_OVERFLOW", "internal limit of tasks per scope", "report this as a fault of the runtime"},
        {11, "TENSORMAP_OVERFLOW", "the table of tensor writers is full",
         "end scopes earlier, or write fewer pieces per task"},
        {12, "ORCHESTRATION_FAULT", "the orchestration function left abnormally", "correct the orchestration source"},
        {100, "SCHEDULER_TIMEOUT", "no task made progress for too long",
         "look for a kernel that does not return; SIMPLER_SCHEDULER_TIMEOUT_MS sets the limit"},
        {101, "ASYNC_COMPLETION_INVALID", "a kernel registered a malformed completion condition", "correct the kernel"},
        {102, "ASYNC_WAIT_OVERFLOW", "a task registered more than 64 completion conditions", "split the task"},
        {105, "KERNEL_FAULT", "a kernel crashed or threw", "debug the named kernel"},
        {106, "BLOCK_DEADLOCK", "every core of a mixed block waits for another one",
         "match each pop with a push, and each wait with a set, between the cube and the vector code"},
        {107, "INTERRUPTED", "the program received an interrupt (Ctrl-C) during the run", "nothing to correct"},
    };
    for (const ErrorInfo &info : kInfos) {
        if (info.code == code) return info;
    }
    static constexpr ErrorInfo kUnknown = {0, "USER", "error reported by the orchestration", "see the message"};
    return kUnknown;
}

// First writer wins. Any thread may report; the text is read after the run has drained.
class ErrorState {
public:
    bool set() const { return code_.load(std::memory_order_relaxed) != 0; }
    int32_t code() const { return code_.load(std::memory_order_acquire); }
    const char *text() const { return text_; }

    void report(int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4))) {
        va_list values;
        va_start(values, format);
        vreport(code, format, values);
        va_end(values);
    }
    void vreport(int32_t code, const char *format, va_list values) {
        int32_t expected = 0;
        if (!claimed_.compare_exchange_strong(expected, 1)) return;
        std::vsnprintf(text_, sizeof text_, format, values);
        code_.store(code ? code : PTO2_ERROR_EXPLICIT_ORCH_FATAL, std::memory_order_release);
    }
    void clear() {
        code_.store(0);
        claimed_.store(0);
        text_[0] = 0;
    }

private:
    std::atomic<int32_t> claimed_{0};
    std::atomic<int32_t> code_{0};
    char text_[2048] = {};
};

}  // namespace simpler
