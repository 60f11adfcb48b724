// Enumerations that appear as template and call arguments of PTO instructions.
#pragma once
#include <cstdint>

namespace pto {

inline constexpr int DYNAMIC = -1;

enum class TileType : uint8_t { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl };
enum class BLayout : uint8_t { RowMajor, ColMajor };
enum class SLayout : uint8_t { NoneBox, RowMajor, ColMajor };
enum class PadValue : uint8_t { Null, Zero, Max, Min };
enum class CompactMode : uint8_t { Null, Normal, RowPlusOne };
enum class Layout : uint8_t { ND, DN, NZ, SCALE, MX_A_ZZ, MX_A_ND, MX_A_DN, MX_B_NN, MX_B_ND, MX_B_DN };

struct TileConfig {
    static constexpr int alignedSize = 32;
    static constexpr int fixedRowSize = 16;
    static constexpr int fixedColSize = 16;
    static constexpr int fixedMxRowSize = 16;
    static constexpr int fixedMxColSize = 2;
    static constexpr int fractalABSize = 512;
    static constexpr int fractalCSize = 1024;
    static constexpr int fractalMxSize = 32;
};

enum class CmpMode : uint8_t { EQ, NE, LT, LE, GT, GE };
enum class RoundMode : uint8_t {
    CAST_NONE = 0,
    CAST_RINT = 1,
    CAST_ROUND = 2,
    CAST_FLOOR = 3,
    CAST_CEIL = 4,
    CAST_TRUNC = 5,
    CAST_ODD = 6,
    NONE = 0,
    RINT = 1,
    ROUND = 2,
    FLOOR = 3,
    CEIL = 4,
    TRUNC = 5,
    ODD = 6,
};
enum class SaturationMode : uint8_t { ON, OFF };
enum class STPhase : uint8_t { Unspecified, Partial, Final };
enum class AccPhase : uint8_t { Unspecified, Partial, Final };
enum class AtomicType : uint8_t { AtomicNone, AtomicAdd };
enum class ReluPreMode : uint8_t { NoRelu, NormalRelu };
enum class AccToVecMode : uint8_t { SingleModeVec0, SingleModeVec1, DualModeSplitM, DualModeSplitN };
enum class TFillPadMode : uint8_t { Normal, InPlace, Expand };
enum class MaskPattern : uint8_t { P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class ScatterAxis : uint8_t { SCATTER_ROW, SCATTER_COL };
enum class GatherAxis : uint8_t { GATHER_ROW, GATHER_COL };
enum class Coalesce : uint8_t { Row, Elem };
enum class GatherOOB : uint8_t { Undefined, Clamp, Wrap, Zero };
enum class ScatterOOB : uint8_t { Undefined, Skip, Clamp, Wrap };
enum class ScatterAtomicOp : uint8_t { None, Add, Max, Min };
enum class ScatterConflict : uint8_t { Default, Last };
enum class QuantType : uint8_t { INT8_SYM, INT8_ASYM, MXFP8, MXFP4_E2M1 };

enum class ExpAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class DivAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class PowAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };

enum class TileSplitAxis : uint8_t {
    TILE_NO_SPLIT = 0,
    TILE_UP_DOWN = 1,
    TILE_LEFT_RIGHT = 2,
    TILE_UP_DOWN_ODD = 3,
    TILE_LEFT_RIGHT_ODD = 4,
};
// Plain integers: emitted code combines them and passes them as uint8_t template arguments.
struct Direction {
    static constexpr uint8_t DIR_C2V = 1;
    static constexpr uint8_t DIR_V2C = 2;
    static constexpr uint8_t DIR_BOTH = 3;
};

enum class SyncAllMode : uint8_t { Hard, Soft };
enum class SyncCoreType : uint8_t { AIVOnly, AICOnly, Mix };

// Marker returned by every instruction; on a CPU an instruction has finished when it returns.
struct RecordEvent {};

}  // namespace pto
