// TPipe, TPUSH, TPOP, TFREE: rings of tile slots between the Cube core and the Vector lanes of a block.
//
// With a global-memory buffer (A2/A3) a slot lives there and a pop copies it into the consumer's local buffer; without
// one (A5) a slot lives in the consumer's memory and a pop exposes it. A slot holds the producer's valid block
// compactly, rows of valid columns. Vector lanes share a slot by rows or columns when the pipe is split.
#pragma once
#include "line_layout.hpp"
#include "load_store.hpp"

namespace pto {
namespace isa {

#if PTO_HAS_SIMULATED_CORE
using Core = simpler::sim::SimulatedCore;

inline Core& pipe_core() {
    Core* core = current_core();
    if (core == nullptr) fail("cross-core pipes work only inside the task runtime");
    return *core;
}

// Counters of one direction: data-ready and slot-free, one of each per Vector lane on the Cube side.
constexpr int32_t ready_counter(int flag, int lane) { return flag * 4 + lane; }
constexpr int32_t free_counter(int flag, int lane) { return flag * 4 + 2 + lane; }

inline bool is_cube(const Core& core) { return core.kind == simpler::sim::CoreKind::kCube; }

// Calls body(peer, lane) for every core on the other side that takes part.
template <class Body>
inline void for_each_partner(Core& core, bool only_first_lane, const Body& body) {
    if (!is_cube(core)) {
        if (core.peers[0] == nullptr) fail("this block has no Cube core to talk to");
        body(*core.peers[0], core.lane);
        return;
    }
    for (int lane = 0; lane < (only_first_lane ? 1 : 2); ++lane)
        if (core.peers[1 + lane] != nullptr) body(*core.peers[1 + lane], lane);
}
#endif

// The part of a slot that one Vector lane owns.
struct SlotWindow {
    long row, col, pitch;
};
template <TileSplitAxis Split>
inline SlotWindow slot_window(long lane, long rows, long cols) {
    const long odd = Split == TileSplitAxis::TILE_UP_DOWN_ODD || Split == TileSplitAxis::TILE_LEFT_RIGHT_ODD;
    if constexpr (Split == TileSplitAxis::TILE_UP_DOWN || Split == TileSplitAxis::TILE_UP_DOWN_ODD)
        return {lane * (rows + odd), 0, cols};
    else if constexpr (Split == TileSplitAxis::TILE_LEFT_RIGHT || Split == TileSplitAxis::TILE_LEFT_RIGHT_ODD)
        return {0, lane * (cols + odd), lane ? 2 * cols + odd : 2 * cols - odd};
    else
        return {0, 0, cols};
}

inline LineLayout row_layout(long pitch) { return {false, kUnbounded, 0, kUnbounded, pitch, 0}; }
using RowSide = Side<false, true>;

}  // namespace isa

template <uint8_t FlagID, uint8_t DirType, uint32_t SlotSize, uint32_t SlotNum, uint32_t LocalSlotNum = 2,
          bool IsNoSplit = false, bool UnitFlag = false>
struct TPipe {
    static constexpr bool kBoth = DirType == Direction::DIR_BOTH;
    static_assert(DirType >= 1 && DirType <= 3, "the direction of a pipe is DIR_C2V, DIR_V2C or DIR_BOTH");
    static_assert(SlotNum >= 1 && SlotSize >= 1, "a pipe needs at least one slot");
    static_assert(FlagID + (kBoth ? 4 : 2) <= 16, "a pipe needs its flag ids below 16");

