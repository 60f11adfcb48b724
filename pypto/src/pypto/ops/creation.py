"""Operators that make values: buffers, constants, sequences, random numbers."""

from __future__ import annotations

import math
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout, TileLayout
from pypto.ir.expr import ConstFloat, ConstInt, as_expr
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import PtrType, TensorType, TensorView, Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, MemRefOperand, Scalar, Shape
from pypto.ops.memory_specs import BOTH, DEFERRED, row_major, vec
from pypto.ops.registry import op
from pypto.ops.rules import elements, fresh_tensor, fresh_tile, require, require_dtype, static_shape
from pypto.ops.scalars import as_datatype, element_constant, element_scalar

SEQUENCE_DTYPES = (DataType.INT16, DataType.INT32, DataType.UINT16, DataType.UINT32)
TRI_DTYPES = (
    DataType.FP16, DataType.FP32, DataType.INT16, DataType.INT32, DataType.UINT16, DataType.UINT32, DataType.BF16,
    DataType.INT8, DataType.UINT8,
)  # fmt: skip
RANDOM_DTYPES = (DataType.INT32, DataType.UINT32)
_SCALES = (MemorySpace.LeftScale, MemorySpace.RightScale)

#: Layout of a Mat tile that holds a transposed operand (ZN), and of a flat staging buffer.
ZN = (TileLayout.row_major, TileLayout.col_major, 512)
FLAT = (TileLayout.row_major, TileLayout.none_box, 512)


# --- allocation tokens -------------------------------------------------------------------------------------------


def _alloc_front(memory_space: Any, size: Any, *, pinned: bool = False) -> tuple:
    return (_space_operand(memory_space), size), ({"pinned": True} if pinned else {})


def _tensor_alloc_front(memory_space: Any, size: Any) -> tuple:
    return (_space_operand(memory_space), size), {}


def _space_operand(space: Any) -> Any:
    return ConstInt(space.value, DataType.INT64, UNKNOWN_SPAN) if isinstance(space, MemorySpace) else space


@op("tile.alloc", family="internal", front=_alloc_front, core_affinity="vector", backends=BOTH)
def tile_alloc(memory_space: MemRefOperand, size: Scalar, *, pinned: Attr[bool] = False) -> Type:
    """Identity of an allocation of ``size`` bytes in a memory space; written by the compiler only."""
    return PtrType.get()


@op("tensor.alloc", family="internal", front=_tensor_alloc_front)
def tensor_alloc(memory_space: MemRefOperand, size: Scalar) -> Type:
    """Identity of a global-memory allocation of ``size`` bytes; written by the compiler only."""
    return PtrType.get()


# --- buffers -----------------------------------------------------------------------------------------------------


def _empty(shape: Any, dtype: DataType, **_: Any) -> Any:
    return _filled(shape, dtype, 0)


def _filled(shape: Any, dtype: DataType, value: Any) -> Any:
    import torch

    kind = T.torch_dtype(dtype)
    return torch.full(tuple(shape), value if kind.is_floating_point else int(value), dtype=kind)


def _create_front(
    shape: Any,
    dtype: Any,
    target_memory: MemorySpace = MemorySpace.Vec,
    transpose: bool | None = None,
    *,
    flat_layout: bool | None = None,
) -> tuple:
    named = {"target_memory": target_memory, "transpose": transpose, "flat_layout": flat_layout}
    return (shape,), {"dtype": as_datatype(dtype), **{k: v for k, v in named.items() if v is not None}}


@op(
    "tile.create", family="creation", front=_create_front, memory=DEFERRED, retargetable=True, backends=BOTH,
    core_affinity="shared", keep=("target_memory",), aliases=("create_tile",), torch=_empty,
)  # fmt: skip
def tile_create(
    shape: Shape,
    dtype: Attr[DataType],
    target_memory: Attr[MemorySpace] = None,
    transpose: Attr[bool] = None,
    *,
    flat_layout: Attr[bool] = None,
) -> Type:
    """An uninitialised on-chip buffer; ``transpose`` gives the layout of a transposed Mat operand."""
    name = "tile.create"
    static_shape(name, shape)
    if target_memory in _SCALES:
        raise ValueError(f"{name} does not support target_memory=LeftScale/RightScale; fill them with tile.move")
    require(not (transpose and flat_layout), f"{name}: transpose and flat_layout exclude each other")
    if transpose:
        fits = len(elements(shape)) == 2 and target_memory in (MemorySpace.Mat, None)
        require(fits, f"{name} supports transpose=true only for a 2D tile with target_memory=Mat")
    if flat_layout:
        require(target_memory is MemorySpace.Mat, f"{name} supports flat_layout=true only for target_memory=Mat")
    layout = ZN if transpose else FLAT if flat_layout else None
    return fresh_tile(elements(shape), dtype, (), target_memory, layout=layout)


