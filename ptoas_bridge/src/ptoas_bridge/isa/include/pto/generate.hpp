// Tiles made from nothing: sequences, triangles, random bits.
#pragma once
#include "elementwise.hpp"

namespace pto {
namespace isa {

template <int Descending, class D, class X>
inline void fill_sequence(D& dst, X start) {
    using T = typename D::DType;
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long j = 0; j < dst.GetValidCol(); ++j)
            dst.data()[D::offset(i, j)] =
                static_cast<T>(Descending ? start - static_cast<X>(j) : start + static_cast<X>(j));
}

// Philox 4x32: counter-based generator; one block of four words per counter value.
struct Philox {
    uint32_t counter[4];
    static Philox block(const uint32_t (&start)[4], uint64_t index, uint32_t key0, uint32_t key1, int rounds) {
        Philox state;
        const uint64_t low = (uint64_t{start[1]} << 32 | start[0]) + index;
        state.counter[0] = static_cast<uint32_t>(low);
        state.counter[1] = static_cast<uint32_t>(low >> 32);
        state.counter[2] = start[2];
        state.counter[3] = start[3];
        for (int r = 0; r < rounds; ++r) {
            const uint64_t a = uint64_t{0xD2511F53u} * state.counter[0], b = uint64_t{0xCD9E8D57u} * state.counter[2];
            state.counter[0] = static_cast<uint32_t>(b >> 32) ^ state.counter[1] ^ key0;
            state.counter[2] = static_cast<uint32_t>(a >> 32) ^ state.counter[3] ^ key1;
            state.counter[1] = static_cast<uint32_t>(b);
            state.counter[3] = static_cast<uint32_t>(a);
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        return state;
    }
};

}  // namespace isa

// dst[i, j] = start + j, or start - j
template <class TileT, class T, int Descending>
PTO_INST RecordEvent TCI(TileT& dst, T start) {
    isa::fill_sequence<Descending>(dst, start);
    return {};
}
template <class TileT, class Tmp, class T, int Descending>
PTO_INST RecordEvent TCI(TileT& dst, T start, Tmp&) {
    isa::fill_sequence<Descending>(dst, start);
    return {};
}

// Ones on and below (upper: above) the given diagonal, zeros elsewhere.
template <class TileT, int Upper>
PTO_INST RecordEvent TTRI(TileT& dst, int diagonal) {
    using T = typename TileT::DType;
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long j = 0; j < dst.GetValidCol(); ++j)
            dst.data()[TileT::offset(i, j)] = T((Upper ? j >= i + diagonal : j <= i + diagonal) ? 1 : 0);
    return {};
}
template <int Upper, class TileT>
PTO_INST RecordEvent TTRI(TileT& dst, int diagonal) {
    return TTRI<TileT, Upper>(dst, diagonal);
}

using TRandomKey = uint32_t[2];
using TRandomCounter = uint32_t[4];

template <uint16_t Rounds = 10, class TileT>
PTO_INST RecordEvent TRANDOM(TileT& dst, TRandomKey& key, TRandomCounter& counter) {
    static_assert(sizeof(typename TileT::DType) == 4, "TRANDOM fills tiles of 32-bit elements");
    uint64_t index = 0;
    isa::Philox block{};
    for (long i = 0; i < dst.GetValidRow(); ++i)
        for (long j = 0; j < dst.GetValidCol(); ++j, ++index) {
            if (index % 4 == 0) block = isa::Philox::block(counter, index / 4, key[0], key[1], Rounds);
            dst.data()[TileT::offset(i, j)] = isa::bit_cast<typename TileT::DType>(block.counter[index % 4]);
        }
    return {};
}

}  // namespace pto
