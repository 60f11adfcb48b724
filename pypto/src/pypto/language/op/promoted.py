"""Operators of one namespace that ``pl`` offers under a short name."""

from __future__ import annotations

TILE: dict[str, str] = {
    name: name
    for name in (
        "load", "store", "move", "gatherb", "mgather", "mscatter", "relu", "lrelu", "prelu", "matmul_bias",
        "matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "quant_mx", "gemv", "gemv_acc", "gemv_bias", "cmps", "rem",
        "rems", "maximums", "minimums", "addc", "subc", "addsc", "subsc", "sel", "sels", "tri",
    )
} | {"create_tile": "create"}  # fmt: skip
TENSOR: dict[str, str] = {
    name: name
    for name in (
        "full", "dim", "scatter", "gather", "paged_gather", "random", "arange", "ci", "create_l1", "get_block_idx",
        "get_block_num", "get_subblock_idx", "expand_clone", "sort",
    )
} | {"create_tensor": "create"}  # fmt: skip
SYSTEM: dict[str, str] = {
    name: name
    for name in (
        "tpush_to_aic", "tpush_to_aiv", "tpop_from_aic", "tpop_from_aiv", "tfree_to_aic", "tfree_to_aiv",
        "aic_initialize_pipe", "aiv_initialize_pipe", "reserve_buffer", "import_peer_buffer",
    )
}  # fmt: skip
