"""The class of value an operator gives, where it is not the one of its name (``tile.*``: a tile).

The type rule computes a type from the operands of one call; stubs and pages need the class of all calls.
"""

from __future__ import annotations

from pypto.ops.registry import OpDef

_BY_PREFIX = {"tile": "Tile", "tensor": "Tensor", "builtin.tensor": "Tensor", "pld.tile": "Tile"}
_EXCEPTIONS: dict[str, tuple[str, ...]] = {
    "Scalar": (
        "tile.read", "tensor.read", "tensor.dim", "tile.get_block_idx", "tensor.get_block_idx", "tile.get_block_num",
        "tensor.get_block_num", "tile.get_subblock_idx", "tensor.get_subblock_idx", "array.get_element",
        "prefetch.wait", "system.reserve_buffer", "system.import_peer_buffer", "system.task_invalid",
        "system.task_is_valid", "system.task_dummy", "system.available_cluster_count", "system.available_aiv_count",
        "pld.system.world_size", "pld.system.rank", "pld.system.nranks",
    ),
    "Tensor": ("tile.store", "tile.mscatter"),
    "DistributedTensor": (
        "pld.tensor.window", "pld.tensor.allreduce", "pld.tensor.barrier", "pld.tensor.broadcast",
        "pld.tensor.allgather", "pld.tensor.reduce_scatter", "pld.tensor.all_to_all", "pld.tensor.all_to_all_v",
    ),
    "tuple[Tile, Tile]": ("tile.tquant_mx", "tile.tquant_mx_raw", "tile.gather_compare"),
    "tuple[Tensor, Tensor]": ("tensor.gather_compare",),
    "Array": ("array.create", "array.update_element"),
    "Ptr": ("tile.alloc", "tensor.alloc", "pld.tensor.alloc_window_buffer"),
    "PrefetchAsyncContext": ("prefetch.make_context",),
    "AsyncEvent": ("prefetch.async_prefetch",),
    "AsyncSession": ("prefetch.session",),
    "CommCtx": ("pld.system.get_comm_ctx",),
    "None": (
        "tile.tpush_to_aiv", "tile.tpush_to_aic", "pld.tile.remote_store", "pld.tensor.remote_store",
        "pld.tensor.put", "pld.tensor.get", "pld.tile.put", "pld.tile.get",
    ),
}  # fmt: skip
_RESULTS = {name: kind for kind, names in _EXCEPTIONS.items() for name in names}


def result_kind(definition: OpDef) -> str:
    """``Tile``, ``Tensor``, ``Scalar``, ..., ``tuple[Tile, Tile]``, or ``None`` for an operator without a value."""
    prefix = definition.name.rpartition(".")[0]
    return _RESULTS.get(definition.name) or _BY_PREFIX.get(prefix, "None")
