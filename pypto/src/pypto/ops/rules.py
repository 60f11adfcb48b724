"""Type rules shared by several operator families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import DTYPE_CONSTANT, DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Expr, MakeTuple
from pypto.ir.node import make
from pypto.ir.types import ShapedType, TensorType, TensorView, TileType, TileView, UnknownType, implicit_layout
from pypto.ops import shapes as S

ROW_VECTOR_DTYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)
NOTHING = UnknownType.get()  #: type of operators called for their effect


def require(condition: bool, message: str) -> None:
    """Raise ``ValueError(message)`` unless the condition holds; the registry adds the location."""
    if not condition:
        raise ValueError(message)


def fresh_tile(
    shape: Sequence[Expr],
    dtype: DataType,
    valid_shape: Sequence[Expr] = (),
    memory_space: MemorySpace | None = MemorySpace.Vec,
    pad: PadValue = PadValue.null,
    layout: tuple[TileLayout, TileLayout, int] | None = None,
    compact: CompactMode = CompactMode.null,
) -> TileType:
    """A tile with its own dense buffer; ``layout`` is (blayout, slayout, fractal), by default the implicit one."""
    full = not valid_shape or S.all_equal(valid_shape, shape)
    if full and pad is PadValue.null and layout is None and compact is CompactMode.null:
        return TileType(tuple(shape), dtype, None, None, memory_space)
    blayout, slayout, fractal = layout or implicit_layout(shape, memory_space)
    valid = tuple(valid_shape or shape)
    view = make(TileView, valid, (), None, blayout, slayout, fractal, pad, compact)
    return TileType(tuple(shape), dtype, None, view, memory_space)


def product_tile(shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr]) -> TileType:
    """An Acc tile of a matrix product; rows that are not provably all valid make it compact."""
    full = S.provably_equal(valid[0], shape[0])
    return fresh_tile(shape, dtype, valid, MemorySpace.Acc, compact=CompactMode.null if full else CompactMode.normal)


def fresh_tensor(
    shape: Sequence[Expr], dtype: DataType, valid_shape: Sequence[Expr] = (), pad: PadValue = PadValue.null
) -> TensorType:
    """A global tensor with its own dense ND storage."""
    described = bool(valid_shape) or pad is not PadValue.null
    view = make(TensorView, (), TensorLayout.ND, tuple(valid_shape), pad) if described else None
    return TensorType(tuple(shape), dtype, None, view)


def fresh_like(operand: Expr, dtype: DataType | None = None) -> ShapedType:
    """Dense result of an elementwise operator: shape and valid region of ``operand`` (a window's is not kept).

    A tile result keeps the block layout of the operand, so a value straight from Acc stays boxed until it is moved.
    """
    kind = operand.type
    if _is_plain(kind) and (dtype is None or dtype == kind.dtype):
        return kind
    valid = valid_region(operand)
    if isinstance(kind, TileType):
        return fresh_tile(kind.shape, dtype or kind.dtype, valid, layout=vector_layout(operand))
    return fresh_tensor(kind.shape, dtype or kind.dtype, valid if type(kind) is TensorType else ())


def _is_plain(kind: ShapedType) -> bool:
    """A type without view or allocation, which a fresh value of the same shape can share."""
    if type(kind) is TileType:
        return kind.tile_view is None and kind.memref is None and kind.memory_space is MemorySpace.Vec
    return type(kind) is TensorType and kind.tensor_view is None and kind.memref is None


def vector_layout(operand: Expr) -> tuple[TileLayout, TileLayout, int] | None:
    """Block layout that an elementwise result takes over from a tile, None for the implicit one."""
    if operand.type.tile_view is None and operand.type.memory_space in (MemorySpace.Vec, None):
        return None
    view = operand.type.get_effective_tile_view()
    return view.blayout, view.slayout, 512


def valid_region(operand: Expr) -> tuple[Expr, ...]:
    """Effective valid region of a tile or tensor operand.

    Raises:
        ValueError: a valid shape whose rank differs from the shape's.
    """
    kind = operand.type
    valid = kind.valid_shape
    if len(valid) != len(kind.shape):
        raise ValueError(f"valid_shape rank ({len(valid)}) must match the rank ({len(kind.shape)}) of the shape")
    return valid


def elements(operand: Expr) -> tuple[Expr, ...]:
    """The members of a shape or offset operand.

    Raises:
        ValueError: an operand that is not written as a tuple.
    """
    if not isinstance(operand, MakeTuple):
        raise ValueError("a shape, offset or index operand must be a tuple of expressions")
    return operand.elements


def static_shape(name: str, operand: Expr, what: str = "shape") -> tuple[int, ...]:
    """The members of a shape operand as numbers.

    Raises:
        ValueError: an extent that is no constant, or not positive.
    """
    dims = elements(operand)
    values = S.consts(dims)
    if values is None:
        raise ValueError(
            f"{name} requires every {what} element to be a compile-time constant, got {S.shape_text(dims)}"
        )
    if any(v <= 0 for v in values):
        raise ValueError(f"{name} requires positive {what} elements, got {S.shape_text(dims)}")
    return tuple(values)


def elementwise_tiles(name: str, *tiles: Any) -> ShapedType:
    """Broadcast shape and promoted dtype; the valid region is that of the first operand of the full shape."""
    shape, dtype = tiles[0].type.shape, tiles[0].type.dtype
    same = True
    for tile in tiles[1:]:
        kind = tile.type
        dtype = S.promote(dtype, kind.dtype)
        if not S.all_equal(shape, kind.shape):
            shape, same = S.broadcast(shape, kind.shape, name), False
    if same:
        return fresh_like(tiles[0], dtype)
    wide = next((t for t in tiles if S.all_equal(t.type.shape, shape)), None)
    return fresh_tile(shape, dtype) if wide is None else fresh_like(wide, dtype)


def elementwise_tensors(name: str, lhs: Any, rhs: Any) -> TensorType:
    """Broadcast shape and promoted dtype; a valid region survives only when both operands agree on shape and region."""
    left, right = lhs.type, rhs.type
    shape = S.broadcast(left.shape, right.shape, name)
    return fresh_tensor(shape, S.promote(left.dtype, right.dtype), common_region(lhs, rhs))


def common_region(lhs: Expr, rhs: Expr) -> tuple[Expr, ...]:
    """The valid region of two plain tensors that agree on shape and region, else nothing."""
    left, right = lhs.type, rhs.type
    plain = type(left) is TensorType and type(right) is TensorType
    agree = plain and S.all_equal(left.shape, right.shape) and S.all_equal(valid_region(lhs), valid_region(rhs))
    return left.valid_shape if agree else ()


def dtype_names(dtypes: Sequence[DataType]) -> str:
    """``INT16, INT32`` for messages."""
    return ", ".join(DTYPE_CONSTANT[d] for d in dtypes)


def require_dtype(name: str, dtype: DataType, allowed: Sequence[DataType], what: str = "dtype") -> None:
    """Reject an element type outside ``allowed``."""
    if dtype not in allowed:
        raise ValueError(f"{name} requires {what} in {{{dtype_names(allowed)}}}, but got {dtype}")


def require_same_dtype(name: str, a: Expr, b: Expr, a_name: str, b_name: str) -> None:
    """Reject operands of different element types."""
    if a.type.dtype != b.type.dtype:
        raise ValueError(
            f"{name} requires {a_name} and {b_name} to have the same dtype, but got {a.type.dtype} and {b.type.dtype}"
        )


def require_same_shape(name: str, a: Expr, b: Expr, a_name: str, b_name: str) -> None:
    """Reject operands whose shapes certainly differ."""
    left, right = a.type.shape, b.type.shape
    if len(left) != len(right) or any(S.provably_different(x, y) for x, y in zip(left, right)):
        raise ValueError(
            f"{name} requires {a_name} and {b_name} to have the same shape, but got {S.shape_text(left)} and "
            f"{S.shape_text(right)}"
        )


def require_rank(name: str, operand: Expr, rank: int, what: str) -> None:
    """Reject an operand of another rank."""
    if len(operand.type.shape) != rank:
        raise ValueError(f"{name} requires {what} to be {rank}D, but got {S.shape_text(operand.type.shape)}")


def normalized_axis(name: str, axis: int, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        ValueError: axis out of range.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"{name}: axis {axis} is out of range for rank {rank}")
    return axis % rank