    TPipe(const volatile void* global, uint64_t c2v_buffer, uint64_t v2c_buffer)
        : global_(static_cast<unsigned char*>(const_cast<void*>(global))),
          c2v_buffer_(c2v_buffer),
          v2c_buffer_(v2c_buffer) {}

#if PTO_HAS_SIMULATED_CORE
    template <TileSplitAxis Split, class TileT>
    void push(TileT& tile) {
        isa::Core& core = isa::pipe_core();
        const uint32_t slot = wait_for_slot<Split>(core);
        isa::for_each_partner(core, only_first_lane<Split>(),
                              [&](isa::Core& peer, int lane) { write_slot<Split>(core, peer, lane, slot, tile); });
        signal_ready<Split>(core);
    }
    template <TileSplitAxis Split, class TileT>
    void pop(TileT& tile) {
        isa::Core& core = isa::pipe_core();
        const uint32_t slot = wait_for_data<Split>(core);
        read_slot<Split>(core, slot, tile);
        if (global_ != nullptr) signal_free<Split>(core);
    }
    template <TileSplitAxis Split>
    void free_tile() {
        // A slot in global memory was released by the pop that copied it.
        if (global_ == nullptr) signal_free<Split>(isa::pipe_core());
    }

    // Global-view forms: the slot itself is exposed, nothing is copied.
    template <TileSplitAxis Split, class Global>
    void allocate(Global& view) {
        isa::Core& core = isa::pipe_core();
        expose<Split>(core, isa::is_cube(core), wait_for_slot<Split>(core), view);
    }
    template <TileSplitAxis Split>
    void commit() {
        signal_ready<Split>(isa::pipe_core());
    }
    template <TileSplitAxis Split, class Global>
    void pop_view(Global& view) {
        isa::Core& core = isa::pipe_core();
        expose<Split>(core, !isa::is_cube(core), wait_for_data<Split>(core), view);
    }
    template <TileSplitAxis Split>
    void free_view() {
        signal_free<Split>(isa::pipe_core());
    }

private:
    // Without a split only the first lane works on A5; on A2/A3 both lanes take part in the handshake.
    template <TileSplitAxis Split>
    bool only_first_lane() const {
        return global_ == nullptr && Split == TileSplitAxis::TILE_NO_SPLIT;
    }
    static int flag(bool c2v) { return FlagID + (kBoth && !c2v ? 2 : 0); }

    // Producer: waits until every consumer has released the slot that is next.
    template <TileSplitAxis Split>
    uint32_t wait_for_slot(isa::Core& core) {
        const bool c2v = isa::is_cube(core);
        if (pushed_ >= SlotNum)
            isa::for_each_partner(core, only_first_lane<Split>(), [&](isa::Core&, int lane) {
                simpler_counter_take(isa::free_counter(flag(c2v), c2v ? lane : 0), 1);
            });
        return pushed_++ % SlotNum;
    }
    template <TileSplitAxis Split>
    void signal_ready(isa::Core& core) {
        const bool c2v = isa::is_cube(core);
        isa::for_each_partner(core, only_first_lane<Split>(), [&](isa::Core& peer, int lane) {
            simpler_counter_add(&peer, isa::ready_counter(flag(c2v), c2v ? 0 : lane), 1);
        });
    }
    // Consumer: waits for the data of every producer.
    template <TileSplitAxis Split>
    uint32_t wait_for_data(isa::Core& core) {
        const bool c2v = !isa::is_cube(core);
        isa::for_each_partner(core, only_first_lane<Split>(), [&](isa::Core&, int lane) {
            simpler_counter_take(isa::ready_counter(flag(c2v), c2v ? 0 : lane), 1);
        });
        return popped_++ % SlotNum;
    }
    template <TileSplitAxis Split>
    void signal_free(isa::Core& core) {
        const bool c2v = !isa::is_cube(core);
        isa::for_each_partner(core, only_first_lane<Split>(), [&](isa::Core& peer, int lane) {
            simpler_counter_add(&peer, isa::free_counter(flag(c2v), c2v ? lane : 0), 1);
        });
    }

    unsigned char* global_slot(bool c2v, uint32_t slot) const {
        return global_ + (kBoth && !c2v ? size_t{SlotNum} * SlotSize : 0) + size_t{slot} * SlotSize;
    }
    // A slot in the memory of the consuming core.
    unsigned char* local_slot(isa::Core& consumer, bool c2v, uint32_t slot) const {
        const int space = isa::core_memory_index(c2v ? TileType::Vec : TileType::Mat);
        const uint64_t at = (c2v ? c2v_buffer_ : v2c_buffer_) + uint64_t{slot} * SlotSize;
        if (consumer.memory[space] == nullptr || at + SlotSize > consumer.memory_size[space])
            isa::fail("pipe slot of %u bytes at %llu lies outside the consumer's memory", SlotSize,
                      static_cast<unsigned long long>(at));
        return consumer.memory[space] + at;
    }

