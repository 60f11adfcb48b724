// Cache maintenance of orchestration code. Simulated chips share coherent memory: only the order matters.
#pragma once
#include <atomic>
#include <cstddef>

inline void cache_invalidate_range(const volatile void *, size_t) { std::atomic_thread_fence(std::memory_order_acquire); }
inline void cache_flush_range(const volatile void *, size_t) { std::atomic_thread_fence(std::memory_order_release); }