def _tensor_create_front(
    shape: Any,
    dtype: Any,
    layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False,
    init_value: int | float | None = None,
) -> tuple:
    kwargs: dict[str, Any] = {"dtype": as_datatype(dtype), "layout": layout}
    if manual_dep:
        kwargs["manual_dep"] = True
    if init_value is not None:
        kwargs["init_value"] = _init_number(init_value)
    return (shape,), kwargs


def _init_number(value: Any) -> float:
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"tensor.create: init_value must be an int or a float, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"tensor.create: init_value must be finite, got {value}")
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError(
            f"tensor.create: init_value must be within the exactly-representable integers of a double (at most 2**53 "
            f"in magnitude), got {value}"
        )
    return float(value)


def _created(shape: Any, dtype: DataType, init_value: float | None = None, **_: Any) -> Any:
    return _filled(shape, dtype, init_value or 0)


@op(
    "tensor.create", family="creation", front=_tensor_create_front, orchestration=True, converts_to="custom",
    keep=("layout",), aliases=("create_tensor",), torch=_created,
)  # fmt: skip
def tensor_create(
    shape: Shape,
    dtype: Attr[DataType],
    layout: Attr[TensorLayout] = TensorLayout.ND,
    manual_dep: Attr[bool] = False,
    init_value: Attr[float] = None,
) -> Type:
    """A global tensor allocated by orchestration code, optionally filled with ``init_value``."""
    require(
        init_value is None or math.isfinite(init_value), f"tensor.create: init_value must be finite, got {init_value}"
    )
    view = TensorView((), layout) if layout is not TensorLayout.ND else None
    return TensorType(elements(shape), dtype, None, view)


@op("tensor.create_l1", family="creation", level="extended", converts_to="custom", torch=_empty)
def tensor_create_l1(shape: Shape, dtype: Attr[DataType], transpose: Attr[bool] = False) -> Type:
    """An on-chip (L1) accumulator of kernel-driven gathers, seen as a tensor."""
    dims = elements(shape)
    require(
        all((S.const(d) or 0) > 0 for d in dims),
        f"tensor.create_l1 requires every extent to be a positive compile-time ConstInt, got {S.shape_text(dims)}",
    )
    return fresh_tensor(dims, dtype)


def _full_front(shape: Any, dtype: Any, value: Any) -> tuple:
    kind = as_datatype(dtype)
    return (shape, _fill_value(value, kind)), {"dtype": kind}


def _fill_value(value: Any, dtype: DataType) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return as_expr(value)
    return element_constant(value, dtype, UNKNOWN_SPAN)


def _full_value(shape: Any, value: Any, dtype: DataType) -> Any:
    return _filled(shape, dtype, value)


@op(
    "tile.full", family="creation", front=_full_front, memory=vec(), layouts=row_major(0), backends=BOTH,
    pto="pto.texpands", pto_operands=lambda call: [call.args[1]], torch=_full_value,
)  # fmt: skip
def tile_full(shape: Shape, value: Scalar, dtype: Attr[DataType]) -> Type:
    """A Vec tile with one value in every cell."""
    return fresh_tile(elements(shape), dtype)


@op("tensor.full", family="creation", front=_full_front, converts_to="tile.full", torch=_full_value)
def tensor_full(shape: Shape, value: Scalar, dtype: Attr[DataType]) -> Type:
    """A tensor with one value in every cell."""
    return fresh_tensor(elements(shape), dtype)


# --- sequences ---------------------------------------------------------------------------------------------------


def _ci_front(start: Any, shape: Any, dtype: Any = DataType.INT32, descending: bool = False) -> tuple:
    kind = as_datatype(dtype)
    return (element_scalar(start, kind, UNKNOWN_SPAN), shape), {"dtype": kind, "descending": bool(descending)}


