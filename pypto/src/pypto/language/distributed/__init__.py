"""Distributed programs: ``import pypto.language.distributed as pld``."""

from __future__ import annotations

from pypto.ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from pypto.ir.types import CommCtxType
from pypto.language.distributed.op import system_ops as system
from pypto.language.distributed.op import tensor_ops as tensor
from pypto.language.distributed.op import tile_ops as tile
from pypto.language.distributed.op import unified_ops as _unified
from pypto.language.typing.values import CommCtx, DistributedTensor

globals().update({name: getattr(_unified, name) for name in _unified.__all__})
__all__ = sorted(  # noqa: PLE0605
    [
        "AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp", "system",
        "tensor", "tile", *_unified.__all__,
    ]
)  # fmt: skip
