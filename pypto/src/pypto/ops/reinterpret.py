"""Views that reinterpret storage: another shape or layout of a tensor, another element type of the same bytes."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Expr, const_index
from pypto.ir.types import DistributedTensorType, TensorType, Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Shape, Tensor, Tile
from pypto.ops.memory_specs import BOTH, INHERIT
from pypto.ops.movement import MX_LAYOUTS, tensor_layout
from pypto.ops.registry import op
from pypto.ops.rules import elements, fresh_tile, require, valid_region
from pypto.ops.scalars import as_datatype
from pypto.ops.views import row_major_strides, view_of

_WORDS = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16, DataType.UINT32,
    DataType.UINT64, DataType.FP16, DataType.BF16, DataType.FP32,
)  # fmt: skip
_BYTE_PAIRS = ((DataType.INT8, DataType.FP8E4M3FN), (DataType.UINT8, DataType.FP8E8M0))


# --- tensor.view -------------------------------------------------------------------------------------------------


def canonical_strides(shape: Any, layout: TensorLayout) -> tuple[Expr, ...]:
    """Packed strides of a shape: row-major for ND, trailing two axes exchanged for DN."""
    if layout is not TensorLayout.DN:
        return row_major_strides(shape)
    *outer, rows, cols = shape
    plane = S.mul(rows, cols)
    return (*(S.mul(s, plane) for s in row_major_strides(outer)), const_index(1), rows)


def _view_front(tensor: Any, shape: Any = None, valid_shape: Any = None, *, layout: Any = None) -> tuple:
    if shape is None and layout is None:
        raise ValueError("tensor.view requires at least one of shape and layout")
    if shape is None and valid_shape is not None:
        raise ValueError("tensor.view: valid_shape requires shape")
    operands = [tensor, *([] if shape is None else [shape]), *([] if valid_shape is None else [valid_shape])]
    return operands, ({} if layout is None else {"layout": layout})


def _view_value(x: Any, shape: Any = None, valid_shape: Any = None, layout: Any = None) -> Any:
    return x.transpose(-1, -2) if shape is None else x.reshape(tuple(shape))


@op(
    "tensor.view", family="view", level="extended", front=_view_front, memory=INHERIT, orchestration=True,
    backends=BOTH,
    torch=_view_value,
)  # fmt: skip
def tensor_view(
    input: Tensor, shape: Shape = None, valid_shape: Shape = None, *, layout: Attr[TensorLayout] = None
) -> Type:
    """Another shape or layout over the same storage, with canonical strides."""
    name = "tensor.view"
    require(shape is not None or layout is not None, f"{name} requires at least one of shape and layout")
    source_layout = tensor_layout(input)
    for tag in (layout, source_layout):
        require(tag is not TensorLayout.NZ, f"{name}: NZ layout is not allowed on a tensor (it is a tile layout)")
        require(tag not in MX_LAYOUTS, f"{name} does not support MX-layout tensors")
    if shape is None:
        return _relayout(name, input, source_layout, layout)
    return _reshaped(name, input, elements(shape), valid_shape, layout or source_layout)


def _source_strides(name: str, tensor: Any, layout: TensorLayout) -> tuple[Expr, ...]:
    view, shape = tensor.type.tensor_view, tensor.type.shape
    if view is None or not view.stride:
        return canonical_strides(shape, layout if len(shape) > 1 else TensorLayout.ND)
    inner = view.stride[-2] if layout is TensorLayout.DN and len(shape) > 1 else view.stride[-1]
    if S.const(inner) not in (1, None):
        raise ValueError(f"{name}: the source strides {S.shape_text(view.stride)} are not canonical for {layout.name}")
    return view.stride


def _relayout(name: str, tensor: Any, source_layout: TensorLayout, layout: TensorLayout) -> Type:
    source = tensor.type
    strides, valid = _source_strides(name, tensor, source_layout), valid_region(tensor)
    shape = source.shape
    if layout is not source_layout:
        require(len(shape) >= 2, f"{name}: changing the layout requires rank >= 2, got {S.shape_text(shape)}")
        swap = lambda values: (*values[:-2], values[-1], values[-2])  # noqa: E731
        shape, strides, valid = swap(shape), swap(strides), swap(valid)
    pad = source.tensor_view.pad if source.tensor_view is not None else PadValue.null
    return view_of(source, tuple(shape), tuple(valid), pad, stride=tuple(strides), layout=layout)


def _reshaped(name: str, tensor: Any, shape: tuple, valid_shape: Any, layout: TensorLayout) -> Type:
    source = tensor.type
    require(len(shape) >= 1, f"{name}: the target shape must have rank >= 1")
    require(layout is not TensorLayout.DN or len(shape) >= 2, f"{name}: a DN layout requires rank >= 2")
    for dim in shape:
        require(not S.provably_lt(dim, 1), f"{name}: target dimensions must be positive, got {S.shape_text(shape)}")
    source_layout = tensor_layout(tensor)
    view = source.tensor_view
    if view is not None and view.stride and not _strides_packed(view.stride, source.shape, source_layout):
        raise ValueError(f"{name} with a shape requires a packed source, got strides {S.shape_text(view.stride)}")
    if S.provably_different(S.product(source.shape), S.product(shape)):
        raise ValueError(f"{name} cannot reinterpret {S.shape_text(source.shape)} as {S.shape_text(shape)}")
    region: tuple = ()
    if valid_shape is not None:
        region = elements(valid_shape)
        require(len(region) == len(shape), f"{name}: valid_shape rank {len(region)} does not match rank {len(shape)}")
        for extent, limit in zip(region, shape):
            require(
                not S.provably_lt(limit, extent),
                f"{name}: valid_shape {S.shape_text(region)} exceeds target shape {S.shape_text(shape)}",
            )
    pad = PadValue.null
    if not S.all_equal(valid_region(tensor), source.shape):
        require(valid_shape is not None, f"{name}: a partial valid_shape needs an explicit target valid_shape")
        _check_partial(name, source.shape, shape, source_layout, layout)
        pad = view.pad
    return view_of(source, shape, region, pad, stride=canonical_strides(shape, layout), layout=layout)


def _strides_packed(strides: Any, shape: Any, layout: TensorLayout) -> bool:
    """Strides of packed storage; axes of extent 1 may carry any stride."""
    wanted = canonical_strides(shape, layout)
    return all(S.const(d) == 1 or S.provably_equal(a, b) for a, b, d in zip(strides, wanted, shape))


def _check_partial(name: str, old: Any, new: Any, source_layout: TensorLayout, layout: TensorLayout) -> None:
    nd = TensorLayout.ND
    require(source_layout is nd and layout is nd, f"{name} of a partially valid tensor only supports ND layout")
    collapsed = len(new) == 2 and S.provably_equal(new[-1], old[-1])
    linear = len(new) == 2 and S.const(new[0]) == 1
    if not (collapsed or linear):
        raise ValueError(
            f"{name} of a partially valid tensor supports a leading-dimension collapse to 2D or a linear [1, N] view, "
            f"not {S.shape_text(old)} to {S.shape_text(new)}"
        )


# --- reinterpret_view --------------------------------------------------------------------------------------------


def _tile_front(data: Any, dtype: Any, *, shape: Any = None) -> tuple:
    return (data, *([] if shape is None else [shape])), {"dtype": as_datatype(dtype)}


def _reinterpreted_value(data: Any, shape: Any = None, *, dtype: DataType) -> Any:
    out = data.contiguous().view(T.torch_dtype(dtype))
    return out if shape is None else out.reshape(tuple(shape))


def _check_dtypes(name: str, source: DataType, target: DataType) -> None:
    require(source != target, f"{name} requires source and target dtypes to differ, both are {source}")
    if any({source, target} == set(pair) for pair in _BYTE_PAIRS):
        return
    require(target in _WORDS, f"{name} does not support target dtype {target} for source dtype {source}")
    require(source in _WORDS, f"{name} does not support source dtype {source}")


def _rescaled(name: str, values: Any, axis: int, old: DataType, new: DataType) -> tuple:
    """``values`` with the contiguous axis measured in elements of another width."""
    a, b = old.get_byte(), new.get_byte()
    extent = values[axis]
    if a >= b:
        extent = S.mul(extent, a // b)
    else:
        ratio = b // a
        if S.const(extent) is not None and S.const(extent) % ratio:
            raise ValueError(
                f"{name}: dimension {axis} (extent {S.dim_text(extent)} of {old}) is not divisible by {ratio} for {new}"
            )
        extent = S.floor_div(extent, ratio)
    return (*values[:axis], extent, *values[axis + 1 :])


def _target_shape(name: str, value: Any, axis: int, dtype: DataType, shape: Any) -> tuple[tuple, tuple]:
    """(shape, valid shape) of the reinterpreted value."""
    source, valid = value.type, valid_region(value)
    full = S.all_equal(valid, source.shape)
    if shape is None:
        auto = _rescaled(name, source.shape, axis, source.dtype, dtype)
        return auto, auto if full else _rescaled(name, valid, axis, source.dtype, dtype)
    wanted = elements(shape)
    if S.consts(wanted) is not None and S.consts(source.shape) is not None:
        have = S.const(S.product(source.shape)) * source.dtype.get_byte()  # type: ignore[operator]
        need = S.const(S.product(wanted)) * dtype.get_byte()  # type: ignore[operator]
        require(
            have == need,
            f"{name} requires equal source and target byte sizes, but the source holds {have} bytes and the target "
            f"{need} bytes",
        )
    if not _is_rescaled(wanted, source.shape, axis, source.dtype, dtype):
        require(S.consts(wanted) is not None, f"{name} requires an explicit shape to be static")
        require(full, f"{name} of a partially valid operand allows only the derived shape")
    if full:
        return wanted, wanted
    return wanted, _rescaled(name, valid, axis, source.dtype, dtype)


def _is_rescaled(wanted: tuple, shape: tuple, axis: int, old: DataType, new: DataType) -> bool:
    """True when ``wanted`` is the shape that would be derived."""
    if len(wanted) != len(shape):
        return False
    others = all(S.provably_equal(a, b) for i, (a, b) in enumerate(zip(wanted, shape)) if i != axis)
    bytes_equal = S.provably_equal(S.mul(wanted[axis], new.get_byte()), S.mul(shape[axis], old.get_byte()))
    return others and bytes_equal


def _kept_pad(pad: PadValue) -> PadValue:
    """Zero stays zero under any element type; extreme values do not survive."""
    return pad if pad is PadValue.zero else PadValue.null


@op(
    "tile.reinterpret_view", family="view", level="extended", front=_tile_front, memory=INHERIT, backends=BOTH,
    pto="pto.treshape", torch=_reinterpreted_value,
)  # fmt: skip
def tile_reinterpret_view(data: Tile, shape: Shape = None, *, dtype: Attr[DataType]) -> Type:
    """The same bytes as another element type."""
    name = "tile.reinterpret_view"
    source = data.type
    view = source.get_effective_tile_view()
    _check_dtypes(name, source.dtype, dtype)
    require(view.slayout is TileLayout.none_box, f"{name} only supports flat tiles (slayout none_box)")
    rank = len(source.shape)
    axis = rank - 2 if view.blayout is TileLayout.col_major and rank > 1 else rank - 1
    target, valid = _target_shape(name, data, axis, dtype, shape)
    layout = (view.blayout, view.slayout, view.fractal)
    return fresh_tile(target, dtype, valid, source.memory_space, _kept_pad(view.pad), layout)


@op(
    "tensor.reinterpret_view", family="view", level="extended", front=_tile_front, memory=INHERIT, orchestration=True,
    converts_to="tile.reinterpret_view", torch=_reinterpreted_value,
)  # fmt: skip
def tensor_reinterpret_view(data: Tensor, shape: Shape = None, *, dtype: Attr[DataType]) -> Type:
    """The same bytes as another element type."""
    name = "tensor.reinterpret_view"
    source = data.type
    _check_dtypes(name, source.dtype, dtype)
    view, layout = source.tensor_view, tensor_layout(data)
    require(len(source.shape) > 0, f"{name} requires a tensor of rank >= 1")
    require(layout not in MX_LAYOUTS, f"{name} does not support MX-layout tensors")
    packed = view is None or not view.stride or _strides_packed(view.stride, source.shape, layout)
    require(packed and layout is not TensorLayout.NZ, f"{name} only supports packed tensors in ND or DN layout")
    rank = len(source.shape)
    axis = rank - 2 if layout is TensorLayout.DN else rank - 1
    target, valid = _target_shape(name, data, axis, dtype, shape)
    pad = _kept_pad(view.pad) if view is not None else PadValue.null
    stride = canonical_strides(target, layout) if view is not None and view.stride else ()
    typed = TensorType(source.shape, dtype) if not isinstance(source, DistributedTensorType) else None
    base = typed or DistributedTensorType(source.shape, dtype, None, None, source.window_buffer)
    return view_of(base, target, valid, pad, stride=stride, layout=layout)
