// Completion of a task after its kernel has returned: conditions on counters that somebody else raises.
#pragma once
#include "error_codes.h"
#include "intrinsic.h"

// A task with conditions waits for others like a kernel that yields, and the runtime recognises both by this name.
extern "C" __attribute__((weak)) void simpler_core_yield();
__attribute__((used)) static void (*const simpler_may_wait)() = simpler_core_yield;

enum CompletionEngine : int32_t {
    COMPLETION_ENGINE_SDMA = 0,
    COMPLETION_ENGINE_ROCE = 1,
    COMPLETION_ENGINE_URMA = 2,
    COMPLETION_ENGINE_CCU = 3,
};
enum CompletionType : int32_t { COMPLETION_TYPE_COUNTER = 0, COMPLETION_TYPE_SDMA_EVENT_RECORD = 1 };

inline AsyncCtx get_async_ctx(const int64_t *args) {
    return reinterpret_cast<const LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->async_ctx;
}
inline bool async_ctx_is_deferred(const AsyncCtx &ctx) { return ctx.slab != nullptr && ctx.capacity > 0; }

namespace pto2::detail {

inline void defer_error(const AsyncCtx &ctx, int32_t code) {
    if (async_ctx_is_deferred(ctx) && ctx.slab->error == 0) ctx.slab->error = code;
}
inline void defer_flush(const AsyncCtx &) {}

}  // namespace pto2::detail

// False when the dispatch is not deferred or 64 conditions are registered already (which fails the run, code 102).
inline bool register_completion_condition(const AsyncCtx &ctx, const CompletionToken &token) {
    if (!async_ctx_is_deferred(ctx)) return false;
    if (ctx.slab->count >= ctx.capacity) {
        pto2::detail::defer_error(ctx, PTO2_ERROR_ASYNC_WAIT_OVERFLOW);
        return false;
    }
    if (token.addr == 0 || token.addr % 4 != 0 || token.engine < 0 || token.engine > COMPLETION_ENGINE_CCU) {
        pto2::detail::defer_error(ctx, PTO2_ERROR_ASYNC_COMPLETION_INVALID);
        return false;
    }
    ctx.slab->tokens[ctx.slab->count++] = token;
    return true;
}

// The task completes when the 32-bit counter has reached `value`.
inline bool save_expected_notification_counter(const AsyncCtx &ctx, const volatile void *counter, uint32_t value) {
    return register_completion_condition(
        ctx, CompletionToken{reinterpret_cast<uint64_t>(counter), value, COMPLETION_ENGINE_SDMA, COMPLETION_TYPE_COUNTER, 0});
}

// Raises or sets a counter that another task or chip waits for. Op has the members AtomicAdd and Set.
template <typename Op>
inline void send_notification(volatile void *remote_counter, int32_t value, Op op) {
    auto *counter = reinterpret_cast<int32_t *>(const_cast<void *>(remote_counter));
    if (op == Op::AtomicAdd) __atomic_fetch_add(counter, value, __ATOMIC_ACQ_REL);
    else __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}
