"""Spelling of types in ``.pto`` text."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.errors import InternalError
from pypto.ir import DataType, MemorySpace, PadValue, TensorLayout, TileType
from pypto.ir.expr import ConstInt

_DTYPE = {
    DataType.FP32: "f32",
    DataType.FP16: "f16",
    DataType.BF16: "bf16",
    DataType.INT8: "i8",
    DataType.INT16: "i16",
    DataType.INT32: "i32",
    DataType.INT64: "i64",
    DataType.UINT8: "ui8",
    DataType.UINT16: "ui16",
    DataType.UINT32: "ui32",
    DataType.UINT64: "ui64",
    DataType.INDEX: "index",
    DataType.BOOL: "i1",
    DataType.FP8E4M3FN: "f8E4M3FN",
    DataType.FP8E5M2: "f8E5M2",
    DataType.HF8: "!pto.hif8",
    DataType.FP8E8M0: "!pto.f8E8M0",
    DataType.FP4: "!pto.f4E2M1x2",
    DataType.TASK_ID: "i64",
}

_SPACE = {
    MemorySpace.DDR: "gm",
    MemorySpace.Vec: "vec",
    MemorySpace.Mat: "mat",
    MemorySpace.Left: "left",
    MemorySpace.Right: "right",
    MemorySpace.Acc: "acc",
    MemorySpace.Bias: "bias",
    MemorySpace.LeftScale: "scaling",
    MemorySpace.RightScale: "scaling",
}

_PAD = {PadValue.null: 0, PadValue.zero: 1, PadValue.max: 2, PadValue.min: 3}
_LAYOUT = {
    TensorLayout.ND: "nd",
    TensorLayout.DN: "dn",
    TensorLayout.NZ: "nz",
    TensorLayout.MX_A_ZZ: "mx_a_zz",
    TensorLayout.MX_B_NN: "mx_b_nn",
}


def dtype_text(dtype: DataType) -> str:
    """Element type as written in types; ``ValueError`` for one without a spelling."""
    text = _DTYPE.get(dtype)
    if text is None:
        raise ValueError(f"element type {dtype} cannot be used in a kernel")
    return text


def signless_text(dtype: DataType) -> str:
    """The scalar type of arithmetic: unsigned integers lose their sign marker."""
    text = dtype_text(dtype)
    return text[1:] if text.startswith("ui") else text


def space_text(space: MemorySpace | None) -> str:
    if space is None or space not in _SPACE:
        raise InternalError(f"a tile without a resolved memory space reached code generation ({space})")
    return _SPACE[space]


def layout_text(layout: TensorLayout) -> str:
    return _LAYOUT[layout]


def tile_extents(tile: TileType) -> tuple[int, int]:
    """Physical (rows, cols); a rank-1 tile is one row."""
    shape = tile.shape
    if len(shape) == 1:
        shape = (ConstInt(1, DataType.INDEX), *shape)
    if len(shape) != 2 or not all(isinstance(d, ConstInt) for d in shape):
        raise InternalError(f"a tile must have two constant extents at code generation, got {tile}")
    return shape[0].value, shape[1].value


def tile_buf_text(tile: TileType, valid: tuple[str, str] = ("?", "?")) -> str:
    """``!pto.tile_buf<...>``; ``valid`` is what stands for the valid rows and columns."""
    rows, cols = tile_extents(tile)
    view = tile.get_effective_tile_view()
    compact = f", compact={view.compact.value}" if view.compact.value else ""
    return (
        f"!pto.tile_buf<loc={space_text(tile.memory_space)}, dtype={dtype_text(tile.dtype)}, rows={rows}, cols={cols}, "
        f"v_row={valid[0]}, v_col={valid[1]}, blayout={view.blayout.name}, slayout={view.slayout.name}, "
        f"fractal={view.fractal}, pad={_PAD[view.pad]}{compact}>"
    )


def tensor_view_text(rank: int, dtype: DataType) -> str:
    return f"!pto.tensor_view<{'?x' * rank}{dtype_text(dtype)}>"


def partition_text(sizes: Sequence[object], dtype: DataType) -> str:
    """``!pto.partition_tensor_view<...>``: constant sizes static, others ``?``."""
    extents = "x".join(str(d.value) if isinstance(d, ConstInt) else "?" for d in sizes)
    return f"!pto.partition_tensor_view<{extents}x{dtype_text(dtype)}>"
