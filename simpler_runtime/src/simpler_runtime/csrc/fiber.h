// Stackful fibers: the members of a mixed block take turns on one thread instead of blocking it.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace simpler {

class Fiber;
extern thread_local Fiber *running_fiber;

class Fiber {
public:
    using Entry = void (*)(void *);
    static constexpr size_t kStackBytes = 1 << 20;

    Fiber() = default;
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;
    ~Fiber() {
        if (stack_) munmap(stack_, kStackBytes);
    }

    // Prepares a call of entry(argument); the first resume() starts it.
    void start(Entry entry, void *argument);
    // Runs the fiber until it suspends or its entry returns. True while it can be resumed again.
    bool resume();
    // Called inside a fiber: back to the caller of resume().
    void suspend();
    bool finished() const { return finished_; }

private:
    static void trampoline();
    void ensure_stack() {
        if (stack_) return;
        void *memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        stack_ = static_cast<unsigned char *>(memory);
        mprotect(stack_, 4096, PROT_NONE);  // an overflow faults instead of running into a neighbour
    }

    unsigned char *stack_ = nullptr;
    Entry entry_ = nullptr;
    void *argument_ = nullptr;
    bool finished_ = true;
#if defined(__x86_64__)
    void *own_sp_ = nullptr;
    void *caller_sp_ = nullptr;
#else
    ucontext_t own_;
    ucontext_t caller_;
#endif
};

}  // namespace simpler
