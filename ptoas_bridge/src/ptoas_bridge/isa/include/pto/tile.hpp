// Tile: a two-dimensional buffer in on-chip memory, its physical layout in the type, its valid region at run time.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core_memory.hpp"
#include "enums.hpp"
#include "types.hpp"

namespace pto {

template <TileType Loc_, class Element_, int Rows_, int Cols_, BLayout BLayout_ = BLayout::RowMajor,
          int RowValid_ = Rows_, int ColValid_ = Cols_, SLayout SLayout_ = SLayout::NoneBox,
          int SFractalSize_ = TileConfig::fractalABSize, PadValue PadVal_ = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
struct Tile {
    using DType = Element_;
    using TileDType = Element_*;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_;
    static constexpr int Cols = Cols_;
    static constexpr int ValidRow = RowValid_;
    static constexpr int ValidCol = ColValid_;
    static constexpr BLayout BFractal = BLayout_;
    static constexpr SLayout SFractal = SLayout_;
    static constexpr int SFractalSize = SFractalSize_;
    static constexpr PadValue PadVal = PadVal_;
    static constexpr CompactMode Compact = Compact_;
    static constexpr bool isRowMajor = BLayout_ == BLayout::RowMajor;
    static constexpr bool isBoxedLayout = SLayout_ != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = SLayout_ == SLayout::RowMajor;
    static constexpr bool isInnerColMajor = SLayout_ == SLayout::ColMajor;
    static constexpr int Numel = Rows_ * Cols_;

    // Extents of one box of a boxed layout: 16 lines of 32 bytes, of 16 elements (accumulator), or the MX scale pair.
    static constexpr int kBoxRun = SFractalSize_ == 1024 ? 16 : SFractalSize_ == 32 ? 2 : 32 / int(sizeof(Element_));
    static constexpr int InnerRows = !isBoxedLayout ? 1 : isInnerRowMajor ? (Rows_ < 16 ? Rows_ : 16) : kBoxRun;
    static constexpr int InnerCols = !isBoxedLayout ? 1 : isInnerRowMajor ? kBoxRun : (Cols_ < 16 ? Cols_ : 16);
    static constexpr int RowStride = isBoxedLayout ? 0 : isRowMajor ? Cols_ + (Compact_ == CompactMode::RowPlusOne) : 1;
    static constexpr int ColStride = isBoxedLayout ? 0 : isRowMajor ? 1 : Rows_ + (Compact_ == CompactMode::RowPlusOne);

    static_assert(Rows_ > 0 && Cols_ > 0, "a tile needs positive rows and cols");
    static_assert(RowValid_ >= -1 && RowValid_ <= Rows_, "the valid rows of a tile exceed its rows");
    static_assert(ColValid_ >= -1 && ColValid_ <= Cols_, "the valid cols of a tile exceed its cols");
    static_assert(SFractalSize_ == 32 || SFractalSize_ == 512 || SFractalSize_ == 1024,
                  "the fractal size of a tile is 32, 512 or 1024 bytes");
    static_assert(isBoxedLayout || !isRowMajor || Cols_ * sizeof(Element_) % 32 == 0,
                  "a row of a row-major tile must be a multiple of 32 bytes");
    static_assert(isBoxedLayout || isRowMajor || Rows_ * sizeof(Element_) % 32 == 0,
                  "a column of a column-major tile must be a multiple of 32 bytes");
    static_assert(!isBoxedLayout || Loc_ == TileType::Vec || (Rows_ % InnerRows == 0 && Cols_ % InnerCols == 0),
                  "the shape of a boxed tile must be a multiple of its box");

    Tile() { set_valid(RowValid_ < 0 ? Rows_ : RowValid_, ColValid_ < 0 ? Cols_ : ColValid_); }
    explicit Tile(int64_t valid) {
        static_assert((RowValid_ < 0) != (ColValid_ < 0),
                      "this tile type does not have exactly one dynamic valid extent");
        set_valid(RowValid_ < 0 ? valid : RowValid_, ColValid_ < 0 ? valid : ColValid_);
    }
    Tile(int64_t rows, int64_t cols) { set_valid(RowValid_ < 0 ? rows : RowValid_, ColValid_ < 0 ? cols : ColValid_); }

    void SetValidShape(int64_t rows, int64_t cols) { set_valid(rows, cols); }
    int GetValidRow() const { return RowValid_ < 0 ? valid_row_ : RowValid_; }
    int GetValidCol() const { return ColValid_ < 0 ? valid_col_ : ColValid_; }