    // Copies what `lane` shall see into its slot: from the Cube one part of the tile, from a lane its whole tile.
    template <TileSplitAxis Split, class TileT>
    void write_slot(isa::Core& core, isa::Core& peer, int lane, uint32_t slot, TileT& tile) {
        using T = typename TileT::DType;
        const bool c2v = isa::is_cube(core);
        const long rows = tile.GetValidRow(), cols = tile.GetValidCol();
        long row = 0, col = 0, part_rows = rows, part_cols = cols, to_row = 0, to_col = 0, pitch = cols;
        if (!c2v) {
            const isa::SlotWindow window = isa::slot_window<Split>(lane, rows, cols);
            to_row = window.row;
            to_col = window.col;
            pitch = window.pitch;
        } else if (global_ != nullptr) {
            if (lane > 0 && core.peers[1] != nullptr) return;  // one block in global memory serves both lanes
        } else {
            constexpr bool by_row = Split == TileSplitAxis::TILE_UP_DOWN || Split == TileSplitAxis::TILE_UP_DOWN_ODD;
            constexpr bool by_col =
                Split == TileSplitAxis::TILE_LEFT_RIGHT || Split == TileSplitAxis::TILE_LEFT_RIGHT_ODD;
            if (by_row) {
                row = lane ? (rows + 1) / 2 : 0;
                part_rows = lane ? rows / 2 : (rows + 1) / 2;
            } else if (by_col) {
                col = lane ? (cols + 1) / 2 : 0;
                part_cols = lane ? cols / 2 : (cols + 1) / 2;
                pitch = part_cols;
            }
        }
        if (part_rows <= 0 || part_cols <= 0) return;
        if (((to_row + part_rows - 1) * pitch + to_col + part_cols) * long(sizeof(T)) > long(SlotSize))
            isa::fail("TPUSH: a block of [%ld, %ld] elements of %zu bytes exceeds the slot of %u bytes",
                      to_row + part_rows, pitch, sizeof(T), SlotSize);
        unsigned char* base = global_ != nullptr ? global_slot(c2v, slot) : local_slot(peer, c2v, slot);
        isa::copy_block<isa::RowSide, isa::TileSide<TileT>>(reinterpret_cast<T*>(base), isa::row_layout(pitch), to_row,
                                                            to_col, static_cast<const T*>(tile.data()),
                                                            isa::tile_layout(tile), row, col, part_rows, part_cols);
    }

    template <TileSplitAxis Split, class TileT>
    void read_slot(isa::Core& core, uint32_t slot, TileT& tile) {
        using T = typename TileT::DType;
        const bool c2v = !isa::is_cube(core);
        static_assert(TileT::Loc == TileType::Vec || TileT::Loc == TileType::Mat, "TPOP fills a Vec or a Mat tile");
        const long rows = tile.GetValidRow(), cols = tile.GetValidCol();
        const uint64_t local = c2v ? c2v_buffer_ : v2c_buffer_;
        if (global_ != nullptr) {
            isa::bind_address(tile, local + uint64_t{(popped_ - 1) % LocalSlotNum} * SlotSize);
            const isa::SlotWindow window =
                c2v ? isa::slot_window<Split>(core.lane, rows, cols) : isa::SlotWindow{0, 0, cols};
            isa::copy_block<isa::TileSide<TileT>, isa::RowSide>(
                tile.data(), isa::tile_layout(tile), 0, 0, reinterpret_cast<const T*>(global_slot(c2v, slot)),
                isa::row_layout(window.pitch), window.row, window.col, rows, cols);
            return;
        }
        tile.bind(reinterpret_cast<T*>(local_slot(core, c2v, slot)));
        constexpr bool rows_as_stored = !TileT::isBoxedLayout && TileT::isRowMajor;
        if ((rows_as_stored && cols == TileT::Cols) || rows == 0 || cols == 0) return;
        // The tile wants another layout than compact rows: spread it out through working space.
        T* copy = reinterpret_cast<T*>(isa::workspace(rows * cols * sizeof(T)));
        __builtin_memcpy(copy, tile.data(), rows * cols * sizeof(T));
        isa::copy_block<isa::TileSide<TileT>, isa::RowSide>(tile.data(), isa::tile_layout(tile), 0, 0,
                                                            static_cast<const T*>(copy), isa::row_layout(cols), 0, 0,
                                                            rows, cols);
    }

