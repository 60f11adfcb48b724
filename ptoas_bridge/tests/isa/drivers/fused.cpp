#include "driver.hpp"
#include "pto/pto-inst.hpp"

template <class T>
void fused(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);
    auto d = loaded<Plain<T>>(c.pointer<T>(2), rows, cols, 2 * kSlot);
    switch (c.number[2]) {
        case 0:
            TMULADDDST(d, a, b);
            break;
        case 1:
            TFUSEDMULADD(d, a, b);
            break;
        case 2:
            TFUSEDMULADDRELU(d, a, b);
            break;
        case 3:
            TSUBRELU(d, a, b);
            break;
        case 4:
            TPOW(d, a, b);
            break;
        default:
            TPOWS(d, a, T(3));
    }
    stored(d, c.pointer<T>(3));
}
ENTRY(fused, f32, float)
ENTRY(fused, f16, half)
ENTRY(fused, i32, int32_t)

template <class T>
void subview(const Call& c) {
    using Window = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1>;
    auto a = loaded<Plain<T>>(c.pointer<T>(0), kRows, kCols, 0);
    Window window(c.number[2], c.number[3]);
    TSUBVIEW(window, a, c.number[0], c.number[1]);
    TADDS(window, window, T(100));
    stored(a, c.pointer<T>(1));
}
ENTRY(subview, f32, float)

// Signals and transfers between two "ranks": two ranges of the same memory.
template <class T>
void signals(const Call& c) {
    int32_t* memory = c.pointer<int32_t>(0);
    pto::comm::Signal one(memory);
    pto::comm::Signal2D<2, 3> block(memory + 16, 8);
    pto::comm::NotifyOp add = pto::comm::NotifyOp::AtomicAdd;
    pto::comm::TNOTIFY(one, 5, add);
    pto::comm::TNOTIFY(one, 2, add);
    pto::comm::TNOTIFY(block, 9, pto::comm::NotifyOp::Set);
    pto::comm::WaitCmp ge = pto::comm::WaitCmp::GE;
    pto::comm::TWAIT(one, 7, ge);
    memory[1] = pto::comm::TTEST(block, 9, pto::comm::WaitCmp::EQ);
    memory[16] = 8;
    memory[2] = pto::comm::TTEST(block, 9, pto::comm::WaitCmp::EQ);
}
ENTRY(signals, i32, int32_t)

template <class T>
void transfer(const Call& c) {
    auto from = view(c.pointer<T>(0), 5, 33), to = view(c.pointer<T>(1), 5, 33), added = view(c.pointer<T>(2), 5, 33);
    auto stage = make<Plain<T>>(24, 64, 0);
    pto::comm::TPUT(to, from, stage);
    pto::comm::TPUT<pto::AtomicType::AtomicAdd>(added, from, stage);
    using V = View<T>;
    V members[2] = {from, added};
    pto::comm::ParallelGroup<V> group(members, 2, 0);
    auto sum = view(c.pointer<T>(3), 5, 33);
    pto::comm::TREDUCE(group, sum, stage, stage, pto::comm::ReduceOp::Sum);
    auto gathered = view(c.pointer<T>(4), 10, 33);
    pto::comm::TGATHER(group, gathered, stage);
}
ENTRY(transfer, f32, float)

template <class T>
void barrier(const Call& c) {
    GlobalTensor<int32_t, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>> workspace(c.pointer<int32_t>(0));
    if (c.number[0])
        SYNCALL<SyncAllMode::Soft, SyncCoreType::AIVOnly>(workspace, static_cast<int32_t>(c.number[0]));
    else
        SYNCALL<SyncCoreType::Mix>();
}
ENTRY(barrier, i32, int32_t)

// Emitted synchronisation compiles and does nothing.
template <class T>
void synchronisation(const Call&) {
    set_mask_norm();
    set_vector_mask(-1, -1);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    event_t e = (event_t)3;
    wait_flag(PIPE_V, PIPE_MTE3, e);
    pipe_barrier(PIPE_ALL);
    dcci((__gm__ void*)0, cache_line_t::ENTIRE_DATA_CACHE);
    dsb((mem_dsb_t)0);
    dsb(DSB_DDR);
    set_atomic_none();
    set_ffts_base_addr(0);
}
ENTRY(synchronisation, i32, int32_t)
