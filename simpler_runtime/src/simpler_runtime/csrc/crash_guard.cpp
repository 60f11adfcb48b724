// Signal handlers behind crash_guard.h.
#include "crash_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace simpler {

thread_local CrashGuard *active_guard = nullptr;

namespace {

// SIGURG is how the watchdog interrupts a kernel that does not end.
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGURG};
constexpr int kSignalCount = sizeof kSignals / sizeof kSignals[0];
constexpr size_t kSignalStackBytes = 64 * 1024;
struct sigaction previous_actions[kSignalCount];
char crashed_kernel[400];

// Only what is safe inside a signal handler: the text was put together before.
void tell_crashed_kernel() {
    if (crashed_kernel[0] == 0) return;
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, crashed_kernel, strlen(crashed_kernel));
    crashed_kernel[0] = 0;
}

void on_crash(int signal_number, siginfo_t *info, void *context) {
    CrashGuard *guard = active_guard;
    if (guard) {
        if (signal_number == SIGURG && guard->calls && (guard->calls->load(std::memory_order_relaxed) & 1)) return;
        guard->signal_number = signal_number;
        guard->address = info ? info->si_addr : nullptr;
        siglongjmp(guard->point, 1);
    }
    for (int i = 0; i < kSignalCount; ++i) {
        if (kSignals[i] != signal_number) continue;
        const struct sigaction &previous = previous_actions[i];
        if (previous.sa_flags & SA_SIGINFO) {
            previous.sa_sigaction(signal_number, info, context);
        } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
            previous.sa_handler(signal_number);
        } else if (signal_number != SIGURG) {
            tell_crashed_kernel();
            signal(signal_number, SIG_DFL);
            raise(signal_number);
        }
    }
}

}  // namespace

void remember_kernel_crash(const char *kernel) {
    std::snprintf(crashed_kernel, sizeof crashed_kernel,
                  "\nfatal: the process ends because its memory is damaged. Before, %s crashed: it most likely wrote "
                  "outside of its tensors.\n",
                  kernel);
}

void install_crash_handlers() {
    for (int i = 0; i < kSignalCount; ++i) {
        struct sigaction present;
        if (sigaction(kSignals[i], nullptr, &present) != 0) continue;
        if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_crash) continue;
        previous_actions[i] = present;
        struct sigaction action = {};
        action.sa_sigaction = on_crash;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(kSignals[i], &action, nullptr);
    }
}

SignalStack::SignalStack() {
    stack_t present = {};
    if (sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE)) return;
    memory_ = mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
        memory_ = nullptr;
        return;
    }
    stack_t stack = {};
    stack.ss_sp = memory_;
    stack.ss_size = kSignalStackBytes;
    installed_ = sigaltstack(&stack, nullptr) == 0;
}

SignalStack::~SignalStack() {
    if (installed_) {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }
    if (memory_) munmap(memory_, kSignalStackBytes);
}

const char *signal_description(int signal_number) {
    switch (signal_number) {
        case SIGSEGV: return "SIGSEGV, invalid memory access";
        case SIGBUS: return "SIGBUS, invalid memory access";
        case SIGFPE: return "SIGFPE, arithmetic fault such as an integer division by zero";
        case SIGILL: return "SIGILL, illegal instruction";
        case SIGABRT: return "SIGABRT, the kernel called abort()";
        case SIGURG: return "it was interrupted by the watchdog";
        default: return "an unexpected signal";
    }
}

}  // namespace simpler
