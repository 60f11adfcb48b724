// Spin lock, processor pause and a notifier that lets idle threads sleep without losing wake-ups.
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace simpler {

inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

inline int64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// Short critical sections only. A holder that was preempted costs the waiters a yield, not a burnt time slice.
class SpinLock {
public:
    void lock() {
        for (int spins = 0; flag_.exchange(true, std::memory_order_acquire); ++spins) {
            for (int i = 0; i < 64 && flag_.load(std::memory_order_relaxed); ++i) cpu_pause();
            if (spins > 4) sched_yield();
        }
    }
    void unlock() { flag_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> flag_{false};
};

class SpinGuard {
public:
    explicit SpinGuard(SpinLock &lock) : lock_(lock) { lock_.lock(); }
    ~SpinGuard() { lock_.unlock(); }

private:
    SpinLock &lock_;
};

inline void futex_wait(std::atomic<uint32_t> &word, uint32_t expected, int64_t timeout_ns) {
    timespec limit = {static_cast<time_t>(timeout_ns / 1000000000), static_cast<long>(timeout_ns % 1000000000)};
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected,
            timeout_ns < 0 ? nullptr : &limit, nullptr, 0);
}
inline void futex_wake(std::atomic<uint32_t> &word, int count) {
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// A sleeper announces itself, looks for work once more, then waits for a token. A waker that made work visible
// turns one announced sleeper into a token; each announcement is paid with exactly one token or taken back.
class Notifier {
public:
    void announce() {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
    }
    // Takes the announcement back; when a waker already paid for it, uses up its token.
    void retract() {
        if (!take_sleeper()) consume_token();
    }
    void sleep() { consume_token(); }

    void notify_one() {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_relaxed) > 0 && take_sleeper()) {
            tokens_.fetch_add(1, std::memory_order_release);
            futex_wake(tokens_, 1);
        }
    }
    void notify_all() {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        while (take_sleeper()) {
            tokens_.fetch_add(1, std::memory_order_release);
            futex_wake(tokens_, 1);
        }
    }

private:
    bool take_sleeper() {
        int32_t count = sleepers_.load(std::memory_order_relaxed);
        while (count > 0) {
            if (sleepers_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return true;
        }
        return false;
    }
    void consume_token() {
        for (;;) {
            uint32_t count = tokens_.load(std::memory_order_acquire);
            while (count > 0) {
                if (tokens_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return;
            }
            futex_wait(tokens_, 0, -1);
        }
    }

    alignas(64) std::atomic<int32_t> sleepers_{0};
    alignas(64) std::atomic<uint32_t> tokens_{0};
};

// One thread (the orchestrator) waits for "something changed". Signalling costs one load while it is awake.
class Doorbell {
public:
    // kIdle: only workers that ran out of work need to signal. kProgress: every completion matters.
    enum Interest : int32_t { kNone, kIdle, kProgress };

    uint32_t arm(Interest interest) {
        const uint32_t seen = rings_.load(std::memory_order_relaxed);
        interest_.store(interest, std::memory_order_seq_cst);
        return seen;
    }
    void disarm() { interest_.store(kNone, std::memory_order_relaxed); }
    void wait(uint32_t seen, int64_t timeout_ns) {
        futex_wait(rings_, seen, timeout_ns);
        disarm();
    }
    // The caller has just changed the state that the waiter looks at, with an atomic read-modify-write.
    void ring(Interest at_least) {
        if (interest_.load(std::memory_order_seq_cst) < at_least) return;
        rings_.fetch_add(1, std::memory_order_release);
        futex_wake(rings_, 1);
    }

private:
    alignas(64) std::atomic<int32_t> interest_{kNone};
    std::atomic<uint32_t> rings_{0};
};

}  // namespace simpler
