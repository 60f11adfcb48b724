// What a kernel can ask about its dispatch: block, block count, vector lane.
#pragma once
#include <cstdint>

#include "task_limits.h"

inline constexpr int SPMD_LOCAL_CONTEXT_INDEX = CORE_MAX_TENSOR_ARGS + CORE_MAX_SCALAR_ARGS;
inline constexpr int SPMD_GLOBAL_CONTEXT_INDEX = SPMD_LOCAL_CONTEXT_INDEX + 1;

enum DmaWorkspaceKind : int32_t { DMA_WORKSPACE_SDMA = 0, DMA_WORKSPACE_KIND_COUNT = 1 };

// A condition that a task still waits for after its kernel has returned: *addr >= expected_value (32 bits).
struct CompletionToken {
    uint64_t addr;
    uint32_t expected_value;
    int32_t engine;
    int32_t completion_type;
    uint64_t backend_cookie;
};

struct CompletionSlab {
    int32_t count;
    int32_t error;  // code of the first registration that failed
    CompletionToken tokens[MAX_COMPLETIONS_PER_TASK];
};

// Where a kernel registers completion conditions; see pto_async_kernel_api.h.
struct AsyncCtx {
    CompletionSlab *slab;
    int32_t capacity;  // 0: this dispatch completes when the kernel returns
    int32_t reserved;
};

struct LocalContext {
    union { int32_t block_idx; int32_t s_block_idx; };
    union { int32_t block_num; int32_t s_block_num; };
    AsyncCtx async_ctx;
};

struct GlobalContext {
    int32_t sub_block_id;
    uint64_t dma_workspace[DMA_WORKSPACE_KIND_COUNT];
};

inline int32_t get_block_idx(const int64_t *args) {
    return reinterpret_cast<const LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->block_idx;
}
inline int32_t get_block_num(const int64_t *args) {
    return reinterpret_cast<const LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->block_num;
}
// 0 or 1: the vector lane of a mixed task.
inline int32_t get_sub_block_id(const int64_t *args) {
    return reinterpret_cast<const GlobalContext *>(args[SPMD_GLOBAL_CONTEXT_INDEX])->sub_block_id;
}
// Workspace of the asynchronous copy engine, 0 when the worker was made without one.
inline uint64_t get_dma_workspace(const int64_t *args, int32_t kind) {
    if (kind < 0 || kind >= DMA_WORKSPACE_KIND_COUNT) return 0;
    return reinterpret_cast<const GlobalContext *>(args[SPMD_GLOBAL_CONTEXT_INDEX])->dma_workspace[kind];
}
