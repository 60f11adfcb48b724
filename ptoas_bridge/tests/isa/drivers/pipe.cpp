#include "block.hpp"

constexpr int kM = 32, kN = 32, kSteps = 7;
using Acc = Tile<TileType::Acc, float, kM, kN, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 1024>;

inline void fill(Acc& tile, const float* from) {
    for (int i = 0; i < tile.GetValidRow(); ++i)
        for (int j = 0; j < tile.GetValidCol(); ++j) tile.data()[Acc::offset(i, j)] = from[i * kN + j];
}

// Cube to Vector: every step sends a product tile, each lane adds 1000 * (lane + 1) to its part and stores it.
template <class VecTile, TileSplitAxis Split, bool NoSplit>
void cube_to_vector(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    float* input = c.pointer<float>(0);
    float* output = c.pointer<float>(1);
    void* global = c.number[2] ? c.array[2] : nullptr;
    using Pipe = TPipe<0, Direction::DIR_C2V, kM * kN * 4, 2, 2, NoSplit>;
    run_block(
        [&] {
            auto pipe = TPipe<0, Direction::DIR_C2V, kM * kN * 4, 2, 2, NoSplit>(global, 4096, 0);
            for (int step = 0; step < kSteps; ++step) {
                Acc tile(rows, cols);
                TASSIGN(tile, 0);
                fill(tile, input + step * kM * kN);
                TPUSH<Pipe, Acc, Split>(pipe, tile);
            }
        },
        [&](int lane) {
            if (NoSplit && global == nullptr && lane == 1) return;
            auto pipe = Pipe(global, 4096, 0);
            constexpr bool by_row = Split == TileSplitAxis::TILE_UP_DOWN || Split == TileSplitAxis::TILE_UP_DOWN_ODD;
            constexpr bool by_col =
                Split == TileSplitAxis::TILE_LEFT_RIGHT || Split == TileSplitAxis::TILE_LEFT_RIGHT_ODD;
            const int64_t first_rows = by_row ? (rows + 1) / 2 : rows, first_cols = by_col ? (cols + 1) / 2 : cols;
            int64_t my_rows = by_row ? (lane ? rows / 2 : first_rows) : rows;
            int64_t my_cols = by_col ? (lane ? cols / 2 : first_cols) : cols;
            if (Split == TileSplitAxis::TILE_NO_SPLIT && lane == 1) my_rows = my_cols = 0;
            for (int step = 0; step < kSteps; ++step) {
                VecTile tile(VecTile::Rows, VecTile::Cols);
                tile.SetValidShape(my_rows, my_cols);
                TPOP<Pipe, VecTile, Split>(pipe, tile);
                VecTile sum(my_rows, my_cols);
                TASSIGN(sum, 65536);
                TADDS(sum, tile, 1000.0f * static_cast<float>(lane + 1));
                TFREE<Pipe, Split>(pipe);
                float* to =
                    output + step * kM * kN + lane * ((by_row ? first_rows * kN : 0) + (by_col ? first_cols : 0));
                stored(sum, to, kN);
            }
        });
}
template <class T>
void c2v(const Call& c) {
    using Full = Tile<TileType::Vec, float, kM, kN, BLayout::RowMajor, -1, -1>;
    using Half = Tile<TileType::Vec, float, kM, kN / 2, BLayout::RowMajor, -1, -1>;
    switch (c.number[3]) {
        case 0:
            return cube_to_vector<Full, TileSplitAxis::TILE_NO_SPLIT, true>(c);
        case 1:
            return cube_to_vector<Full, TileSplitAxis::TILE_UP_DOWN, false>(c);
        case 2:
            return cube_to_vector<Half, TileSplitAxis::TILE_LEFT_RIGHT, false>(c);
        case 3:
            return cube_to_vector<Full, TileSplitAxis::TILE_UP_DOWN_ODD, false>(c);
        default:
            return cube_to_vector<Full, TileSplitAxis::TILE_LEFT_RIGHT_ODD, false>(c);
    }
}
ENTRY(c2v, f32, float)

