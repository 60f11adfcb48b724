// Communication through shared memory: signals, copies between ranks, collectives over a group, core barriers.
#pragma once
#include <sched.h>

#include "fixpipe.hpp"
#include "gather.hpp"
#include "sync.hpp"

namespace pto {
namespace comm {

enum class NotifyOp : uint8_t { AtomicAdd, Set };
enum class WaitCmp : uint8_t { EQ, NE, GT, GE, LT, LE };
enum class ReduceOp : uint8_t { Sum, Max, Min, Prod };

// One signal, and a matrix of them.
using Signal = GlobalTensor<int32_t, Shape<1, 1, 1, 1, 1>, Stride<1, 1, 1, 1, 1>>;
template <int64_t Rows, int64_t Cols>
struct Signal2D : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>> {
    explicit Signal2D(int32_t* data, int64_t pitch = Cols)
        : GlobalTensor<int32_t, Shape<1, 1, 1, Rows, Cols>, Stride<1, 1, 1, DYNAMIC, 1>>(
              data, Stride<1, 1, 1, DYNAMIC, 1>(pitch)) {}
};

template <class GlobalData>
struct ParallelGroup {
    using value_type = GlobalData;
    GlobalData* tensors;
    int nranks;
    int rootIdx;
    ParallelGroup(GlobalData* members, int size, int root) : tensors(members), nranks(size), rootIdx(root) {}
    static ParallelGroup Create(GlobalData* members, int size, int root) { return {members, size, root}; }
};

}  // namespace comm

namespace isa {

inline bool signal_holds(int32_t value, int32_t expected, comm::WaitCmp compare) {
    switch (compare) {
        case comm::WaitCmp::EQ:
            return value == expected;
        case comm::WaitCmp::NE:
            return value != expected;
        case comm::WaitCmp::GT:
            return value > expected;
        case comm::WaitCmp::GE:
            return value >= expected;
        case comm::WaitCmp::LT:
            return value < expected;
        default:
            return value <= expected;
    }
}

// Calls body(row, col) for every element of a view, rows counted over the leading extents.
template <class Global, class Body>
inline void for_each_element(const Global& view, const Body& body) {
    const long rows = view_rows(view), cols = view.GetShape(4);
    for (long i = 0; i < rows; ++i)
        for (long j = 0; j < cols; ++j) body(i, j);
}

template <class Signal>
inline bool signals_hold(const Signal& view, int32_t expected, comm::WaitCmp compare) {
    bool all = true;
    for_each_element(view, [&](long i, long j) {
        all = all &&
              signal_holds(__atomic_load_n(view.data() + view_offset(view, i, j), __ATOMIC_ACQUIRE), expected, compare);
    });
    return all;
}

// Row by row: whole rows at once where both sides are contiguous.
template <class D, class S>
inline void copy_view(const D& dst, const S& src, AtomicType atomic) {
    using T = typename D::DType;
    static_assert(std::is_same_v<T, typename S::DType>, "a transfer keeps the element type");
    const long rows = view_rows(src), cols = src.GetShape(4);
    if (view_rows(dst) < rows || dst.GetShape(4) < cols)
        fail("a transfer of [%ld, %ld] elements does not fit its destination", rows, cols);
    const bool contiguous = src.GetStride(4) == 1 && dst.GetStride(4) == 1 && atomic == AtomicType::AtomicNone;
    for (long i = 0; i < rows; ++i) {
        if (contiguous) {
            __builtin_memmove(dst.data() + view_offset(dst, i, 0), src.data() + view_offset(src, i, 0),
                              cols * sizeof(T));
            continue;
        }
        for (long j = 0; j < cols; ++j) {
            const T value = src.data()[view_offset(src, i, j)];
            T* target = dst.data() + view_offset(dst, i, j);
            if (atomic == AtomicType::AtomicAdd)
                atomic_add(target, value);
            else
                *target = value;
        }
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

template <class T>
inline T reduce_pair(comm::ReduceOp op, T a, T b) {
    switch (op) {
        case comm::ReduceOp::Sum:
            return static_cast<T>(a + b);
        case comm::ReduceOp::Max:
            return a > b ? a : b;
        case comm::ReduceOp::Min:
            return a < b ? a : b;
        default:
            return static_cast<T>(a * b);
    }
}

}  // namespace isa

namespace comm {

template <AtomicType Atomic = AtomicType::AtomicNone, class D, class S, class... Staging>
PTO_INST RecordEvent TPUT(D& dst, S& src, Staging&&...) {
    isa::copy_view(dst, src, Atomic);
    return {};
}
template <class D, class S, class Stage>
PTO_INST RecordEvent TPUT(D& dst, S& src, Stage&, AtomicType atomic) {
    isa::copy_view(dst, src, atomic);
    return {};
}
template <class D, class S, class... Staging>
PTO_INST RecordEvent TGET(D& dst, S& src, Staging&&...) {
    isa::copy_view(dst, src, AtomicType::AtomicNone);
    return {};
}

template <class Signal>
PTO_INST void TNOTIFY(Signal& signal, int32_t value, NotifyOp op) {
    static_assert(sizeof(typename Signal::DType) == 4, "signals are 32-bit integers");
    isa::for_each_element(signal, [&](long i, long j) {
        auto* cell = signal.data() + isa::view_offset(signal, i, j);
        if (op == NotifyOp::AtomicAdd)
            __atomic_fetch_add(cell, value, __ATOMIC_SEQ_CST);
        else
            __atomic_store_n(cell, value, __ATOMIC_SEQ_CST);
    });
}
template <class Signal>
PTO_INST bool TTEST(Signal& signal, int32_t expected, WaitCmp compare) {
    static_assert(sizeof(typename Signal::DType) == 4, "signals are 32-bit integers");
    return isa::signals_hold(signal, expected, compare);
}
template <class Signal>
PTO_INST void TWAIT(Signal& signal, int32_t expected, WaitCmp compare) {
    for (int spins = 0; !TTEST(signal, expected, compare); ++spins)
        if (spins >= 64) sched_yield();
}

template <class Group, class S, class... Staging>
PTO_INST RecordEvent TBROADCAST(Group& group, S& src, Staging&&...) {
    for (int rank = 0; rank < group.nranks; ++rank) isa::copy_view(group.tensors[rank], src, AtomicType::AtomicNone);
    return {};
}

// Members follow each other in the rows of dst (TGATHER) or src (TSCATTER).
template <class Group, class D, class... Staging>
PTO_INST RecordEvent TGATHER(Group& group, D& dst, Staging&&...) {
    long row = 0;
    for (int rank = 0; rank < group.nranks; ++rank) {
        auto& member = group.tensors[rank];
        isa::for_each_element(member, [&](long i, long j) {
            dst.data()[isa::view_offset(dst, row + i, j)] = member.data()[isa::view_offset(member, i, j)];
        });
        row += isa::view_rows(member);
    }
    return {};
}
template <class Group, class S, class... Staging>
PTO_INST RecordEvent TSCATTER(Group& group, S& src, Staging&&...) {
    long row = 0;
    for (int rank = 0; rank < group.nranks; ++rank) {
        auto& member = group.tensors[rank];
        isa::for_each_element(member, [&](long i, long j) {
            member.data()[isa::view_offset(member, i, j)] = src.data()[isa::view_offset(src, row + i, j)];
        });
        row += isa::view_rows(member);
    }
    return {};
}

namespace detail {
template <class Group, class D>
inline void reduce(Group& group, D& dst, ReduceOp op) {
    isa::for_each_element(dst, [&](long i, long j) {
        auto& first = group.tensors[0];
        auto value = first.data()[isa::view_offset(first, i, j)];
        for (int rank = 1; rank < group.nranks; ++rank) {
            auto& member = group.tensors[rank];
            value = isa::reduce_pair(op, value, member.data()[isa::view_offset(member, i, j)]);
        }
        dst.data()[isa::view_offset(dst, i, j)] = value;
    });
}
}  // namespace detail

template <class Group, class D, class Acc, class Receive>
PTO_INST RecordEvent TREDUCE(Group& group, D& dst, Acc&, Receive&, ReduceOp op) {
    detail::reduce(group, dst, op);
    return {};
}
template <class Group, class D, class Acc, class Ping, class Pong>
PTO_INST RecordEvent TREDUCE(Group& group, D& dst, Acc&, Ping&, Pong&, ReduceOp op) {
    detail::reduce(group, dst, op);
    return {};
}

// Asynchronous transfers finish when they are issued.
enum class DmaEngine : uint8_t { SDMA, ROCE, URMA, CCU, RDMA };
struct AsyncSession {};
struct AsyncEvent {
    bool Wait(const AsyncSession&) const { return true; }
    bool Test(const AsyncSession&) const { return true; }
};
template <DmaEngine Engine = DmaEngine::SDMA, class Scratch, class Pointer, class... Rest>
PTO_INST bool BuildAsyncSession(Scratch&, Pointer, AsyncSession&, Rest&&...) {
    return true;
}
template <DmaEngine Engine = DmaEngine::SDMA, class D, class S, class... Rest>
PTO_INST AsyncEvent TPUT_ASYNC(D& dst, S& src, const AsyncSession&, Rest&&...) {
    isa::copy_view(dst, src, AtomicType::AtomicNone);
    return {};
}
template <DmaEngine Engine = DmaEngine::SDMA, class D, class S, class... Rest>
PTO_INST AsyncEvent TGET_ASYNC(D& dst, S& src, const AsyncSession&, Rest&&...) {
    isa::copy_view(dst, src, AtomicType::AtomicNone);
    return {};
}

}  // namespace comm

struct PrefetchAsyncContext {
    template <class Pointer>
    explicit PrefetchAsyncContext(Pointer) {}
    template <class Pointer>
    PrefetchAsyncContext(Pointer, comm::AsyncSession* session) : session_(session ? *session : comm::AsyncSession{}) {}
    comm::AsyncSession& GetSession() { return session_; }

private:
    comm::AsyncSession session_;
};
template <class Global>
PTO_INST comm::AsyncEvent TPREFETCH_ASYNC(Global& src, PrefetchAsyncContext&) {
    __builtin_prefetch(src.data());
    return {};
}

// All-core barrier on a counter in global memory: word 0 counts arrivals. `cores` is the number of participants.
template <SyncAllMode Mode, SyncCoreType Type = SyncCoreType::AIVOnly, class Global>
PTO_INST void SYNCALL(Global& workspace, int32_t cores = 0) {
    static_assert(Mode == SyncAllMode::Soft, "only the soft barrier takes a workspace");
    if (cores <= 0) isa::fail("SYNCALL: a simulated core cannot derive the number of participants; pass used_cores");
    int32_t* arrivals = reinterpret_cast<int32_t*>(workspace.data());
    // Arrivals only grow: a core waits for the end of the round it belongs to, so that the workspace can be reused.
    const int32_t ticket = __atomic_fetch_add(arrivals, 1, __ATOMIC_SEQ_CST);
    const int32_t target = (ticket / cores + 1) * cores;
    for (int spins = 0; __atomic_load_n(arrivals, __ATOMIC_SEQ_CST) - target < 0; ++spins)
        if (spins >= 64) sched_yield();
}
template <SyncCoreType Type = SyncCoreType::AIVOnly>
PTO_INST void SYNCALL() {
    isa::fail("SYNCALL: the hard all-core barrier needs hardware; use the soft barrier with a workspace");
}

}  // namespace pto
