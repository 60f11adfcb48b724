// What every driver needs: entries that catch errors, dynamic views of arrays, plain tiles at fixed addresses.
#pragma once
#include "pto/pto-inst.hpp"

using namespace pto;

struct Call {
    void** array;
    const int64_t* number;
    const double* scalar;
    template <class T>
    T* pointer(int i) const {
        return static_cast<T*>(array[i]);
    }
};

template <class Body>
inline const char* guarded(const Body& body) {
    static thread_local char text[400];
    try {
        body();
    } catch (const pto::Error& error) {
        __builtin_snprintf(text, sizeof(text), "%s", error.what());
        return text;
    }
    return nullptr;
}

// extern "C" entry NAME_SUFFIX that runs NAME<T>(call).
#define ENTRY(NAME, SUFFIX, ...)                                                                        \
    extern "C" const char* NAME##_##SUFFIX(void** array, const int64_t* number, const double* scalar) { \
        return guarded([&] { NAME<__VA_ARGS__>(Call{array, number, scalar}); });                        \
    }
#define FLOAT_ENTRIES(NAME) ENTRY(NAME, f32, float) ENTRY(NAME, f16, half) ENTRY(NAME, bf16, bfloat16_t)
#define INT_ENTRIES(NAME)   \
    ENTRY(NAME, i8, int8_t) \
    ENTRY(NAME, u8, uint8_t) ENTRY(NAME, i16, int16_t) ENTRY(NAME, i32, int32_t) ENTRY(NAME, u32, uint32_t)
#define ALL_ENTRIES(NAME) FLOAT_ENTRIES(NAME) INT_ENTRIES(NAME)

constexpr int kRows = 24, kCols = 64, kPitch = 80;

template <class T>
using View = GlobalTensor<T, Shape<1, 1, 1, -1, -1>, Stride<-1, -1, -1, -1, -1>, Layout::ND>;
template <class T>
inline View<T> view(T* data, int64_t rows, int64_t cols, int64_t pitch = kPitch) {
    return View<T>(data, Shape<1, 1, 1, -1, -1>(rows, cols),
                   Stride<>(rows * pitch, rows * pitch, rows * pitch, pitch, 1));
}

template <class T>
using Plain = Tile<TileType::Vec, T, kRows, kCols, BLayout::RowMajor, -1, -1>;
template <class T>
using Column = Tile<TileType::Vec, T, 32, 1, BLayout::ColMajor, -1, -1>;

template <class TileT>
inline TileT make(int64_t rows, int64_t cols, uint64_t address) {
    TileT tile(rows, cols);
    TASSIGN(tile, address);
    return tile;
}
template <class TileT>
inline TileT loaded(typename TileT::DType* data, int64_t rows, int64_t cols, uint64_t address, int64_t pitch = kPitch) {
    TileT tile = make<TileT>(rows, cols, address);
    auto from = view(data, rows, cols, pitch);
    TLOAD(tile, from);
    return tile;
}
template <class TileT>
inline void stored(TileT& tile, typename TileT::DType* data, int64_t pitch = kPitch) {
    auto to = view(data, tile.GetValidRow(), tile.GetValidCol(), pitch);
    TSTORE(to, tile);
}
constexpr uint64_t kSlot = 0x4000;  // addresses of the operands: 16 KiB apart
