// Ctrl-C during a run: the host program's handler only sets a flag that nobody reads until the run returns, so the
// runtime notices the signal as well, fails the run, and leaves the rest to the host program.
#pragma once
#include <cstdint>

namespace simpler {

// While one exists, interrupts are counted on their way to the host program's handler. Only the main thread may make
// one: changing handlers is its business, and it is the one that an interrupt is meant for.
class InterruptWatch {
public:
    explicit InterruptWatch(bool wanted);
    ~InterruptWatch();
    InterruptWatch(const InterruptWatch &) = delete;
    InterruptWatch &operator=(const InterruptWatch &) = delete;

private:
    bool installed_ = false;
};

// How many interrupts were seen so far.
uint32_t interrupt_count();

}  // namespace simpler
