"""Views and shape changes: slice, reshape, transpose, reinterpretation, valid region."""

from __future__ import annotations

from typing import Any

from pypto.ir.callers import warn_caller
from pypto.ir.dtype import DataType
from pypto.ir.enums import PadValue, TensorLayout, TileLayout
from pypto.ir.expr import ConstInt, Expr, as_expr, const_index
from pypto.ir.node import make, replace
from pypto.ir.types import DistributedTensorType, TensorType, TensorView, TileType, Type, implicit_layout, scalar_type
from pypto.ops import regions as R
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Scalar, Shape, Tensor, Tile, Tuple
from pypto.ops.memory_specs import BOTH, INHERIT
from pypto.ops.movement import FP4_FAMILY, MX_LAYOUTS, box, check_whole_bytes, tensor_layout
from pypto.ops.padding import pad_policy
from pypto.ops.registry import op
from pypto.ops.rules import (
    elements,
    fresh_tile,
    normalized_axis,
    require,
    static_shape,
    valid_region,
)


def view_of(source: Any, shape: tuple, valid: tuple, pad: PadValue, *, stride: tuple = (), layout: Any = None) -> Type:
    """A tensor of the same kind (distributed kept) over the storage of ``source``."""
    view = make(TensorView, stride, layout or TensorLayout.ND, valid, pad)
    if isinstance(source, DistributedTensorType):
        return DistributedTensorType(shape, source.dtype, None, view, source.window_buffer)
    return TensorType(shape, source.dtype, None, view)


def _reject_mx(name: str, tensor: Any) -> None:
    require(tensor_layout(tensor) not in MX_LAYOUTS, f"{name} does not support MX-layout tensors")


def _reject_fp4(name: str, value: Any) -> None:
    require(value.type.dtype not in FP4_FAMILY, f"{name} does not support packed FP4 elements")


# --- slice -------------------------------------------------------------------------------------------------------


def _slice_operands(value: Any, shape: Any, offset: Any, valid_shape: Any, drop_dims: Any) -> list:
    operands = [value, shape, offset]
    drop_dims = drop_dims or None if isinstance(drop_dims, (list, tuple)) else drop_dims
    if valid_shape is not None or drop_dims is not None:
        operands.append(() if valid_shape is None else valid_shape)
    if drop_dims is not None:
        operands.append(drop_dims)
    return operands


def _given(valid_shape: Any) -> tuple:
    """A requested region; absent or empty (a placeholder before drop_dims) means none."""
    return () if valid_shape is None else elements(valid_shape)


def _pad_kwargs(pad_value: Any) -> dict[str, Any]:
    if pad_value is None:
        return {}
    return {"pad_value": pad_policy(pad_value, allow_null=True, what="slice pad_value")}


def _tile_slice_front(
    tile: Any, shape: Any, offset: Any, valid_shape: Any = None, drop_dims: Any = None, pad_value: Any = None
) -> tuple:
    kwargs = _pad_kwargs(pad_value)
    if pad_value is not None and valid_shape is None:
        warn_caller("tile.slice: pad_value has no effect without valid_shape")
    return _slice_operands(tile, shape, offset, valid_shape, drop_dims), kwargs


def _tensor_slice_front(
    tensor: Any,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    clamp: bool = False,
) -> tuple:
    kwargs: dict[str, Any] = (
        {} if pad_value is None else {"pad_value": pad_policy(pad_value, allow_null=True, what="slice pad_value")}
    )
    if pad_value is not None and valid_shape is None and not clamp:
        warn_caller("tensor.slice: pad_value has no effect without valid_shape")
    if clamp:
        kwargs["clamp"] = True
    return _slice_operands(tensor, shape, offset, valid_shape, drop_dims), kwargs


def _slice_value(
    x: Any, shape: Any, offset: Any, valid_shape: Any = None, drop_dims: Any = (), pad_value: Any = None, clamp: Any = 0
) -> Any:
    import torch

    seen = x[box(offset, valid_shape or shape)]
    out = torch.zeros(tuple(shape), dtype=x.dtype)
    out[tuple(slice(0, n) for n in seen.shape)] = seen
    dropped = {int(d) % len(shape) for d in drop_dims or ()}
    return out.reshape([n for i, n in enumerate(shape) if i not in dropped])


