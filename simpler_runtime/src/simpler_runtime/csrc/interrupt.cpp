// The signal handler behind interrupt.h.
#include "interrupt.h"

#include <atomic>
#include <csignal>

namespace simpler {

namespace {

std::atomic<uint32_t> interrupts{0};
struct sigaction host_action;

void on_interrupt(int signal_number, siginfo_t *info, void *context) {
    interrupts.fetch_add(1);
    if (host_action.sa_flags & SA_SIGINFO) {
        host_action.sa_sigaction(signal_number, info, context);
    } else {
        host_action.sa_handler(signal_number);
    }
}

bool is_ours(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_interrupt;
}

}  // namespace

InterruptWatch::InterruptWatch(bool wanted) {
    struct sigaction present;
    if (!wanted || sigaction(SIGINT, nullptr, &present) != 0 || is_ours(present)) return;
    // A program that ignores the signal, or dies of it, wants just that.
    if (!(present.sa_flags & SA_SIGINFO) && (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN)) return;
    host_action = present;
    struct sigaction action = present;
    action.sa_sigaction = on_interrupt;
    action.sa_flags |= SA_SIGINFO;
    installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
    struct sigaction present;
    // Somebody else's handler, put in place during the run, stays.
    if (installed_ && sigaction(SIGINT, nullptr, &present) == 0 && is_ours(present)) {
        sigaction(SIGINT, &host_action, nullptr);
    }
}

uint32_t interrupt_count() { return interrupts.load(std::memory_order_relaxed); }

}  // namespace simpler