def _check_sequence(name: str, start: Any, shape: Any, dtype: DataType) -> None:
    require_dtype(name, dtype, SEQUENCE_DTYPES)
    if start.type.dtype != dtype:
        raise ValueError(f"{name} requires start to have dtype {dtype}, but got {start.type.dtype}")
    dims = elements(shape)
    if not dims or S.const(dims[-1]) == 1:
        raise ValueError(f"{name} requires the innermost dimension to differ from 1, got {S.shape_text(dims)}")
    if any(S.const(d) != 1 for d in dims[:-1]):
        raise ValueError(f"{name}: leading dimensions must be 1, got {S.shape_text(dims)}")


def _sequence(start: Any, shape: Any, dtype: DataType, descending: bool) -> Any:
    import torch

    steps = torch.arange(shape[-1], dtype=torch.int64)
    values = int(start) - steps if descending else int(start) + steps
    return values.to(T.torch_dtype(dtype)).reshape(tuple(shape))


def _ci_attrs(call: Any) -> str:
    return f"{{descending = {'true' if call.kwargs.get('descending') else 'false'}}}"


@op(
    "tile.ci", family="sequence_rng", front=_ci_front, memory=vec(), backends=BOTH, aliases=("arange",), pto="pto.tci",
    keep=("dtype", "descending"), pto_operands=lambda call: [call.args[0]], pto_attrs=_ci_attrs, torch=_sequence,
)  # fmt: skip
def tile_ci(
    start: Scalar, shape: Shape, dtype: Attr[DataType] = DataType.INT32, descending: Attr[bool] = False
) -> Type:
    """``start + k`` (or ``start - k``) along one row."""
    _check_sequence("tile.ci", start, shape, dtype)
    return fresh_tile(elements(shape), dtype)


@op(
    "tensor.ci", family="sequence_rng", front=_ci_front, converts_to="tile.ci", keep=("dtype", "descending"),
    aliases=("arange",), torch=_sequence,
)  # fmt: skip
def tensor_ci(
    start: Scalar, shape: Shape, dtype: Attr[DataType] = DataType.INT32, descending: Attr[bool] = False
) -> Type:
    """``start + k`` (or ``start - k``) along one row."""
    _check_sequence("tensor.ci", start, shape, dtype)
    return fresh_tensor(elements(shape), dtype)


def _tri_front(
    diagonal: Any, shape: Any, valid_shape: Any = None, dtype: Any = DataType.INT32, upper: bool = False
) -> tuple:
    operands = [element_scalar(diagonal, DataType.INT32, UNKNOWN_SPAN), shape]
    return (*operands, *([] if valid_shape is None else [valid_shape])), {
        "dtype": as_datatype(dtype),
        "upper": bool(upper),
    }


def _triangle(diagonal: Any, shape: Any, valid_shape: Any, dtype: DataType, upper: bool) -> Any:
    import torch

    ones = torch.ones(tuple(shape), dtype=T.torch_dtype(dtype))
    return ones.triu(int(diagonal)) if upper else ones.tril(int(diagonal))


@op(
    "tile.tri", family="sequence_rng", level="extended", front=_tri_front, memory=vec(), layouts=row_major(0),
    backends=BOTH, pto="pto.ttri", keep=("dtype", "upper"), pto_operands=lambda call: [call.args[0]],
    pto_attrs=lambda call: f"{{upperOrLower = {1 if call.kwargs.get('upper') else 0} : i32}}", torch=_triangle,
)  # fmt: skip
def tile_tri(
    diagonal: Scalar,
    shape: Shape,
    valid_shape: Shape = None,
    dtype: Attr[DataType] = DataType.INT32,
    upper: Attr[bool] = False,
) -> Type:
    """1 on and below (``upper``: on and above) a diagonal, else 0."""
    name = "tile.tri"
    dims = static_shape(name, shape)
    require(len(dims) == 2, f"{name} requires a 2D shape, got {list(dims)}")
    require_dtype(name, dtype, TRI_DTYPES)
    require(diagonal.type.dtype == DataType.INT32, f"{name} requires an INT32 diagonal, got {diagonal.type.dtype}")
    return fresh_tile(elements(shape), dtype, _requested_region(name, shape, valid_shape, positive=True))