    template <TileSplitAxis Split, class Global>
    void expose(isa::Core& core, bool c2v, uint32_t slot, Global& view) {
        if (global_ == nullptr) isa::fail("views of pipe slots need a pipe in global memory");
        using T = typename Global::DType;
        const long lane = isa::is_cube(core) ? 0 : core.lane;
        long at = 0;
        if constexpr (Split == TileSplitAxis::TILE_UP_DOWN || Split == TileSplitAxis::TILE_UP_DOWN_ODD)
            at = isa::slot_window<Split>(lane, view.GetShape(3), view.GetShape(4)).row * view.GetStride(3);
        else if constexpr (Split != TileSplitAxis::TILE_NO_SPLIT)
            at = isa::slot_window<Split>(lane, view.GetShape(3), view.GetShape(4)).col;
        view.bind(reinterpret_cast<T*>(global_slot(c2v, slot)) + at);
    }
#else
    template <TileSplitAxis Split, class TileT>
    void push(TileT&) {
        isa::fail("cross-core pipes work only inside the task runtime");
    }
    template <TileSplitAxis Split, class TileT>
    void pop(TileT&) {
        isa::fail("cross-core pipes work only inside the task runtime");
    }
    template <TileSplitAxis Split>
    void free_tile() {}

private:
#endif
    unsigned char* global_;
    uint64_t c2v_buffer_;
    uint64_t v2c_buffer_;
    uint32_t pushed_ = 0;
    uint32_t popped_ = 0;
};

template <class Pipe, class Data, TileSplitAxis Split, class... Rest>
PTO_INST RecordEvent TPUSH(Pipe& pipe, Data& data, Rest&&...) {
    if constexpr (isa::kIsTile<Data>)
        pipe.template push<Split>(data);
    else
        pipe.template commit<Split>();
    return {};
}
template <class TileT, class Pipe, std::enable_if_t<isa::kIsTile<TileT> && !isa::kIsTile<Pipe>, int> = 0>
PTO_INST RecordEvent TPUSH(TileT& tile, Pipe& pipe) {
    pipe.template push<TileSplitAxis::TILE_NO_SPLIT>(tile);
    return {};
}
template <class Pipe, class Data, TileSplitAxis Split, class... Rest>
PTO_INST RecordEvent TPOP(Pipe& pipe, Data& data, Rest&&...) {
    if constexpr (isa::kIsTile<Data>)
        pipe.template pop<Split>(data);
    else
        pipe.template pop_view<Split>(data);
    return {};
}
template <class TileT, class Pipe, std::enable_if_t<isa::kIsTile<TileT> && !isa::kIsTile<Pipe>, int> = 0>
PTO_INST RecordEvent TPOP(TileT& tile, Pipe& pipe) {
    pipe.template pop<TileSplitAxis::TILE_NO_SPLIT>(tile);
    return {};
}
template <class Pipe, TileSplitAxis Split>
PTO_INST RecordEvent TFREE(Pipe& pipe) {
    pipe.template free_tile<Split>();
    return {};
}
template <class Pipe, class Global, TileSplitAxis Split>
PTO_INST RecordEvent TFREE(Pipe& pipe, Global&) {
    pipe.template free_view<Split>();
    return {};
}
template <class Pipe, class Global, TileSplitAxis Split>
PTO_INST RecordEvent TALLOC(Pipe& pipe, Global& view) {
    pipe.template allocate<Split>(view);
    return {};
}

}  // namespace pto