// Vector to Cube: each lane sends its part, the Cube stores the whole matrix.
template <class VecTile, TileSplitAxis Split, bool NoSplit>
void vector_to_cube(const Call& c) {
    using Mat = Tile<TileType::Mat, half, kM, kN, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    half* input = c.pointer<half>(0);
    half* output = c.pointer<half>(1);
    void* global = c.number[0] ? c.array[2] : nullptr;
    using Pipe = TPipe<4, Direction::DIR_V2C, kM * kN * 2, 2, 2, NoSplit>;
    run_block(
        [&] {
            Pipe pipe(global, 0, 8192);
            for (int step = 0; step < kSteps; ++step) {
                Mat tile(kM, kN);
                TPOP<Pipe, Mat, Split>(pipe, tile);
                stored(tile, output + step * kM * kN, kN);
                TFREE<Pipe, Split>(pipe);
            }
        },
        [&](int lane) {
            if (NoSplit && global == nullptr && lane == 1) return;
            Pipe pipe(global, 0, 8192);
            constexpr bool by_row = Split == TileSplitAxis::TILE_UP_DOWN,
                           by_col = Split == TileSplitAxis::TILE_LEFT_RIGHT;
            const int64_t rows = by_row ? kM / 2 : kM, cols = by_col ? kN / 2 : kN;
            for (int step = 0; step < kSteps; ++step) {
                const bool silent = Split == TileSplitAxis::TILE_NO_SPLIT && lane == 1;
                VecTile tile(silent ? 0 : rows, silent ? 0 : cols);
                TASSIGN(tile, 0);
                auto from = view(input + step * kM * kN + lane * ((by_row ? rows * kN : 0) + (by_col ? cols : 0)),
                                 tile.GetValidRow(), tile.GetValidCol(), kN);
                TLOAD(tile, from);
                TPUSH<Pipe, VecTile, Split>(pipe, tile);
            }
        });
}
template <class T>
void v2c(const Call& c) {
    using Rows = Tile<TileType::Vec, half, kM, kN, BLayout::RowMajor, -1, -1>;
    using Boxed = Tile<TileType::Vec, half, kM, kN, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    switch (c.number[1]) {
        case 0:
            return vector_to_cube<Rows, TileSplitAxis::TILE_NO_SPLIT, true>(c);
        case 1:
            return vector_to_cube<Rows, TileSplitAxis::TILE_UP_DOWN, false>(c);
        case 2:
            return vector_to_cube<Rows, TileSplitAxis::TILE_LEFT_RIGHT, false>(c);
        case 3:
            return vector_to_cube<Boxed, TileSplitAxis::TILE_NO_SPLIT, true>(c);
        default:
            return vector_to_cube<Boxed, TileSplitAxis::TILE_UP_DOWN, false>(c);
    }
}
ENTRY(v2c, f16, half)

