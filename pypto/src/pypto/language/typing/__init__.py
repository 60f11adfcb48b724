"""Type names of the language and the values behind them."""

from __future__ import annotations

from pypto.ir.memref import MemRef
from pypto.ir.types import MemRefType, PtrType, TensorView, TileView
from pypto.language.typing.direction import Direction, InOut, Out
from pypto.language.typing.dynamic import RUNTIME, DynVar, dynamic
from pypto.language.typing.values import (
    Array,
    AsyncEvent,
    AsyncSession,
    CommCtx,
    DistributedTensor,
    PrefetchAsyncContext,
    Scalar,
    TaskId,
    Tensor,
    Tile,
    Tuple,
)

IntLike = int | Scalar
