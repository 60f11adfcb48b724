"""Reductions along rows and columns, and positions of extrema."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import TileLayout
from pypto.ir.expr import const_index
from pypto.ir.types import Type, scalar_type
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Tensor, Tile
from pypto.ops.memory_specs import BOTH, vec
from pypto.ops.registry import op
from pypto.ops.rules import (
    dtype_names,
    fresh_tensor,
    fresh_tile,
    normalized_axis,
    valid_region,
)

MIN_DTYPES = (DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)


def _reduced(name: str, operand: Any, axis: int) -> tuple[tuple, tuple]:
    """(shape, valid shape) with ``axis`` collapsed to 1."""
    shape, valid = list(operand.type.shape), list(valid_region(operand))
    if S.const(valid[axis]) == 0:
        raise ValueError(f"{name} cannot reduce: the valid extent on axis {axis} is 0")
    shape[axis] = valid[axis] = const_index(1)
    return tuple(shape), tuple(valid)


def _require_scratch_dtype(name: str, tile: Any, tmp: Any) -> None:
    if tile.type.dtype != tmp.type.dtype:
        raise ValueError(
            f"{name} requires tmp_tile of the same dtype, but got tmp_tile dtype {tmp.type.dtype} and input dtype "
            f"{tile.type.dtype}"
        )


def _check_scratch(name: str, tile: Any, tmp: Any) -> None:
    """Scratch of row reductions: same element type and rank, no extent below the input's."""
    _require_scratch_dtype(name, tile, tmp)
    wide, have = tile.type.shape, tmp.type.shape
    if len(wide) != len(have):
        raise ValueError(f"{name} requires tmp_tile of rank {len(wide)}, but got {S.shape_text(have)}")
    for axis, (need, got) in enumerate(zip(wide, have)):
        if S.provably_lt(got, need):
            raise ValueError(
                f"{name} requires tmp_tile dimension {axis} >= input dimension {S.dim_text(need)}, "
                f"but got {S.dim_text(got)}"
            )


def _check_exact_scratch(name: str, tile: Any, tmp: Any) -> None:
    _require_scratch_dtype(name, tile, tmp)
    if not S.all_equal(tile.type.shape, tmp.type.shape):
        raise ValueError(
            f"{name} requires tmp_tile to exactly match the input shape {S.shape_text(tile.type.shape)}, "
            f"but got {S.shape_text(tmp.type.shape)}"
        )


def _check_min_dtype(name: str, operand: Any) -> None:
    if operand.type.dtype not in MIN_DTYPES:
        raise ValueError(f"{name} requires input dtype in {{{dtype_names(MIN_DTYPES)}}}, but got {operand.type.dtype}")


def _tensor_reduction(name: str, operand: Any, axis: int, keep_dim: bool, dtype: DataType) -> Type:
    rank = len(operand.type.shape)
    axis = normalized_axis(name, axis, rank)
    shape, valid = _reduced(name, operand, axis)
    if keep_dim:
        return fresh_tensor(shape, dtype, valid)
    shape, valid = shape[:axis] + shape[axis + 1 :], valid[:axis] + valid[axis + 1 :]
    return fresh_tensor(shape, dtype, valid) if shape else scalar_type(dtype)


def _value(function: str, dim: int) -> Any:
    def evaluate(x: Any, tmp: Any = None, axis: int | None = None, keep_dim: bool | None = None) -> Any:
        import torch

        where = dim if axis is None else axis
        keep = True if keep_dim is None else keep_dim
        if function in ("sum", "prod"):
            return getattr(torch, function)(x, where, keepdim=keep, dtype=x.dtype)
        return getattr(torch, function)(x, where, keepdim=keep)

    return evaluate


_FUNCTIONS = {"sum": "sum", "max": "amax", "min": "amin", "prod": "prod"}


def _row(kind: str) -> None:
    name = f"tile.row_{kind}"

    def tile_rule(tile: Tile, tmp_tile: Tile) -> Type:
        if kind == "min":
            _check_min_dtype(name, tile)
            view = tile.type.get_effective_tile_view()
            if view.blayout is not TileLayout.row_major or view.slayout is not TileLayout.none_box:
                raise ValueError(f"{name} requires an ND input layout (row_major, none_box)")
        _check_scratch(name, tile, tmp_tile)
        shape, valid = _reduced(name, tile, len(tile.type.shape) - 1)
        return fresh_tile(shape, tile.type.dtype, valid)

    def tensor_rule(input: Tensor, *, axis: Attr[int] = None, keep_dim: Attr[bool] = None) -> Type:
        if kind == "min":
            _check_min_dtype(f"tensor.row_{kind}", input)
        keep = keep_dim is not False
        return _tensor_reduction(f"tensor.row_{kind}", input, -1 if axis is None else axis, keep, input.type.dtype)

    tile_rule.__doc__ = f"{kind} over the valid columns of each row, ``[..., M, 1]``; ``tmp_tile`` is scratch."
    tensor_rule.__doc__ = f"{kind} over the valid extent of the last axis, kept as 1."
    value = _value(_FUNCTIONS[kind], -1)
    op(name, family="reduction", memory=vec(2), backends=BOTH, inplace_safe=False, pto=f"pto.trow{kind}", torch=value)(
        tile_rule
    )
    op(f"tensor.row_{kind}", family="reduction", converts_to="custom", torch=value, front=_tensor_front)(tensor_rule)


