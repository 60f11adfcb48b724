// One node of the task graph and the edges that point into it.
#pragma once
#include <atomic>

#include "orchestration_abi.h"

namespace simpler {

struct Task;
struct Kernel;
struct WriterEntry;

// Lives in the consumer's storage: the consumer outlives the unfinished producer whose list it is on.
struct Edge {
    Task *consumer;
    Task *producer;
    Edge *next;
};

inline Edge *closed_list() { return reinterpret_cast<Edge *>(uintptr_t{1}); }

struct alignas(64) Task {
    // Touched by workers.
    std::atomic<int32_t> pending;      // unfinished producers, plus one while the task is being submitted
    std::atomic<int32_t> references;   // its scope, its own completion, its unfinished consumers; 0: may be recycled
    std::atomic<Edge *> successors;    // closed_list() once the task has completed
    std::atomic<int32_t> blocks_left;
    int32_t next_block;                // guarded by the ready queue
    Task *next_ready;
    PTO2TaskId id;
    const Kernel *kernels[3];          // AIC, AIV0, AIV1; null: slot not used
    ChipTensor *tensors;
    uint64_t *scalars;
    Edge *edges;
    uint32_t edge_count;
    uint16_t tensor_count;
    uint16_t scalar_count;
    int16_t block_num;
    uint8_t active_slots;              // number of kernels
    bool sync_start;
    bool may_wait;                     // one of its kernels can wait for another task
    PredicateOp predicate_op;
    uint8_t predicate_size;
    int8_t timing_slot;

    // Touched by the orchestrator only (and by workers for reading where noted).
    bool scope_closed;
    bool manual;
    uint8_t output_count;
    uint32_t storage_bytes;
    uint32_t dep_entries;
    int64_t predicate_target;          // read by workers
    const void *predicate_address;     // read by workers
    uint8_t *output_index;
    uint8_t *tags;                     // read by the args dump
    uint64_t heap_end;                 // heap position after its outputs; positions only grow
    uint64_t heap_allocated;           // bytes its ring had given out by then
    uint64_t link_stamp;               // submit that last collected this task as a producer
    uint32_t link_index;
    WriterEntry *writer_entries;
    uint64_t dump_tensors;             // read by the args dump, like the next three
    uint64_t dump_scalars;
    uint64_t dump_ambiguous;
    uint8_t *scalar_types;

    bool completed() const { return successors.load(std::memory_order_acquire) == closed_list(); }
    bool consumed() const { return references.load(std::memory_order_acquire) == 0; }
    // Adds a consumer unless the task is already gone.
    bool retain() {
        int32_t count = references.load(std::memory_order_relaxed);
        while (count > 0) {
            if (references.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
        }
        return false;
    }
    // The last touch of a task by a worker: after it the orchestrator may recycle the storage.
    void release() { references.fetch_sub(1, std::memory_order_acq_rel); }
};

}  // namespace simpler