// Both directions in one pipe: the lanes double what the Cube sends and return it.
template <class T>
void ping_pong(const Call& c) {
    using Vec = Tile<TileType::Vec, float, kM / 2, kN, BLayout::RowMajor, -1, -1>;
    using Mat = Tile<TileType::Mat, float, kM, kN, BLayout::ColMajor, -1, -1, SLayout::RowMajor, 512>;
    constexpr auto kSplit = TileSplitAxis::TILE_UP_DOWN;
    using Pipe = TPipe<0, Direction::DIR_BOTH, kM * kN * 4, 2, 2, false>;
    float* input = c.pointer<float>(0);
    float* output = c.pointer<float>(1);
    void* global = c.number[0] ? c.array[2] : nullptr;
    run_block(
        [&] {
            Pipe pipe(global, 0, 16384);
            for (int step = 0; step < kSteps; ++step) {
                Acc tile(kM, kN);
                TASSIGN(tile, 0);
                fill(tile, input + step * kM * kN);
                TPUSH<Pipe, Acc, kSplit>(pipe, tile);
                Mat back(kM, kN);
                TPOP<Pipe, Mat, kSplit>(pipe, back);
                stored(back, output + step * kM * kN, kN);
                TFREE<Pipe, kSplit>(pipe);
            }
        },
        [&](int) {
            Pipe pipe(global, 0, 16384);
            for (int step = 0; step < kSteps; ++step) {
                Vec tile(kM / 2, kN);
                TPOP<Pipe, Vec, kSplit>(pipe, tile);
                Vec twice(kM / 2, kN);
                TASSIGN(twice, 65536);
                TMULS(twice, tile, 2.0f);
                TFREE<Pipe, kSplit>(pipe);
                TPUSH<Pipe, Vec, kSplit>(pipe, twice);
            }
        });
}
ENTRY(ping_pong, f32, float)

// A slot exposed as a view: the producer stores into it, the consumer loads from it.
template <class T>
void views(const Call& c) {
    using Pipe = TPipe<2, Direction::DIR_C2V, kM * kN * 4, 2, 2, true>;
    using Slot = GlobalTensor<float, Shape<1, 1, 1, kM, kN>, Stride<kM * kN, kM * kN, kM * kN, kN, 1>>;
    using Vec = Tile<TileType::Vec, float, kM, kN>;
    constexpr auto kSplit = TileSplitAxis::TILE_NO_SPLIT;
    run_block(
        [&] {
            Pipe pipe(c.array[2], 0, 0);
            for (int step = 0; step < kSteps; ++step) {
                Acc tile(kM, kN);
                TASSIGN(tile, 0);
                fill(tile, c.pointer<float>(0) + step * kM * kN);
                Slot slot;
                TALLOC<Pipe, Slot, kSplit>(pipe, slot);
                TSTORE(slot, tile);
                TPUSH<Pipe, Slot, kSplit>(pipe, slot);
            }
        },
        [&](int lane) {
            Pipe pipe(c.array[2], 0, 0);
            for (int step = 0; step < kSteps; ++step) {
                Slot slot;
                TPOP<Pipe, Slot, kSplit>(pipe, slot);
                Vec tile;
                TASSIGN(tile, 0);
                TLOAD(tile, slot);
                TFREE<Pipe, Slot, kSplit>(pipe, slot);
                Slot to(c.pointer<float>(1) + step * kM * kN);
                if (lane == 0) TSTORE(to, tile);
            }
        });
}
ENTRY(views, f32, float)

template <class T>
void mistakes(const Call& c) {
    using Pipe = TPipe<0, Direction::DIR_C2V, 1024, 2, 2, true>;
    if (c.number[0] == 0) {
        Pipe pipe(nullptr, 0, 0);
        Acc tile(kM, kN);
        TASSIGN(tile, 0);
        TPUSH<Pipe, Acc, TileSplitAxis::TILE_NO_SPLIT>(pipe, tile);
    } else {
        run_block(
            [&] {
                Pipe pipe(nullptr, 0, 0);
                Acc tile(kM, kN);
                TASSIGN(tile, 0);
                TPUSH<Pipe, Acc, TileSplitAxis::TILE_NO_SPLIT>(pipe, tile);
            },
            [](int) {});
    }
}
ENTRY(mistakes, f32, float)

template <class T>
void no_such_memory(const Call&) {
    run_block(
        [] {
            Tile<TileType::Vec, float, 8, 8> tile;
            TASSIGN(tile, 0);
        },
        [](int) {});
}
ENTRY(no_such_memory, f32, float)

template <class T>
void lanes(const Call& c) {
    run_block([] {}, [&](int lane) { c.pointer<int64_t>(0)[lane] = get_subblockid(); });
}
ENTRY(lanes, i64, int64_t)