def _dropped_axes(name: str, drop_dims: Any, shape: tuple, valid: tuple) -> set[int]:
    if drop_dims is None:
        return set()
    axes: set[int] = set()
    for member in elements(drop_dims):
        axis = S.const(member)
        require(axis is not None, f"{name} requires drop_dims to be compile-time constants")
        axis = normalized_axis(f"{name} drop_dims", axis, len(shape))
        require(
            S.const(shape[axis]) == 1,
            f"{name}: drop_dims axis {axis} must be a static unit dimension, got {S.dim_text(shape[axis])}",
        )
        require(
            S.const(valid[axis]) == 1,
            f"{name}: the valid extent of drop_dims axis {axis} is not provably 1 ({S.dim_text(valid[axis])})",
        )
        axes.add(axis)
    return axes


@op(
    "tile.slice", family="view", front=_tile_slice_front, memory=INHERIT, backends=BOTH, torch=_slice_value,
)  # fmt: skip
def tile_slice(
    input: Tile,
    shape: Shape,
    offset: Shape,
    valid_shape: Shape = None,
    drop_dims: Tuple = None,
    *,
    pad_value: Attr[PadValue] = None,
) -> Type:
    """A zero-copy window of a tile; ``drop_dims`` erases unit axes (the result keeps rank 2 at least)."""
    name = "tile.slice"
    source, window, start = input.type, elements(shape), elements(offset)
    static_shape(name, shape)
    requested = _given(valid_shape) or window
    R.check_same_rank(name, tile=source.shape, shape=window, offset=start, valid_shape=requested)
    check_whole_bytes(name, source.dtype, start)
    R.check_requested(name, requested, window)
    R.check_window(name, source.shape, start, window)
    valid = R.window_region(source.shape, valid_region(input), start, window, requested)
    axes = _dropped_axes(name, drop_dims, window, valid)
    kept = [i for i in range(len(window)) if i not in axes]
    view = source.get_effective_tile_view()
    out_shape, out_valid = tuple(window[i] for i in kept), tuple(valid[i] for i in kept)
    while len(out_shape) < min(2, len(window)):
        out_shape, out_valid = (const_index(1), *out_shape), (const_index(1), *out_valid)
    pad = view.pad if pad_value is None else pad_value
    layout = (view.blayout, view.slayout, view.fractal)
    return fresh_tile(out_shape, source.dtype, out_valid, source.memory_space, pad, layout)


@op(
    "tensor.slice", family="view", front=_tensor_slice_front, memory=INHERIT, orchestration=True, converts_to="custom",
    torch=_slice_value,
)  # fmt: skip
def tensor_slice(
    input: Tensor,
    shape: Shape,
    offset: Shape,
    valid_shape: Shape = None,
    drop_dims: Tuple = None,
    *,
    pad_value: Attr[PadValue] = None,
    clamp: Attr[bool] = False,
) -> Type:
    """A zero-copy window of a tensor; ``clamp`` allows it to run past the edge, ``drop_dims`` erases unit axes."""
    name = "tensor.slice"
    source, window, start = input.type, elements(shape), elements(offset)
    _reject_mx(name, input)
    check_whole_bytes(name, source.dtype, start)
    requested = _given(valid_shape) or window
    R.check_same_rank(name, shape=window, valid_shape=requested)
    R.check_same_rank(name, tensor=source.shape, offset=start)
    if len(window) < len(source.shape):
        return _reinterpreting_window(name, input, window, start, requested, drop_dims, pad_value)
    R.check_same_rank(name, tensor=source.shape, shape=window)
    R.check_requested(name, requested, window)
    R.check_window(
        name, source.shape, start, requested, clamp=clamp, remedy="; pass clamp=True to cut the window at the edge"
    )
    valid = R.window_region(source.shape, valid_region(input), start, window, requested, clamp=clamp)
    axes = _dropped_axes(name, drop_dims, window, valid)
    require(len(axes) < len(window) or not axes, f"{name}: drop_dims cannot erase every dimension")
    kept = [i for i in range(len(window)) if i not in axes]
    view = source.tensor_view
    pad = pad_value if pad_value is not None else view.pad if view is not None else PadValue.null
    out_valid = tuple(valid[i] for i in kept)
    stride = tuple(view.stride[i] for i in kept) if view is not None and view.stride else ()
    layout = view.layout if view is not None and len(kept) == len(window) else TensorLayout.ND
    return view_of(source, tuple(window[i] for i in kept), out_valid, pad, stride=stride, layout=layout)


