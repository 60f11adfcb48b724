// Worker threads, dispatch and completion.
#include "engine.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "interrupt.h"

namespace simpler {

thread_local pid_t known_thread_id = 0;

namespace {

[[maybe_unused]] const int forget_on_fork = pthread_atfork(nullptr, nullptr, [] { known_thread_id = 0; });

int64_t predicate_value(const Task &task) {
    switch (task.predicate_size) {
        case 1: return *static_cast<const volatile int8_t *>(task.predicate_address);
        case 2: return *static_cast<const volatile int16_t *>(task.predicate_address);
        case 4: return *static_cast<const volatile int32_t *>(task.predicate_address);
        default: return *static_cast<const volatile int64_t *>(task.predicate_address);
    }
}

bool predicate_holds(const Task &task) {
    if (task.predicate_op == PredicateOp::NONE) return true;
    const int64_t value = predicate_value(task), target = task.predicate_target;
    switch (task.predicate_op) {
        case PredicateOp::EQ: return value == target;
        case PredicateOp::NE: return value != target;
        case PredicateOp::GT: return value > target;
        case PredicateOp::LT: return value < target;
        case PredicateOp::GE: return value >= target;
        case PredicateOp::LE: return value <= target;
        default: return true;
    }
}

int64_t process_cpu_ns() {
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000000000ll + used.tv_nsec;
}

int64_t thread_cpu_ns(pid_t thread) {
    // The clock of a thread by its number, as the kernel encodes it; it fails, harmlessly, once the thread has ended.
    timespec used = {};
    clock_gettime(static_cast<clockid_t>(~static_cast<uint32_t>(thread) << 3 | 6u), &used);
    return used.tv_sec * 1000000000ll + used.tv_nsec;
}

// Makes a thread leave the kernel or orchestration function it is in; see on_crash(). A thread that has ended is safe.
void interrupt_thread(pid_t thread) { syscall(SYS_tgkill, getpid(), thread, SIGURG); }

int64_t stall_limit_from_environment() {
    const char *text = std::getenv("SIMPLER_SCHEDULER_TIMEOUT_MS");
    const long value = text ? std::strtol(text, nullptr, 10) : 0;
    // Longer than on a device: simulated kernels share the processors with the rest of the machine.
    return (value > 0 ? value : 60000) * 1000000ll;
}

}  // namespace

Engine::Engine(Architecture arch, int worker_count)
    : orchestrator_lane(arch, worker_count), stall_limit_ns(stall_limit_from_environment()), arch_(arch),
      worker_count_(worker_count), queue_(worker_count + 1), workers_(new Worker[worker_count]) {
    install_crash_handlers();
    add_lane(&orchestrator_lane);
    // Asynchronous signals belong to the host program's own threads.
    sigset_t all, previous;
    sigfillset(&all);
    for (int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGURG}) sigdelset(&all, crash);
    pthread_sigmask(SIG_BLOCK, &all, &previous);
    for (int i = 0; i < worker_count; ++i) {
        workers_[i] = Worker{this, new Lane(arch, i), {}};
        add_lane(workers_[i].lane);
        pthread_create(&workers_[i].thread, nullptr, worker_main, &workers_[i]);
    }
    pthread_create(&monitor_, nullptr, monitor_main, this);
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

Engine::~Engine() {
    stopping_.store(true);
    monitor_wake_.fetch_add(1);
    futex_wake(monitor_wake_, 1);
    pthread_join(monitor_, nullptr);
    while (reserves_.load() > 0) sched_yield();
    idle_.notify_all();
    for (int i = 0; i < worker_count_; ++i) {
        pthread_join(workers_[i].thread, nullptr);
        delete workers_[i].lane;
    }
    delete[] workers_;
    while (spare_lanes_) {
        Lane *next = spare_lanes_->next_spare;
        delete spare_lanes_;
        spare_lanes_ = next;
    }
}

void *Engine::worker_main(void *argument) {
    Worker &worker = *static_cast<Worker *>(argument);
    SignalStack signal_stack;
    worker.engine->work(*worker.lane);
    return nullptr;
}

void Engine::work(Lane &lane) {
    constexpr int kSpins = 300;
    for (int spins = 0; !stopping_.load(std::memory_order_relaxed);) {
        Claim claim;
        if (take(lane, claim, true)) {
            run(claim, lane);
            spins = 0;
            continue;
        }
        // The orchestrator may wait for the last task: it cannot know which one that is, an idle worker can.
        if (spins == 0) doorbell_.ring(Doorbell::kIdle);
        if (++spins < kSpins) {
            for (int i = 0; i < 20; ++i) cpu_pause();
            continue;
        }
        idle_.announce();
        if (!queue_.empty() || stopping_.load()) idle_.retract();
        else idle_.sleep();
        spins = 1;
    }
}

bool Engine::take(Lane &lane, Claim &claim, bool waiting_too) {
    if (lane.next) {
        claim = Claim{lane.next, 0, 1};
        lane.next = nullptr;
        return true;
    }
    return queue_.pop(claim, waiting_too);
}

// Blocks that another thread has claimed and not started.
bool Engine::steal(Claim &claim) {
    for (Lane *lane = known_lanes_.load(std::memory_order_acquire); lane; lane = lane->next_known) {
        claim = lane->take_blocks(true);
        if (claim.count > 0) return true;
    }
    return false;
}

// What further threads could do: ready tasks, and claimed blocks that have not started.
int Engine::unstarted() const {
    int count = queue_.size();
    for (Lane *lane = known_lanes_.load(std::memory_order_acquire); lane; lane = lane->next_known) {
        count += lane->blocks_left();
    }
    return count;
}

bool Engine::help() {
    Claim claim;
    if (!take(orchestrator_lane, claim, graph_complete_)) return false;
    run(claim, orchestrator_lane);
    // The caller may stop helping now: do not sit on a released task.
    if (Task *task = orchestrator_lane.next) {
        orchestrator_lane.next = nullptr;
        enqueue(task);
    }
    return true;
}

void Engine::run(const Claim &claim, Lane &lane) {
    Task &task = *claim.task;
    Diagnostics *const timeline = diagnostics && diagnostics->timed ? diagnostics : nullptr;
    const uint64_t taken = timeline ? timeline_clock() : 0;
    int32_t finished = claim.count;  // blocks that others have taken over are theirs to count
    if (!errors.set()) {
        if (task.sync_start) {
            run_gang(task);
        } else {
            lane.begin(&task);
            const bool shared = claim.count > 1;
            if (shared) lane.share_blocks(claim);
            int32_t begun = 0;
            for (Claim now = shared ? lane.take_blocks(false) : claim; now.count > 0;
                 now = shared ? lane.take_blocks(false) : Claim{}) {
                const uint64_t start = timeline ? timeline_clock() : 0;
                if (timeline && begun == 0) timeline->phase(lane.index, false, taken, start);
                ++begun;
                if (!lane.cluster.run_block(task, now.first, errors)) break;
                if (timeline) timeline->block(task, now.first, lane.index, start, timeline_clock());
            }
            if (shared) finished = begun + lane.take_blocks(true).count;
            lane.end();
        }
    }
    if (finished == 0) return;  // other threads took every block
    const bool last = task.block_num == 1 || task.blocks_left.fetch_sub(finished, std::memory_order_acq_rel) == finished;
    if (!last) return;
    const uint64_t ended = timeline ? timeline_clock() : 0;
    complete(&task, lane);
    if (timeline) timeline->phase(lane.index, true, ended, timeline_clock());
}

// Blocks that must start together may wait for each other in memory, so each gets a thread of its own.
void Engine::run_gang(Task &task) {
    struct Member {
        Engine *engine;
        Task *task;
        int32_t block;
        pthread_t thread;
    };
    const auto member_main = [](void *argument) -> void * {
        Member &member = *static_cast<Member *>(argument);
        SignalStack signal_stack;
        Engine &engine = *member.engine;
        Lane *lane = engine.borrow_lane();
        lane->begin(member.task);
        Diagnostics *const timeline = engine.diagnostics && engine.diagnostics->timed ? engine.diagnostics : nullptr;
        const uint64_t start = timeline ? timeline_clock() : 0;
        const bool healthy = lane->cluster.run_block(*member.task, member.block, engine.errors);
        if (healthy && timeline) timeline->block(*member.task, member.block, lane->index, start, timeline_clock());
        lane->end();
        engine.return_lane(lane);
        return nullptr;
    };
    Member *members = new Member[task.block_num];
    int32_t started = 0;
    for (; started < task.block_num; ++started) {
        members[started] = Member{this, &task, started, {}};
        if (pthread_create(&members[started].thread, nullptr, member_main, &members[started]) != 0) {
            errors.report(PTO2_ERROR_REQUIRE_SYNC_START_INVALID, "cannot start %d threads for task %s", task.block_num,
                          TaskLabel(task.id).text);
            break;
        }
    }
    for (int32_t i = 0; i < started; ++i) pthread_join(members[i].thread, nullptr);
    delete[] members;
}

Lane *Engine::borrow_lane() {
    {
        SpinGuard guard(spare_lock_);
        if (Lane *lane = spare_lanes_) {
            spare_lanes_ = lane->next_spare;
            return lane;
        }
    }
    const int index = lane_count() + __atomic_fetch_add(&spare_count_, 1, __ATOMIC_RELAXED);
    Lane *lane = new Lane(arch_, index);
    add_lane(lane);
    return lane;
}

void Engine::add_lane(Lane *lane) {
    lane->next_known = known_lanes_.load(std::memory_order_relaxed);
    while (!known_lanes_.compare_exchange_weak(lane->next_known, lane, std::memory_order_release)) continue;
}

void Engine::return_lane(Lane *lane) {
    SpinGuard guard(spare_lock_);
    lane->next_spare = spare_lanes_;
    spare_lanes_ = lane;
}

bool Engine::runs_kernel(const Task &task) const {
    return task.active_slots > 0 && (task.predicate_op == PredicateOp::NONE || predicate_holds(task));
}

void Engine::complete(Task *task, Lane &lane) {
    // Tasks without work (dummies, false predicates) complete here one after the other, without recursion.
    Task *pending = task;
    task->next_ready = nullptr;
    uint64_t finished = 0;
    while (pending) {
        Task *done = pending;
        pending = done->next_ready;
        ++finished;
        if (diagnostics) diagnostics->after_completion(*done);
        Edge *edge = done->successors.exchange(closed_list(), std::memory_order_acq_rel);
        // The list was built by pushing in front: turn it so that consumers start in submission order.
        Edge *ordered = nullptr;
        while (edge) {
            Edge *next = edge->next;
            edge->next = ordered;
            ordered = edge;
            edge = next;
        }
        while (ordered) {
            Task *consumer = ordered->consumer;
            ordered = ordered->next;  // before the consumer may run: the edge lives in its storage
            if (consumer->pending.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
            if (!runs_kernel(*consumer)) {
                consumer->next_ready = pending;
                pending = consumer;
                continue;
            }
            if (diagnostics) diagnostics->before_dispatch(*consumer);
            if (!lane.next && consumer->block_num == 1) {
                lane.next = consumer;
            } else {
                enqueue(consumer);
            }
        }
        for (uint32_t i = 0; i < done->edge_count; ++i) done->edges[i].producer->release();
        done->release();
    }
    lane.completed.store(lane.completed.load(std::memory_order_relaxed) + finished, std::memory_order_release);
    doorbell_.ring(Doorbell::kProgress);
}

void Engine::enqueue(Task *task) {
    queue_.push(task);
    idle_.notify_one();
    for (int32_t extra = 1; extra < task->block_num && extra < worker_count_; ++extra) idle_.notify_one();
    doorbell_.ring(Doorbell::kIdle);
}

void Engine::submit_ready(Task *task) {
    if (!runs_kernel(*task)) {
        if (holding_ && task->predicate_op != PredicateOp::NONE) {
            // The operand is not computed yet: decide when the graph runs.
        } else {
            complete(task, orchestrator_lane);
            if (Task *next = orchestrator_lane.next) {
                orchestrator_lane.next = nullptr;
                submit_ready(next);
            }
            return;
        }
    }
    if (holding_) {
        task->next_ready = nullptr;
        if (held_tail_) held_tail_->next_ready = task;
        else held_head_ = task;
        held_tail_ = task;
        return;
    }
    if (diagnostics) diagnostics->before_dispatch(*task);
    enqueue(task);
}

void Engine::release_held() {
    holding_ = false;
    Task *task = held_head_;
    held_head_ = held_tail_ = nullptr;
    while (task) {
        Task *next = task->next_ready;
        submit_ready(task);
        task = next;
    }
}

uint64_t Engine::completed() const {
    uint64_t sum = 0;
    for (const Lane *lane = known_lanes_.load(std::memory_order_acquire); lane; lane = lane->next_known) {
        sum += lane->completed.load(std::memory_order_acquire);
    }
    return sum;
}

// ---- monitor -------------------------------------------------------------------------------------------------------

void Engine::begin_run(uint32_t interrupts_needed) {
    interrupts_needed_.store(interrupts_needed, std::memory_order_relaxed);
    interrupts_before_.store(interrupt_count(), std::memory_order_relaxed);
    interrupt_wanted_.store(false, std::memory_order_relaxed);
    runs_.fetch_add(1, std::memory_order_relaxed);
    active_.store(true, std::memory_order_seq_cst);
    if (!monitor_asleep_.load(std::memory_order_seq_cst)) return;
    monitor_wake_.fetch_add(1);
    futex_wake(monitor_wake_, 1);
}

void *Engine::monitor_main(void *argument) {
    static_cast<Engine *>(argument)->monitor();
    return nullptr;
}

// A chip has more cores than this machine has processors, and a kernel may wait for a task that has not started, on
// this chip or on another one. When nothing moves although tasks are ready, further threads take them: at once when
// all running kernels poll for something, hesitantly when they seem to compute. When nothing moves for very long, the
// run has failed.
void Engine::monitor() {
    constexpr int64_t kPeriod = 5000000;
    constexpr int64_t kComputePatience = 1000000000;
    constexpr int kIdlePeriods = 20;
    constexpr int kMaxReserves = 64, kMaxAtOnce = 8;
    uint64_t last_steps = 0;
    int64_t since = monotonic_ns(), cpu_since = process_cpu_ns(), patience = kComputePatience;
    for (int idle = 0; !stopping_.load();) {
        const uint32_t seen = monitor_wake_.load();
        if (active_.load()) {
            idle = 0;
            futex_wait(monitor_wake_, seen, kPeriod);
        } else if (++idle < kIdlePeriods) {
            futex_wait(monitor_wake_, seen, kPeriod);
            continue;
        } else {
            monitor_asleep_.store(true, std::memory_order_seq_cst);
            if (!active_.load(std::memory_order_seq_cst) && !stopping_.load()) futex_wait(monitor_wake_, seen, -1);
            monitor_asleep_.store(false);
            since = monotonic_ns();
            continue;
        }
        SpinGuard guard(monitor_lock_);
        if (!active_.load()) continue;
        const Activity now = observe();
        const int64_t time = monotonic_ns();
        watch_interrupts(time);
        watch_orchestration(time);
        if (now.steps != last_steps || now.running == 0) {
            last_steps = now.steps;
            since = time;
            cpu_since = process_cpu_ns();
            patience = kComputePatience;
            continue;
        }
        const bool all_poll = now.polling == now.running;
        if (all_poll || time - since >= patience) {
            // A barrier over all blocks of a task needs a thread for each.
            int wanted = std::min({unstarted(), kMaxReserves - reserves_.load(), all_poll ? kMaxAtOnce : 1});
            if (wanted > 0) patience *= 2;
            while (wanted-- > 0) start_reserve();
        }
        // On a loaded machine a kernel may just be slow: unless it waits, it must have had the processor for that long.
        const int64_t wall = time - since, cpu = process_cpu_ns() - cpu_since;
        if (wall >= stall_limit_ns && (all_poll || cpu >= stall_limit_ns * now.running || cpu < wall / 100)) {
            report_stall();
            since = time;
            cpu_since = process_cpu_ns();
        }
    }
}

Engine::Activity Engine::observe() {
    Activity activity;
    for (Lane *lane = known_lanes_.load(std::memory_order_acquire); lane; lane = lane->next_known) {
        activity.steps += lane->steps.load(std::memory_order_relaxed);
        const uint64_t polls = lane->polls.load(std::memory_order_relaxed);
        if (lane->running.load(std::memory_order_relaxed)) {
            ++activity.running;
            activity.polling += polls != lane->seen_polls;
        }
        lane->seen_polls = polls;
    }
    return activity;
}

void Engine::start_reserve() {
    pthread_t thread;
    reserves_.fetch_add(1);
    if (pthread_create(&thread, nullptr, reserve_main, this) != 0) {
        reserves_.fetch_sub(1);
        return;
    }
    pthread_detach(thread);
}

void *Engine::reserve_main(void *argument) {
    Engine &engine = *static_cast<Engine *>(argument);
    {
        SignalStack signal_stack;
        Lane *lane = engine.borrow_lane();
        Claim claim;
        while (!engine.stopping_.load(std::memory_order_relaxed) && (engine.take(*lane, claim, true) || engine.steal(claim))) {
            engine.run(claim, *lane);
        }
        engine.doorbell_.ring(Doorbell::kIdle);
        engine.return_lane(lane);
    }
    engine.reserves_.fetch_sub(1);
    return nullptr;
}

// Names the kernels that do not end and interrupts them, so that the run can be reported as failed.
void Engine::report_stall() {
    char names[600];
    size_t used = 0;
    for (const Lane *lane = known_lanes_.load(); lane; lane = lane->next_known) {
        if (!lane->running.load(std::memory_order_acquire) || used >= sizeof names) continue;
        const PTO2TaskId id = {lane->task_id.load(std::memory_order_relaxed)};
        used += std::snprintf(names + used, sizeof names - used, "%stask %s", used ? ", " : "", TaskLabel(id).text);
        for (int s = 0; s < 3; ++s) {
            const Kernel *kernel = lane->kernels[s].load(std::memory_order_relaxed);
            if (!kernel || used >= sizeof names) continue;
            used += std::snprintf(names + used, sizeof names - used, " kernel '%s' (%s)", kernel->name, slot_name(s));
        }
    }
    errors.report(PTO2_ERROR_SCHEDULER_TIMEOUT,
                  "PTO2 scheduler timeout sub_class=S1:running-stalled (detail=1): nothing has moved for %lld ms; running: %s",
                  static_cast<long long>(stall_limit_ns / 1000000), names);
    interrupt_kernels();
}

void Engine::interrupt_kernels() {
    for (const Lane *lane = known_lanes_.load(); lane; lane = lane->next_known) {
        if (lane->running.load(std::memory_order_acquire)) interrupt_thread(lane->thread.load());
    }
}

void Engine::begin_orchestration() {
    // Even, and never a value that the monitor saw in an earlier run.
    orchestration_calls.store((orchestration_calls.load() | 1) + 1);
    orchestrating_thread_.store(own_thread_id());
    orchestrating_.store(true, std::memory_order_release);
}

bool Engine::interrupted() const {
    const uint32_t needed = interrupts_needed_.load(std::memory_order_relaxed);
    return interrupt_wanted_.load(std::memory_order_relaxed) ||
           (needed > 0 && interrupt_count() - interrupts_before_.load(std::memory_order_relaxed) >= needed);
}

// Fails the run after Ctrl-C. Kernels get a moment to end by themselves.
void Engine::watch_interrupts(int64_t time) {
    constexpr int64_t kGrace = 100000000;
    const uint32_t run = runs_.load(std::memory_order_relaxed);
    if (run != run_seen_) interrupted_at_ = 0;
    run_seen_ = run;
    if (!interrupted()) {
        interrupted_at_ = 0;
    } else if (interrupted_at_ == 0) {
        interrupted_at_ = time;
        errors.report(PTO2_ERROR_INTERRUPTED, "interrupted");
    } else if (time - interrupted_at_ >= kGrace) {
        interrupt_kernels();
        interrupted_at_ = time;
    }
}

// An orchestration function that neither ends nor calls the runtime. After a failure every call is a no-op, which its
// loops may not notice: then patience is short. As for kernels, a thread that is merely slow must have had the
// processor for that long.
void Engine::watch_orchestration(int64_t time) {
    constexpr int64_t kPatienceAfterFailure = 300000000;
    const uint64_t calls = orchestration_calls.load(std::memory_order_relaxed);
    const bool failed = errors.set();
    const pid_t thread = orchestrating_thread_.load();
    if (!orchestrating_.load(std::memory_order_acquire) || (calls & 1) || calls != calls_seen_ || failed != failure_seen_) {
        calls_seen_ = calls;
        failure_seen_ = failed;
        calls_since_ = time;
        calls_cpu_since_ = thread_cpu_ns(thread);
        return;
    }
    const int64_t limit = failed ? kPatienceAfterFailure : stall_limit_ns;
    const int64_t wall = time - calls_since_, cpu = thread_cpu_ns(thread) - calls_cpu_since_;
    if (wall < limit || (cpu < limit && cpu >= wall / 100)) return;
    errors.report(PTO2_ERROR_SCHEDULER_TIMEOUT,
                  "PTO2 scheduler timeout sub_class=S5:orchestrator-starvation (detail=5): the orchestration function has "
                  "neither ended nor called the runtime for %lld ms",
                  static_cast<long long>(wall / 1000000));
    interrupt_thread(thread);
    calls_since_ = time;
    calls_cpu_since_ += cpu;
}

}  // namespace simpler