def _tensor_front(input: Any) -> tuple:
    return (input,), {}


def _col(kind: str) -> None:
    name = f"tile.col_{kind}"

    def plain_rule(tile: Tile) -> Type:
        shape, valid = _reduced(name, tile, 0)
        return fresh_tile(shape, tile.type.dtype, valid)

    def scratch_rule(tile: Tile, tmp_tile: Tile = None) -> Type:
        if tmp_tile is not None:
            _check_scratch(name, tile, tmp_tile)
        return plain_rule(tile)

    def tensor_rule(input: Tensor, *, axis: Attr[int] = None, keep_dim: Attr[bool] = None) -> Type:
        keep = keep_dim is not False
        return _tensor_reduction(f"tensor.col_{kind}", input, -2 if axis is None else axis, keep, input.type.dtype)

    tile_rule = scratch_rule if kind == "sum" else plain_rule
    tile_rule.__doc__ = f"{kind} over axis 0, kept as 1" + (
        "; a scratch tile selects the tree order." if kind == "sum" else "."
    )
    tensor_rule.__doc__ = f"{kind} over the valid extent of axis -2, kept as 1."
    facts: dict[str, Any] = {"pto_attrs": _is_binary} if kind == "sum" else {}
    op(
        name, family="reduction", memory=vec(2 if kind == "sum" else 1), backends=BOTH, pto=f"pto.tcol{kind}",
        torch=_value(_FUNCTIONS[kind], 0), **facts,
    )(tile_rule)  # fmt: skip
    op(
        f"tensor.col_{kind}", family="reduction", converts_to=f"tile.col_{kind}", front=_tensor_front,
        torch=_value(_FUNCTIONS[kind], -2),
    )(tensor_rule)  # fmt: skip


def _is_binary(call: Any) -> str:
    return "{isBinary = true}" if len(call.args) == 2 else ""


for _kind in _FUNCTIONS:
    _row(_kind)
    _col(_kind)


def _arg(direction: str, kind: str) -> None:
    leaf = f"{direction}_arg{kind}"
    from_end = 1 if direction == "row" else 2

    def tile_rule(tile: Tile, tmp_tile: Tile) -> Type:
        name = f"tile.{leaf}"
        _check_exact_scratch(name, tile, tmp_tile)
        axis = len(tile.type.shape) - 1 if direction == "row" else 0
        shape, valid = _reduced(name, tile, axis)
        return fresh_tile(shape, DataType.INT32, valid)

    def tensor_rule(input: Tensor, *, axis: Attr[int] = None, keep_dim: Attr[bool] = None) -> Type:
        where = -from_end if axis is None else axis
        return _tensor_reduction(f"tensor.{leaf}", input, where, keep_dim is not False, DataType.INT32)

    doc = f"INT32 position of the {kind} of each {'row' if direction == 'row' else 'column'}, the lowest on ties."
    tile_rule.__doc__ = tensor_rule.__doc__ = doc
    value = _arg_value(kind, -from_end)
    op(
        f"tile.{leaf}", family="arg_reduction", level="extended", memory=vec(2), backends=BOTH, inplace_safe=False,
        pto=f"pto.t{leaf.replace('_', '')}", torch=value,
    )(tile_rule)  # fmt: skip
    op(f"tensor.{leaf}", family="arg_reduction", level="extended", converts_to="custom", torch=value,
       front=_tensor_front)(tensor_rule)  # fmt: skip


def _arg_value(kind: str, dim: int) -> Any:
    def evaluate(x: Any, tmp: Any = None, axis: int | None = None, keep_dim: bool | None = None) -> Any:
        import torch

        where = dim if axis is None else axis
        best = torch.amax(x, where, keepdim=True) if kind == "max" else torch.amin(x, where, keepdim=True)
        # argmax of a 0/1 mask names some maximum; the cumulative count finds the first one.
        first = ((x == best).to(torch.int32).cumsum(where) == 0).sum(where, keepdim=keep_dim is not False)
        return first.to(torch.int32)

    return evaluate


for _direction in ("row", "col"):
    for _kind in ("max", "min"):
        _arg(_direction, _kind)