def _reinterpreting_window(
    name: str, tensor: Any, window: tuple, start: tuple, requested: tuple, drop_dims: Any, pad_value: Any
) -> Type:
    """A window of lower rank re-reads the storage, so it has no rectangle in the source: it keeps what it was given."""
    R.check_offsets(name, start)
    R.check_requested(name, requested, window)
    axes = _dropped_axes(name, drop_dims, window, requested)
    kept = [i for i in range(len(window)) if i not in axes]
    shape, valid = tuple(window[i] for i in kept), tuple(requested[i] for i in kept)
    return view_of(tensor.type, shape, valid, pad_value or PadValue.null)


# --- reshape -----------------------------------------------------------------------------------------------------


def _check_count(name: str, old: Any, new: Any) -> None:
    if S.provably_different(S.product(old), S.product(new)):
        raise ValueError(
            f"{name} cannot change the element count: {S.shape_text(old)} holds {S.dim_text(S.product(old))}, "
            f"{S.shape_text(new)} holds {S.dim_text(S.product(new))}"
        )


def _reshape_front(tile: Any, shape: Any) -> tuple:
    return (tile, shape), {}


def _reshape_value(x: Any, shape: Any, valid_shape: Any = None) -> Any:
    return x.reshape(tuple(shape))


@op(
    "tile.reshape", family="view", front=_reshape_front, memory=INHERIT, backends=BOTH, pto="pto.treshape",
    torch=_reshape_value,
)  # fmt: skip
def tile_reshape(input: Tile, shape: Shape) -> Type:
    """The same elements in row-major order under another shape; no data moves."""
    name = "tile.reshape"
    source, dims = input.type, elements(shape)
    _check_count(name, source.shape, dims)
    view = source.get_effective_tile_view()
    valid = valid_region(input)
    identity = S.all_equal(source.shape, dims)
    row_major = view.blayout is TileLayout.row_major or _is_vector(source.shape)
    region = valid if identity else R.reshape_region(name, source.shape, valid, dims, row_major=row_major)
    kept = identity or view.slayout is not TileLayout.none_box
    layout = (view.blayout, view.slayout, view.fractal) if kept else implicit_layout(dims, source.memory_space)
    return fresh_tile(dims, source.dtype, region, source.memory_space, view.pad, layout)


def _is_vector(shape: Any) -> bool:
    """A column vector is stored like a row: its col_major tag changes no element order."""
    return sum(1 for d in shape if S.const(d) != 1) <= 1


def _tensor_reshape_front(tensor: Any, shape: Any, valid_shape: Any = None) -> tuple:
    return ((tensor, shape) if valid_shape is None else (tensor, shape, valid_shape)), {}


@op(
    "tensor.reshape", family="view", front=_tensor_reshape_front, hidden=("valid_shape",), memory=INHERIT,
    orchestration=True,
    converts_to="tile.reshape", torch=_reshape_value,
)  # fmt: skip
def tensor_reshape(input: Tensor, shape: Shape, valid_shape: Shape = None) -> Type:
    """The same elements in row-major order under another shape; ``valid_shape`` may only narrow the region."""
    name = "tensor.reshape"
    _reject_mx(name, input)
    source, dims = input.type, elements(shape)
    _check_count(name, source.shape, dims)
    view = source.tensor_view
    region = R.reshape_region(
        name, source.shape, valid_region(input), dims, row_major=view is None or _is_dense(view, source.shape)
    )
    if valid_shape is not None:
        region = _narrowed(name, dims, region, elements(valid_shape))
    pad = view.pad if view is not None else PadValue.null
    return view_of(source, dims, region, pad)


def _is_dense(view: TensorView, shape: Any) -> bool:
    """True for row-major storage: ND, and strides that fall from the outermost axis to 1."""
    if view.layout is not TensorLayout.ND:
        return False
    return not view.stride or S.all_equal(view.stride, row_major_strides(shape))


