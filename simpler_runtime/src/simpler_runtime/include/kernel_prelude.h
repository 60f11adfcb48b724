// Forced in front of every kernel source: gives the entry point external visibility, and tells the runtime when a
// kernel waits.
#pragma once
#include <sched.h>

#include <cstdint>

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t *args);

// A kernel that yields is a kernel that polls for something: the runtime lets the other cores of its block run, and
// starts tasks that would otherwise have to wait for a free thread.
extern "C" __attribute__((weak)) void simpler_core_yield();
static inline int simpler_yield_or_sleep() {
    if (simpler_core_yield) simpler_core_yield();
    return (sched_yield)();
}
#define sched_yield() simpler_yield_or_sleep()
