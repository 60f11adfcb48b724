// Pipes, events, barriers and core queries. Instructions finish when they return, so the synchronisation of the
// pipelines inside one core has nothing left to do; only fences towards global memory keep a meaning.
#pragma once
#include <cstdint>

#include "core_memory.hpp"

enum pipe_t {
    PIPE_S,
    PIPE_V,
    PIPE_M,
    PIPE_MTE1,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_ALL,
    PIPE_MTE4,
    PIPE_MTE5,
    PIPE_V2,
    PIPE_FIX,
};
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };

template <class Event>
inline void set_flag(pipe_t, pipe_t, Event) {}
template <class Event>
inline void wait_flag(pipe_t, pipe_t, Event) {}
inline void pipe_barrier(pipe_t pipe) {
    if (pipe == PIPE_ALL) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void dsb(mem_dsb_t) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <class Pointer>
inline void dcci(Pointer, cache_line_t) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
template <class Pointer>
inline void dcci(Pointer, cache_line_t, dcci_dst_t) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void set_mask_norm() {}
inline void set_mask_count() {}
inline void set_vector_mask(uint64_t, uint64_t) {}
inline void set_atomic_none() {}
inline void set_ffts_base_addr(uint64_t) {}
template <class Id>
inline void get_buf(pipe_t, Id, int) {}
template <class Id>
inline void rls_buf(pipe_t, Id, int) {}
[[noreturn]] inline void trap() { pto::isa::fail("the kernel executed a trap"); }

// The block registers are not programmed by the runtime; the forms with `args` of intrinsic.h are authoritative.
inline int64_t get_block_idx() { return 0; }
inline int64_t get_block_num() { return 1; }
#ifndef get_subblockid
inline int64_t get_subblockid() {
#if PTO_HAS_SIMULATED_CORE
    if (auto* core = pto::isa::current_core()) return core->lane;
#endif
    return 0;
}
#endif
inline int64_t get_subblockdim() { return 2; }

namespace cce {
template <class... Arguments>
inline int printf(const char* format, Arguments... arguments) {
    return __builtin_printf(format, arguments...);
}
}  // namespace cce

namespace pto {
template <class... Events>
inline void TSYNC(Events&&...) {}
}  // namespace pto