def row_major_strides(shape: Any) -> tuple[Expr, ...]:
    """Dense strides in elements."""
    return tuple(S.product(shape[i + 1 :]) for i in range(len(shape)))


def _narrowed(name: str, shape: Any, region: Any, wanted: Any) -> tuple:
    require(len(wanted) == len(shape), f"{name}: valid_shape rank {len(wanted)} does not match rank {len(shape)}")
    for axis, (extent, limit) in enumerate(zip(wanted, region)):
        if S.const(extent) is not None and S.const(extent) < 0:
            raise ValueError(f"{name}: valid_shape of dimension {axis} must be provably >= 0, got {S.dim_text(extent)}")
        if not S.provably_le(extent, limit):
            raise ValueError(
                f"{name}: valid_shape {S.dim_text(extent)} of dimension {axis} is not provably within the "
                f"source-derived extent {S.dim_text(limit)}"
            )
    return tuple(wanted)


# --- transpose ---------------------------------------------------------------------------------------------------


def _axis_constant(axis: Any) -> Any:
    return const_index(axis) if isinstance(axis, int) and not isinstance(axis, bool) else as_expr(axis)


def _tile_transpose_front(tile: Any, axis1: Any, axis2: Any, tmp_tile: Any = None) -> tuple:
    operands = [tile, _axis_constant(axis1), _axis_constant(axis2)]
    return [*operands, *([] if tmp_tile is None else [tmp_tile])], {}


def _tensor_transpose_front(tensor: Any, axis1: Any, axis2: Any, valid_shape: Any = None) -> tuple:
    operands = [tensor, _axis_constant(axis1), _axis_constant(axis2)]
    return [*operands, *([] if valid_shape is None else [valid_shape])], {}


def _swapped(values: Any, a: int, b: int) -> tuple:
    out = list(values)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


def _axes(name: str, rank: int, axis1: Any, axis2: Any) -> tuple[int, int]:
    values = S.const(axis1), S.const(axis2)
    require(None not in values, f"{name} requires axis1 and axis2 to be compile-time constants")
    a, b = (normalized_axis(name, v, rank) for v in values)  # type: ignore[arg-type]
    require(a != b, f"{name}: axis1 and axis2 must be different, got {a} twice")
    return a, b


def _transpose_value(x: Any, axis1: Any, axis2: Any, extra: Any = None) -> Any:
    return x.transpose(int(axis1), int(axis2)).contiguous()


@op(
    "tile.transpose", family="view", front=_tile_transpose_front, memory=INHERIT, inplace_safe=False, backends=BOTH,
    pto="pto.ttrans", pto_operands=lambda call: [call.args[0], *call.args[3:]], torch=_transpose_value,
)  # fmt: skip
def tile_transpose(input: Tile, axis1: Scalar, axis2: Scalar, tmp: Tile = None) -> Type:
    """A copy with two axes swapped, fully valid."""
    name = "tile.transpose"
    _reject_fp4(name, input)
    source = input.type
    a, b = _axes(name, len(source.shape), axis1, axis2)
    return fresh_tile(_swapped(source.shape, a, b), source.dtype, (), source.memory_space)


@op(
    "tensor.transpose", family="view", front=_tensor_transpose_front, hidden=("valid_shape",), orchestration=True,
    converts_to="custom",
    torch=_transpose_value,
)  # fmt: skip
def tensor_transpose(input: Tensor, axis1: Scalar, axis2: Scalar, valid_shape: Shape = None) -> Type:
    """Two axes swapped; exchanging the trailing axes of an ND tensor gives a DN view (and back)."""
    name = "tensor.transpose"
    _reject_mx(name, input)
    _reject_fp4(name, input)
    source, rank = input.type, len(input.type.shape)
    a, b = _axes(name, rank, axis1, axis2)
    shape = _swapped(source.shape, a, b)
    view = source.tensor_view
    stride = view.stride if view is not None and view.stride else row_major_strides(source.shape)
    layout = view.layout if view is not None else TensorLayout.ND
    if {a, b} == {rank - 2, rank - 1} and layout in (TensorLayout.ND, TensorLayout.DN):
        layout = TensorLayout.DN if layout is TensorLayout.ND else TensorLayout.ND
    if valid_shape is not None:
        valid = elements(valid_shape)
        require(len(valid) == rank, f"{name}: valid_shape rank {len(valid)} does not match rank {rank}")
    else:
        valid = _swapped(valid_region(input), a, b)
    pad = view.pad if view is not None else PadValue.null
    strides = _swapped(stride, a, b)
    if layout is TensorLayout.ND and S.all_equal(strides, row_major_strides(shape)):
        strides = ()
    return view_of(source, shape, valid, pad, stride=strides, layout=layout)


