"""Distributed programs: ``import pypto.language.distributed as pld``."""

from __future__ import annotations

from pypto.ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from pypto.ir.types import CommCtxType
from pypto.language.distributed.op import system_ops as system
from pypto.language.distributed.op import tensor_ops as tensor
from pypto.language.distributed.op import tile_ops as tile
from pypto.language.distributed.op.unified_ops import (
    alloc_window_buffer,
    get_comm_ctx,
    nranks,
    rank,
    remote_load,
    remote_store,
    window,
    world_size,
)
from pypto.language.typing.values import CommCtx, DistributedTensor

__all__ = [
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "alloc_window_buffer",
    "get_comm_ctx",
    "nranks",
    "rank",
    "remote_load",
    "remote_store",
    "system",
    "tensor",
    "tile",
    "window",
    "world_size",
]
