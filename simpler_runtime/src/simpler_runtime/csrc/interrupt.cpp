// The signal handler behind interrupt.h.
#include "interrupt.h"

#include <atomic>
#include <csignal>
#include <mutex>

namespace simpler {

namespace {

std::atomic<uint32_t> interrupts{0};
std::mutex watch_lock;
int watchers = 0;
bool installed = false;
struct sigaction host_action;

void on_interrupt(int signal_number, siginfo_t *info, void *context) {
    interrupts.fetch_add(1);
    if (host_action.sa_flags & SA_SIGINFO) {
        host_action.sa_sigaction(signal_number, info, context);
    } else {
        host_action.sa_handler(signal_number);
    }
}

}  // namespace

InterruptWatch::InterruptWatch() {
    std::lock_guard<std::mutex> guard(watch_lock);
    if (watchers++ > 0 || sigaction(SIGINT, nullptr, &host_action) != 0) return;
    // A program that ignores the signal, or dies of it, wants just that.
    if (!(host_action.sa_flags & SA_SIGINFO) &&
        (host_action.sa_handler == SIG_DFL || host_action.sa_handler == SIG_IGN)) {
        return;
    }
    struct sigaction action = {};
    action.sa_sigaction = on_interrupt;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    installed = sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
    std::lock_guard<std::mutex> guard(watch_lock);
    if (--watchers > 0 || !installed) return;
    sigaction(SIGINT, &host_action, nullptr);
    installed = false;
}

uint32_t interrupt_count() { return interrupts.load(std::memory_order_relaxed); }

}  // namespace simpler
