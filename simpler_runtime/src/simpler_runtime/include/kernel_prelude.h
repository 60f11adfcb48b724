// Forced in front of every kernel source: empty device qualifiers, external visibility of the entry point, and a way
// to tell the runtime that a kernel waits.
#pragma once
#include <sched.h>

#include <cstdint>

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t *args);

// Address spaces and function kinds of the device compiler mean nothing on a CPU; kernels only define them when they
// are missing, and then not as nothing.
#define __gm__
#define __aicore__

// A kernel that yields is a kernel that polls for something: the runtime lets the other cores of its block run, and
// starts tasks that would otherwise have to wait for a free thread.
extern "C" __attribute__((weak)) void simpler_core_yield();
static inline int simpler_yield_or_sleep() {
    if (simpler_core_yield) simpler_core_yield();
    return (sched_yield)();
}
#define sched_yield() simpler_yield_or_sleep()
