// The scheduler: a pool of worker threads that runs ready tasks and releases what waited for them.
#pragma once
#include <pthread.h>

#include <new>

#include "cluster.h"
#include "diagnostics.h"
#include "ready_queue.h"

namespace simpler {

extern thread_local pid_t known_thread_id;  // 0 in a new thread, and after a fork
inline pid_t own_thread_id() {
    if (known_thread_id == 0) known_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    return known_thread_id;
}

// What a thread needs to run tasks.
struct Lane {
    Lane(Architecture arch, int lane_index) : cluster(arch), index(lane_index) {}

    Cluster cluster;
    int index;
    Task *next = nullptr;                      // released by the task that just completed: runs without queueing
    alignas(64) std::atomic<uint64_t> completed{0};
    std::atomic<uint64_t> steps{0};            // moves when the lane starts or ends something
    std::atomic<bool> running{false};          // a kernel
    // Copies for the monitor, which must not look into a task that may be recycled meanwhile.
    std::atomic<uint64_t> task_id{0};
    std::atomic<const Kernel *> kernels[3] = {};
    std::atomic<uint64_t> polls{0};            // moves while its kernel waits for something in memory
    std::atomic<pid_t> thread{0};              // who runs it
    // The blocks of the present task that have not started, for other threads to take when this one does not get on.
    std::atomic<uint64_t> blocks{0};           // turn << 32 | next << 16 | end
    std::atomic<Task *> shared{nullptr};       // whose blocks they are; changes only while there are none
    Lane *next_spare = nullptr;
    Lane *next_known = nullptr;
    uint64_t seen_polls = 0;                   // the monitor's

    void begin(Task *task) {
        thread.store(own_thread_id(), std::memory_order_relaxed);
        poll_counter = &polls;
        steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        task_id.store(task->id.raw, std::memory_order_relaxed);
        for (int s = 0; s < 3; ++s) kernels[s].store(task->kernels[s], std::memory_order_relaxed);
        running.store(true, std::memory_order_release);
    }
    void end() {
        running.store(false, std::memory_order_relaxed);
        steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    void share_blocks(const Claim &claim) {
        const uint64_t turn = (blocks.load(std::memory_order_relaxed) >> 32) + 1;
        shared.store(claim.task, std::memory_order_relaxed);
        blocks.store(turn << 32 | static_cast<uint64_t>(claim.first) << 16 | static_cast<uint64_t>(claim.first + claim.count),
                     std::memory_order_release);
    }
    // The first block that has not started, or all of them when `all`; none: a count of 0. From any thread.
    Claim take_blocks(bool all) {
        uint64_t seen = blocks.load(std::memory_order_acquire);
        for (;;) {
            const int32_t next = static_cast<int32_t>(seen >> 16 & 0xffff), end = static_cast<int32_t>(seen & 0xffff);
            if (next >= end) return {};
            const int32_t count = all ? end - next : 1;
            // Another task's blocks would be another turn, so the pointer is right if the exchange succeeds.
            Task *const task = shared.load(std::memory_order_relaxed);
            const uint64_t left = (seen & ~0xffff0000ull) | static_cast<uint64_t>(next + count) << 16;
            if (blocks.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) {
                return Claim{task, next, count};
            }
        }
    }
    int blocks_left() const {
        const uint64_t seen = blocks.load(std::memory_order_relaxed);
        return static_cast<int>(seen & 0xffff) - static_cast<int>(seen >> 16 & 0xffff);
    }
    alignas(64) char end_of_lane = 0;
};

class Engine {
public:
    Engine(Architecture arch, int worker_count);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    // A task whose producers have all completed, from the orchestrator. Nothing runs while the engine holds.
    void submit_ready(Task *task);
    // Completes a task that runs no kernel (and whatever inline tasks that releases).
    void complete_inline(Task *task) { complete(task, orchestrator_lane); }
    // Runs one ready task on the calling (orchestrator) thread; false when there is none. While the graph is being built
    // tasks that may wait are not for it: what they wait for may not have been submitted yet.
    bool help();
    void graph_complete(bool complete) { graph_complete_ = complete; }
    // Waits until done() holds, running tasks meanwhile. False when no task ended for `limit_ns` (negative: no limit).
    template <typename Done>
    bool wait_until(Done done, int64_t limit_ns, Doorbell::Interest interest = Doorbell::kProgress);

    // Brackets a run: meanwhile a monitor looks after kernels that do not end, and after interrupts: that many end the
    // run, 0 means that none does.
    void begin_run(uint32_t interrupts_needed);
    void end_run() {
        SpinGuard guard(monitor_lock_);
        active_.store(false, std::memory_order_relaxed);
    }
    // Fails the present run, from any thread.
    void interrupt() { interrupt_wanted_.store(true); }

