// CommContext: what a member of a communication domain knows about the windows of all members (1056 bytes).
#pragma once
#include <cstddef>
#include <cstdint>

inline constexpr int COMM_MAX_RANK_NUM = 64;

struct CommContext {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;
    uint32_t rankNum;
    uint64_t winSize;
    uint64_t windowsIn[COMM_MAX_RANK_NUM];
    uint64_t windowsOut[COMM_MAX_RANK_NUM];
};

static_assert(sizeof(CommContext) == 1056 && offsetof(CommContext, windowsIn) == 32, "CommContext ABI");