def _requested_region(name: str, shape: Any, valid_shape: Any, *, positive: bool = False) -> tuple:
    if valid_shape is None:
        return ()
    dims, valid = elements(shape), elements(valid_shape)
    require(len(dims) == len(valid), f"{name} requires valid_shape to have the rank {len(dims)} of shape")
    for axis, (size, extent) in enumerate(zip(dims, valid)):
        if S.provably_lt(size, extent):
            raise ValueError(f"{name}: valid_shape {S.dim_text(extent)} exceeds dimension {axis} ({S.dim_text(size)})")
        if S.provably_lt(extent, int(positive)):
            raise ValueError(f"{name}: valid_shape of dimension {axis} must be positive, got {S.dim_text(extent)}")
    return valid


def _random_value(*operands: Any, dtype: DataType, rounds: int) -> Any:
    """A deterministic stand-in: equal seeds give equal values, no published bit pattern exists."""
    import torch

    seed = 0
    for word in operands[:6]:
        seed = (seed * 1_000_003 + int(word) + 1) % (1 << 63)
    generator = torch.Generator().manual_seed(seed ^ rounds)
    words = torch.randint(-(2**31), 2**31, tuple(operands[6]), dtype=torch.int64, generator=generator)
    return words.to(torch.int32).view(T.torch_dtype(dtype))


def _check_random(name: str, words: tuple, shape: Any, dtype: DataType, rounds: int) -> None:
    require_dtype(name, dtype, RANDOM_DTYPES)
    require(rounds in (7, 10), f"{name} requires rounds to be 7 or 10, got {rounds}")
    require(len(static_shape(name, shape)) == 2, f"{name} requires a 2D shape, got {S.shape_text(elements(shape))}")
    for word in words:
        require(word.type.dtype.is_int(), f"{name} requires integer keys and counters, got {word.type.dtype}")


def _seed_words(*words: Any) -> tuple:
    return tuple(element_scalar(w, DataType.INT32, UNKNOWN_SPAN) for w in words)


def _tile_random_front(
    key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any,
    valid_shape: Any = None, dtype: Any = DataType.UINT32, rounds: int = 10,
) -> tuple:  # fmt: skip
    words = _seed_words(key0, key1, counter0, counter1, counter2, counter3)
    operands = (*words, shape) if valid_shape is None else (*words, shape, valid_shape)
    return operands, {"dtype": as_datatype(dtype), "rounds": rounds}


def _tensor_random_front(
    key0: Any, key1: Any, counter0: Any, counter1: Any, counter2: Any, counter3: Any, shape: Any,
    dtype: Any = DataType.UINT32, rounds: int = 10,
) -> tuple:  # fmt: skip
    words = _seed_words(key0, key1, counter0, counter1, counter2, counter3)
    return (*words, shape), {"dtype": as_datatype(dtype), "rounds": rounds}


@op(
    "tile.random", family="sequence_rng", level="extended", front=_tile_random_front, memory=vec(), backends=BOTH,
    layouts=row_major(0), pto="pto.trandom", keep=("dtype", "rounds"), pto_operands=lambda call: list(call.args[:6]),
    torch=_random_value,
)  # fmt: skip
def tile_random(
    key0: Scalar, key1: Scalar, counter0: Scalar, counter1: Scalar, counter2: Scalar, counter3: Scalar, shape: Shape,
    valid_shape: Shape = None, dtype: Attr[DataType] = DataType.UINT32, rounds: Attr[int] = 10,
) -> Type:  # fmt: skip
    """Counter-based random words: a function of (key, counter, position)."""
    _check_random("tile.random", (key0, key1, counter0, counter1, counter2, counter3), shape, dtype, rounds)
    return fresh_tile(elements(shape), dtype, _requested_region("tile.random", shape, valid_shape))


@op(
    "tensor.random", family="sequence_rng", level="extended", front=_tensor_random_front, converts_to="tile.random",
    keep=("dtype", "rounds"), torch=_random_value,
)  # fmt: skip
def tensor_random(
    key0: Scalar, key1: Scalar, counter0: Scalar, counter1: Scalar, counter2: Scalar, counter3: Scalar, shape: Shape,
    dtype: Attr[DataType] = DataType.UINT32, rounds: Attr[int] = 10,
) -> Type:  # fmt: skip
    """Counter-based random words: a function of (key, counter, position)."""
    _check_random("tensor.random", (key0, key1, counter0, counter1, counter2, counter3), shape, dtype, rounds)
    return fresh_tensor(elements(shape), dtype)
