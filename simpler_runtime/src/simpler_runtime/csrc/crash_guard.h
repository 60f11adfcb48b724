// Turns a crash inside a kernel (or an orchestration function) into a report instead of a dead process.
#pragma once
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>

namespace simpler {

struct CrashGuard {
    sigjmp_buf point;
    volatile int signal_number;
    void *volatile address;
    // Odd while the guarded code is inside the runtime, where an interruption by the monitor would leave locks behind.
    const std::atomic<uint64_t> *calls = nullptr;
};

// Counts its own making and unmaking in such a counter, which only this thread changes.
class InsideRuntime {
public:
    explicit InsideRuntime(std::atomic<uint64_t> &calls) : calls_(calls) { count(); }
    ~InsideRuntime() { count(); }
    InsideRuntime(const InsideRuntime &) = delete;
    InsideRuntime &operator=(const InsideRuntime &) = delete;

private:
    void count() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    std::atomic<uint64_t> &calls_;
};

extern thread_local CrashGuard *active_guard;

// Makes sure the handlers are in place; cheap when they are. Signals outside a guarded region go to the handler that
// was installed before.
void install_crash_handlers();

// An alternate signal stack for this thread, so that a stack overflow can be reported too.
class SignalStack {
public:
    SignalStack();
    ~SignalStack();

private:
    void *memory_ = nullptr;
    bool installed_ = false;
};

const char *signal_description(int signal_number);

// Remembers which kernel crashed: what it wrote before may bring the process down later, outside of any kernel. Then the
// handler names it on standard error.
void remember_kernel_crash(const char *kernel);

// Runs body() and returns true, or returns false after a crash (guard tells which). Destructors of the frames in
// between do not run. The mask is not saved: the handler does not block the signal.
template <typename Body>
inline bool run_guarded(CrashGuard &guard, Body &&body) {
    CrashGuard *const outer = active_guard;
    if (sigsetjmp(guard.point, 0) != 0) {
        active_guard = outer;
        return false;
    }
    active_guard = &guard;
    body();
    active_guard = outer;
    return true;
}

}  // namespace simpler
