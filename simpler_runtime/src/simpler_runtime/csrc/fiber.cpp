// Context switch of the fibers: a few pushes on x86-64, ucontext elsewhere.
#include "fiber.h"

namespace simpler {

thread_local Fiber *running_fiber = nullptr;

void Fiber::trampoline() {
    Fiber *self = running_fiber;
    self->entry_(self->argument_);
    self->finished_ = true;
    self->suspend();
    __builtin_unreachable();
}

#if defined(__x86_64__)

// Saves the callee-saved registers on the present stack, leaves its pointer in *save and continues on `load`.
extern "C" void simpler_fiber_switch(void **save, void *load);
asm(R"(
.text
.globl simpler_fiber_switch
.hidden simpler_fiber_switch
.type simpler_fiber_switch,@function
simpler_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simpler_fiber_switch,.-simpler_fiber_switch
)");

void Fiber::start(Entry entry, void *argument) {
    ensure_stack();
    entry_ = entry;
    argument_ = argument;
    finished_ = false;
    // Six registers, the address of the trampoline, and a null return address that ends stack walks. At the entry of
    // a function the stack pointer is 8 below a multiple of 16.
    uint64_t *top = reinterpret_cast<uint64_t *>(stack_ + kStackBytes) - 2;
    *top = 0;
    *--top = reinterpret_cast<uint64_t>(&Fiber::trampoline);
    for (int i = 0; i < 6; ++i) *--top = 0;
    own_sp_ = top;
}

bool Fiber::resume() {
    Fiber *outer = running_fiber;
    running_fiber = this;
    simpler_fiber_switch(&caller_sp_, own_sp_);
    running_fiber = outer;
    return !finished_;
}

void Fiber::suspend() { simpler_fiber_switch(&own_sp_, caller_sp_); }

#else

void Fiber::start(Entry entry, void *argument) {
    ensure_stack();
    entry_ = entry;
    argument_ = argument;
    finished_ = false;
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_;
    own_.uc_stack.ss_size = kStackBytes;
    own_.uc_link = nullptr;
    makecontext(&own_, &Fiber::trampoline, 0);
}

bool Fiber::resume() {
    Fiber *outer = running_fiber;
    running_fiber = this;
    swapcontext(&caller_, &own_);
    running_fiber = outer;
    return !finished_;
}

void Fiber::suspend() { swapcontext(&own_, &caller_); }

#endif

}  // namespace simpler
