// Ctrl-C during a run: the host program's handler only sets a flag that nobody reads until the run returns, so the
// runtime notices the signal as well, fails the run, and then passes it on.
#pragma once
#include <cstdint>

namespace simpler {

// While one exists, interrupts are counted.
class InterruptWatch {
public:
    InterruptWatch();
    ~InterruptWatch();
    InterruptWatch(const InterruptWatch &) = delete;
    InterruptWatch &operator=(const InterruptWatch &) = delete;
};

// How many interrupts were seen so far.
uint32_t interrupt_count();

}  // namespace simpler