    // Start of the storage; an instruction on a tile without an address fails here instead of in memory.
    Element_* data() const {
        if (__builtin_expect(data_ == nullptr, 0)) isa::fail_unbound(Loc_);
        return data_;
    }
    void bind(Element_* data) { data_ = data; }

    // Element access in storage order (TGETVAL, TSETVAL).
    Element_ GetValue(int64_t index) const { return data()[checked(index)]; }
    void SetValue(int64_t index, Element_ value) { data()[checked(index)] = value; }

    // Storage position of logical element (row, col).
    static constexpr long offset(long row, long col) {
        if constexpr (!isBoxedLayout) {
            return row * RowStride + col * ColStride;
        } else {
            constexpr long plus = Compact_ == CompactMode::RowPlusOne;
            constexpr long box = long{InnerRows} * InnerCols;
            const long inside = isInnerRowMajor ? (row % InnerRows) * InnerCols + col % InnerCols
                                                : (col % InnerCols) * InnerRows + row % InnerRows;
            if constexpr (isRowMajor)
                return (row / InnerRows) * (Cols_ + plus) * InnerRows + (col / InnerCols) * box + inside;
            else
                return (col / InnerCols) * (Rows_ + plus) * InnerCols + (row / InnerRows) * box + inside;
        }
    }

private:
    void set_valid(int64_t rows, int64_t cols) {
        if (__builtin_expect(uint64_t(rows) > uint64_t(Rows_) || uint64_t(cols) > uint64_t(Cols_), 0))
            isa::fail_valid_region(Loc_, rows, cols, Rows_, Cols_);
        valid_row_ = static_cast<int>(rows);
        valid_col_ = static_cast<int>(cols);
    }
    static int64_t checked(int64_t index) {
        if (__builtin_expect(uint64_t(index) >= uint64_t(Numel), 0))
            isa::fail("element %lld is outside a tile of %d elements", static_cast<long long>(index), Numel);
        return index;
    }

    Element_* data_ = nullptr;
    int valid_row_ = 0;
    int valid_col_ = 0;
};

#if defined(PTO_ARCH_A2A3)
template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeft = Tile<TileType::Left, T, Rows, Cols, BLayout::RowMajor, RowValid, ColValid, SLayout::RowMajor, 512>;
#else
template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeft = Tile<TileType::Left, T, Rows, Cols, BLayout::ColMajor, RowValid, ColValid, SLayout::RowMajor, 512>;
#endif
template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileRight = Tile<TileType::Right, T, Rows, Cols, BLayout::RowMajor, RowValid, ColValid, SLayout::ColMajor, 512>;
template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileAcc = Tile<TileType::Acc, T, Rows, Cols, BLayout::ColMajor, RowValid, ColValid, SLayout::RowMajor, 1024>;

template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeftScale =
    Tile<TileType::ScaleLeft, T, Rows, Cols, BLayout::RowMajor, RowValid, ColValid, SLayout::RowMajor, 32>;
template <class T, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileRightScale =
    Tile<TileType::ScaleRight, T, Rows, Cols, BLayout::ColMajor, RowValid, ColValid, SLayout::ColMajor, 32>;

namespace isa {

template <class T>
struct IsTile : std::false_type {};
template <TileType L, class E, int R, int C, BLayout B, int VR, int VC, SLayout S, int F, PadValue P, CompactMode M>
struct IsTile<Tile<L, E, R, C, B, VR, VC, S, F, P, M>> : std::true_type {};
template <class T>
inline constexpr bool kIsTile = IsTile<std::remove_cv_t<std::remove_reference_t<T>>>::value;

// The last byte of the valid region must lie inside the memory of the space; a sub-window of a larger tile keeps the
// parent's extents in its type, so the physical extents are no bound.
template <class TileT>
inline void bind_address(TileT& tile, uint64_t address) {
    const int rows = tile.GetValidRow(), cols = tile.GetValidCol();
    const uint64_t bytes =
        rows > 0 && cols > 0 ? uint64_t(TileT::offset(rows - 1, cols - 1) + 1) * sizeof(typename TileT::DType) : 0;
    tile.bind(reinterpret_cast<typename TileT::DType*>(place<TileT::Loc>(address, bytes)));
}

}  // namespace isa
}  // namespace pto
