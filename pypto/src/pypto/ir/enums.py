"""Enumerations of the IR. Those that travel as plain ints inside operator kwargs are ``IntEnum``."""

from __future__ import annotations

from enum import Enum, IntEnum


class FunctionType(Enum):
    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(Enum):
    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = CHIP_DIE
    PROCESSOR = CHIP
    UMA = CHIP
    NODE = HOST
    POD = CLUSTER_0
    CLOS1 = CLUSTER_1
    CLOS2 = CLUSTER_2


class Role(Enum):
    Orchestrator = 0
    SubWorker = 1


class ParamDirection(Enum):
    In = 0
    Out = 1
    InOut = 2


class ArgDirection(Enum):
    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5


class ForKind(Enum):
    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class MemorySpace(Enum):
    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9


class TensorLayout(Enum):
    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(Enum):
    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(Enum):
    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(Enum):
    null = 0
    normal = 1


class ScopeKind(Enum):
    InCore = 0
    Cluster = 2
    Hierarchy = 3
    Spmd = 4
    Runtime = 5
    CommDomain = 6
    SplitAiv = 7


class SplitMode(IntEnum):
    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class PipeType(IntEnum):
    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class CoreType(IntEnum):
    VECTOR = 0
    CUBE = 1


class NotifyOp(IntEnum):
    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum):
    Eq = 0
    Ge = 1


class AtomicType(IntEnum):
    None_ = 0
    Add = 1


class ReduceOp(IntEnum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class InlineLanguage(Enum):
    Python = 0


class ArgEffect(Enum):
    Read = 0
    Write = 1
    ReadWrite = 2


class WriteChannel(Enum):
    Dma = 0
    Scalar = 1


class CachePolicy(IntEnum):
    DEFAULT = 0
    BYPASS = 1


_LINQU_LEVEL = {
    Level.AIV: 0,
    Level.AIC: 0,
    Level.CORE_GROUP: 0,
    Level.CHIP_DIE: 1,
    Level.CHIP: 2,
    Level.HOST: 3,
    Level.CLUSTER_0: 4,
    Level.CLUSTER_1: 5,
    Level.CLUSTER_2: 6,
    Level.GLOBAL: 7,
}


def level_to_linqu_level(level: Level) -> int:
    """Number of the runtime level ladder (0 = core ... 7 = global)."""
    return _LINQU_LEVEL[level]


def is_incore_type(func_type: FunctionType) -> bool:
    """True for functions that run on one core: InCore, AIC, AIV."""
    return func_type in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def is_orchestration_like(func_type: FunctionType) -> bool:
    """True for functions that submit tasks: Orchestration, Graph."""
    return func_type in (FunctionType.Orchestration, FunctionType.Graph)


class OptimizationStrategy(Enum):
    """Named pass lists. Defined here so that options can be read without loading the passes."""

    Default = "Default"