    // Host-build-graph mode: keeps ready tasks back until the graph is complete.
    void hold() { holding_ = true; }
    void release_held();

    uint64_t completed() const;
    int worker_count() const { return worker_count_; }
    int lane_count() const { return worker_count_ + 1; }
    Lane &lane(int index) { return index < worker_count_ ? *workers_[index].lane : orchestrator_lane; }

    ErrorState errors;
    Diagnostics *diagnostics = nullptr;  // set while a diagnostics run is on
    Lane orchestrator_lane;
    int64_t stall_limit_ns;

    // Tells the monitor that the calling thread runs an orchestration function from now on, or no longer.
    void begin_orchestration();
    void end_orchestration() { orchestrating_.store(false, std::memory_order_release); }
    // Goes up when the orchestration function enters the runtime and when it leaves it again.
    std::atomic<uint64_t> orchestration_calls{0};

private:
    struct Worker {
        Engine *engine;
        Lane *lane;
        pthread_t thread;
    };

    static void *worker_main(void *argument);
    void work(Lane &lane);
    bool take(Lane &lane, Claim &claim, bool waiting_too);
    bool steal(Claim &claim);
    int unstarted() const;
    void run(const Claim &claim, Lane &lane);
    void run_gang(Task &task);
    void complete(Task *task, Lane &lane);
    bool runs_kernel(const Task &task) const;
    void enqueue(Task *task);
    Lane *borrow_lane();
    void return_lane(Lane *lane);
    static void *monitor_main(void *argument);
    static void *reserve_main(void *argument);
    void monitor();
    void start_reserve();
    struct Activity {
        uint64_t steps = 0;
        int running = 0;
        int polling = 0;
    };
    Activity observe();
    void report_stall();
    void interrupt_kernels();
    void watch_interrupts(int64_t time);
    void watch_orchestration(int64_t time);
    bool interrupted() const;
    void add_lane(Lane *lane);

    Architecture arch_;
    int worker_count_;
    ReadyQueue queue_;
    Notifier idle_;
    Doorbell doorbell_;
    std::atomic<bool> stopping_{false};
    bool holding_ = false;
    bool graph_complete_ = false;
    Task *held_head_ = nullptr;
    Task *held_tail_ = nullptr;
    Worker *workers_;
    SpinLock spare_lock_;
    Lane *spare_lanes_ = nullptr;
    int spare_count_ = 0;
    std::atomic<Lane *> known_lanes_{nullptr};  // grows only, so it can be walked without a lock
    std::atomic<int32_t> reserves_{0};
    pthread_t monitor_;
    SpinLock monitor_lock_;  // held while the monitor judges a run, which cannot end meanwhile
    std::atomic<bool> active_{false};
    std::atomic<bool> monitor_asleep_{false};
    std::atomic<uint32_t> monitor_wake_{0};
    std::atomic<uint32_t> interrupts_needed_{0};
    std::atomic<uint32_t> interrupts_before_{0};  // the run
    std::atomic<bool> interrupt_wanted_{false};
    std::atomic<bool> orchestrating_{false};
    std::atomic<pid_t> orchestrating_thread_{0};
    std::atomic<uint32_t> runs_{0};
    // The monitor's.
    uint32_t run_seen_ = 0;
    int64_t interrupted_at_ = 0;
    uint64_t calls_seen_ = 0;
    bool failure_seen_ = false;
    int64_t calls_since_ = 0, calls_cpu_since_ = 0;
};

template <typename Done>
bool Engine::wait_until(Done done, int64_t limit_ns, Doorbell::Interest interest) {
    constexpr int kSpins = 200;
    if (done()) return true;
    int64_t start = monotonic_ns();
    uint64_t ended = completed();
    for (int spins = 0;; ++spins) {
        if (help()) {
            spins = 0;
            if (done()) return true;
            continue;
        }
        if (done()) return true;
        if (spins < kSpins) {
            for (int i = 0; i < 20; ++i) cpu_pause();
            continue;
        }
        if (limit_ns >= 0) {
            const int64_t now = monotonic_ns();
            const uint64_t count = completed();
            if (count != ended) start = now;
            ended = count;
            if (now - start > limit_ns) return false;
        }
        const uint32_t seen = doorbell_.arm(interest);
        if (done() || queue_.available(graph_complete_)) {
            doorbell_.disarm();
            continue;
        }
        doorbell_.wait(seen, 20000000);
        spins = kSpins / 2;
    }
}

}  // namespace simpler
