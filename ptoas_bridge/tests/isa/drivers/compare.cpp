#include "driver.hpp"

using Mask = Tile<TileType::Vec, uint8_t, kRows, 32, BLayout::RowMajor, -1, -1>;

template <class T>
void tcmp(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    CmpMode mode = static_cast<CmpMode>(c.number[2]);
    auto a = loaded<Plain<T>>(c.pointer<T>(0), rows, cols, 0);
    auto b = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);
    auto tmp = make<Tile<TileType::Vec, uint32_t, 1, 8>>(1, 8, 5 * kSlot);
    auto mask = make<Mask>(rows, (cols + 7) / 8, 2 * kSlot);
    const T x = b.GetValue(0);
    if (c.number[3])
        TCMPS(mask, a, x, mode);
    else
        TCMP(mask, a, b, mode);
    stored(mask, c.pointer<uint8_t>(2), 32);
    auto d = make<Plain<T>>(rows, cols, 3 * kSlot);
    if (c.number[3])
        TSELS(d, mask, a, tmp, x);
    else
        TSEL(d, mask, a, b, tmp);
    stored(d, c.pointer<T>(3));
}
ALL_ENTRIES(tcmp)

template <class T>
void tsels(const Call& c) {
    const int64_t rows = c.number[0], cols = c.number[1];
    auto mask = loaded<Mask>(c.pointer<uint8_t>(0), rows, (cols + 7) / 8, 0, 32);
    auto a = loaded<Plain<T>>(c.pointer<T>(1), rows, cols, kSlot);
    TSELS(a, mask, a, static_cast<T>(9));
    stored(a, c.pointer<T>(2));
}
ENTRY(tsels, f32, float)
ENTRY(tsels, f16, half)
ENTRY(tsels, i8, int8_t)