def _transpose_view_front(tile: Any) -> tuple:
    return (tile,), {}


@op(
    "tile.transpose_view", family="view", level="extended", front=_transpose_view_front, memory=INHERIT, backends=BOTH,
    torch=lambda x: x.transpose(-1, -2),
)  # fmt: skip
def tile_transpose_view(input: Tile) -> Type:
    """The same bytes seen as the transposed matrix: trailing axes and block layouts swapped."""
    name = "tile.transpose_view"
    source, rank = input.type, len(input.type.shape)
    require(rank >= 2, f"{name} requires at least 2 dimensions, got {S.shape_text(source.shape)}")
    view = source.get_effective_tile_view()
    swap = {TileLayout.row_major: TileLayout.col_major, TileLayout.col_major: TileLayout.row_major}
    layout = (swap.get(view.blayout, view.blayout), swap.get(view.slayout, view.slayout), view.fractal)
    shape = _swapped(source.shape, rank - 2, rank - 1)
    valid = _swapped(valid_region(input), rank - 2, rank - 1)
    return fresh_tile(shape, source.dtype, valid, source.memory_space, view.pad, layout)


# --- metadata ----------------------------------------------------------------------------------------------------


def _region(name: str, operand: Any, valid_rows: Any, valid_cols: Any, what: str) -> tuple:
    shape = operand.type.shape
    require(len(shape) == 2, f"{name} requires a 2D {what}, got {S.shape_text(shape)}")
    for text, extent, limit in zip(("valid_rows", "valid_cols"), (valid_rows, valid_cols), shape):
        require(extent.type.dtype.is_int(), f"{name} requires an integer {text}, got {extent.type.dtype}")
        require(not S.provably_negative(extent), f"{name}: {text} must be >= 0, got {S.dim_text(extent)}")
        require(
            not S.provably_lt(limit, extent),
            f"{name}: {text} {S.dim_text(extent)} exceeds {what} bound {S.dim_text(limit)}",
        )
    return valid_rows, valid_cols


def _same(x: Any, *_: Any) -> Any:
    return x


@op("tile.set_validshape", family="view", memory=INHERIT, backends=BOTH, pto="pto.set_validshape", torch=_same)
def tile_set_validshape(tile: Tile, valid_rows: Scalar, valid_cols: Scalar) -> Type:
    """The same tile with another valid region."""
    source = tile.type
    region = _region("tile.set_validshape", tile, valid_rows, valid_cols, "tile")
    view = source.get_effective_tile_view()
    return TileType(source.shape, source.dtype, None, replace(view, valid_shape=region), source.memory_space)


@op(
    "tensor.set_validshape", family="view", memory=INHERIT, effects={}, result_is_arg=0,
    converts_to="tile.set_validshape", torch=_same,
)  # fmt: skip
def tensor_set_validshape(tensor: Tensor, valid_rows: Scalar, valid_cols: Scalar) -> Type:
    """The same tensor with another valid region."""
    source = tensor.type
    region = _region("tensor.set_validshape", tensor, valid_rows, valid_cols, "tensor")
    view = source.tensor_view or make(TensorView, (), TensorLayout.ND, (), PadValue.null)
    return replace(source, tensor_view=replace(view, valid_shape=region))


def _dim_front(tensor: Any, axis: Any) -> tuple:
    return (tensor, _axis_constant(axis)), {}


@op(
    "tensor.dim", family="shape_query", front=_dim_front, orchestration=True, backends=BOTH,
    torch=lambda x, axis: x.shape[int(axis)],
)  # fmt: skip
def tensor_dim(tensor: Tensor, axis: Scalar) -> Type:
    """Run-time extent of an axis."""
    require(isinstance(axis, ConstInt), "tensor.dim requires a compile-time axis")
    normalized_axis("tensor.dim", axis.value, len(tensor.type.shape))
    return scalar_type(DataType.INDEX)
