"""Elementwise operators of one value: arithmetic, activations, trigonometry, conversion."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import as_expr
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.elementwise import PRECISE_DTYPES, check_precision
from pypto.ops.kinds import Attr, Scalar, Tensor, Tile
from pypto.ops.memory_specs import BOTH, row_major, vec
from pypto.ops.pto_text import ROUND_MODES, precision, round_mode
from pypto.ops.registry import op
from pypto.ops.rules import (
    fresh_like,
    require,
    require_dtype,
    require_rank,
    require_same_dtype,
    require_same_shape,
    valid_region,
)
from pypto.ops.scalars import as_datatype, float_scalar

_MODE_NAMES = {name.lower(): code for code, name in enumerate(ROUND_MODES)}


def _tile_unary(leaf: str, torch: Any, doc: str, **facts: Any) -> None:
    def rule(tile: Tile) -> Type:
        return fresh_like(tile)

    rule.__doc__ = doc
    facts.setdefault("layouts", row_major(1))
    op(
        f"tile.{leaf}", family="unary", memory=vec(1), backends=BOTH, pto=f"pto.t{leaf}", torch=torch, **facts
    )(rule)  # fmt: skip


def _float_result(dtype: DataType) -> DataType:
    """Integers become FP32 where the result is fractional."""
    return DataType.FP32 if dtype.is_int() else dtype


def _tensor_unary(leaf: str, torch: Any, doc: str, *, fractional: bool = False) -> None:
    def rule(input: Tensor) -> Type:
        return fresh_like(input, _float_result(input.type.dtype) if fractional else None)

    rule.__doc__ = doc
    op(f"tensor.{leaf}", family="tensor_unary", torch=torch, converts_to=f"tile.{leaf}")(rule)


_neg, _abs = (lambda x: -x), (lambda x: abs(x))
_exp, _sqrt = T.rounded(T.call("exp")), T.rounded(T.call("sqrt"))
_tile_unary("neg", _neg, "``-x``.", layouts={})
_tile_unary("abs", _abs, "``|x|``.")
_tile_unary("exp", _exp, "``e ** x``.")
_tile_unary("sqrt", _sqrt, "Square root.")
_tile_unary("relu", T.call("relu"), "``max(x, 0)``.")
_tensor_unary("neg", _neg, "``-x``.")
_tensor_unary("abs", _abs, "``|x|``.")
_tensor_unary("exp", _exp, "``e ** x``; integers give FP32.", fractional=True)
_tensor_unary("sqrt", _sqrt, "Square root; integers give FP32.", fractional=True)


def _plain(function: Any) -> Any:
    """A reference value that ignores the attributes of the operator."""
    value = T.rounded(function)
    return lambda x, *_, **__: value(x)


_recip, _log, _rsqrt = (_plain(T.call(n)) for n in ("reciprocal", "log", "rsqrt"))


@op(
    "tile.recip", family="unary", memory=vec(1), layouts=row_major(1), backends=BOTH, inplace_safe=False,
    pto="pto.trecip", pto_attrs=precision("recip"), torch=_recip,
)  # fmt: skip
def tile_recip(tile: Tile, high_precision: Attr[bool] = False) -> Type:
    """``1 / x``."""
    check_precision("tile.recip", tile.type.dtype, high_precision)
    return fresh_like(tile)


@op("tensor.recip", family="tensor_unary", converts_to="tile.recip", torch=_recip)
def tensor_recip(input: Tensor, high_precision: Attr[bool] = False) -> Type:
    """``1 / x``."""
    check_precision("tensor.recip", input.type.dtype, high_precision)
    return fresh_like(input, _float_result(input.type.dtype))


def _check_log(name: str, dtype: DataType) -> None:
    if dtype not in PRECISE_DTYPES:
        raise ValueError(f"{name} requires an FP16 or FP32 operand, but got {dtype}")


@op(
    "tile.log", family="unary", memory=vec(1), layouts=row_major(1), backends=BOTH, pto="pto.tlog",
    pto_attrs=precision("log"), torch=_log,
)  # fmt: skip
def tile_log(tile: Tile, high_precision: Attr[bool] = False) -> Type:
    """Natural logarithm."""
    _check_log("tile.log", tile.type.dtype)
    return fresh_like(tile)


@op("tensor.log", family="tensor_unary", converts_to="tile.log", torch=_log)
def tensor_log(input: Tensor, high_precision: Attr[bool] = False) -> Type:
    """Natural logarithm."""
    _check_log("tensor.log", input.type.dtype)
    return fresh_like(input)


@op(
    "tile.rsqrt", family="unary", memory=vec(2), layouts=row_major(2), backends=BOTH, inplace_safe=False,
    pto="pto.trsqrt", torch=_rsqrt,
)  # fmt: skip
def tile_rsqrt(tile: Tile, tmp: Tile = None) -> Type:
    """``1 / sqrt(x)``; a scratch tile selects the precise form."""
    if tmp is not None:
        require_same_dtype("tile.rsqrt", tile, tmp, "src", "tmp")
        if not S.all_equal(tile.type.shape, tmp.type.shape):
            raise ValueError(
                f"tile.rsqrt: shape mismatch, tmp must have the shape {S.shape_text(tile.type.shape)} of the source, "
                f"but has {S.shape_text(tmp.type.shape)}"
            )
    return fresh_like(tile)


@op("tensor.rsqrt", family="tensor_unary", converts_to="custom", keep=("high_precision",), torch=_rsqrt)
def tensor_rsqrt(input: Tensor, high_precision: Attr[bool] = False) -> Type:
    """``1 / sqrt(x)``."""
    check_precision("tensor.rsqrt", input.type.dtype, high_precision)
    return fresh_like(input, _float_result(input.type.dtype))


def _trigonometric(leaf: str) -> None:
    value = T.call(leaf)

    def tile_rule(tile: Tile) -> Type:
        _check_trigonometric(f"tile.{leaf}", tile.type.dtype)
        return fresh_like(tile)

    def tensor_rule(input: Tensor) -> Type:
        _check_trigonometric(f"tensor.{leaf}", input.type.dtype)
        return fresh_like(input)

    tile_rule.__doc__ = tensor_rule.__doc__ = f"``{leaf}(x)``, radians; FP32 only."
    op(f"tile.{leaf}", family="unary", memory=vec(1), torch=value)(tile_rule)
    op(f"tensor.{leaf}", family="tensor_unary", torch=value, converts_to=f"tile.{leaf}")(tensor_rule)


def _check_trigonometric(name: str, dtype: DataType) -> None:
    if dtype != DataType.FP32:
        raise ValueError(f"{name} requires an FP32 operand, but got {dtype}; convert it with pl.cast first")


_trigonometric("sin")
_trigonometric("cos")

# --- conversion --------------------------------------------------------------------------------------------------


def rounding_mode(mode: str | int) -> int:
    """Code of a rounding mode given by name or code.

    Raises:
        ValueError: no such mode.
    """
    code = _MODE_NAMES.get(mode) if isinstance(mode, str) else mode
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code < len(ROUND_MODES):
        raise ValueError(f"Invalid rounding mode {mode!r}; use one of {', '.join(_MODE_NAMES)} or 0 to 6")
    return code


def _cast_rule(name: str, operand: Any, target_type: DataType, mode: int) -> Type:
    rounding_mode(mode)
    if operand.type.dtype == target_type:
        raise ValueError(f"{name} from {target_type} to {target_type}: same-dtype cast is not a valid operation")
    return fresh_like(operand, target_type)


def _tile_cast_front(tile: Any, target_type: int | DataType, mode: str | int = "round") -> tuple:
    return (tile,), {"target_type": as_datatype(target_type), "mode": rounding_mode(mode)}


def _tensor_cast_front(input: Any, target_type: int | DataType, mode: str | int = "round") -> tuple:
    return (input,), {"target_type": as_datatype(target_type), "mode": rounding_mode(mode)}


@op(
    "tile.cast", family="cast", front=_tile_cast_front, memory=vec(1), layouts=row_major(1), backends=BOTH,
    pto="pto.tcvt", pto_attrs=round_mode, torch=T.cast,
)  # fmt: skip
def tile_cast(tile: Tile, target_type: Attr[DataType], mode: Attr[int]) -> Type:
    """Numeric conversion with a rounding mode (``round``, nearest with ties away from zero, by default)."""
    return _cast_rule("tile.cast", tile, target_type, mode)


@op("tensor.cast", family="cast", front=_tensor_cast_front, converts_to="tile.cast", torch=T.cast)
def tensor_cast(input: Tensor, target_type: Attr[DataType], mode: Attr[int]) -> Type:
    """Numeric conversion with a rounding mode (``round``, nearest with ties away from zero, by default)."""
    return _cast_rule("tensor.cast", input, target_type, mode)


# --- activations -------------------------------------------------------------------------------------------------


def _lrelu_front(tile: Any, slope: Any) -> tuple:
    return (tile, float_scalar(slope, UNKNOWN_SPAN)), {}


def _leaky_relu(x: Any, slope: Any) -> Any:
    import torch

    return torch.where(x > 0, x, (x * slope).to(x.dtype))


@op(
    "tile.lrelu", family="activation", front=_lrelu_front, memory=vec(1), layouts=row_major(2), backends=BOTH,
    pto="pto.tlrelu", torch=_leaky_relu,
)  # fmt: skip
def tile_lrelu(tile: Tile, slope: Scalar) -> Type:
    """``x`` where positive, else ``slope * x``; the slope is an FP32 scalar."""
    return fresh_like(tile)


@op(
    "tile.prelu", family="activation", level="extended", memory=vec(3), layouts=row_major(3), backends=BOTH,
    inplace_safe=False, pto="pto.tprelu", torch=lambda x, slope, tmp: _leaky_relu(x, slope),
)  # fmt: skip
def tile_prelu(tile: Tile, slope: Tile, tmp: Tile) -> Type:
    """``x`` where positive, else ``slope * x``, one slope per element; ``tmp`` is 8-bit scratch (UINT8 on A2/A3)."""
    name = "tile.prelu"
    require_rank(name, tile, 2, "src")
    require_rank(name, tmp, 2, "tmp")
    require_dtype(name, tile.type.dtype, PRECISE_DTYPES)
    require_same_dtype(name, tile, slope, "src", "slope")
    require_same_shape(name, tile, slope, "src", "slope")
    require(
        S.all_equal(valid_region(tile), valid_region(slope)),
        f"{name} requires src0, src1, and dst to have the same valid_shape",
    )
    require_dtype(name, tmp.type.dtype, (DataType.UINT8, DataType.INT8), "tmp dtype")
    return fresh_like(tile)


def scalar_cast(value: Any, target_type: int | DataType, mode: str | int = "round") -> Any:
    """``pl.cast`` of a scalar: a Cast node.

    Raises:
        TypeError: a rounding mode other than the default.
        ValueError: no such mode.
    """
    from pypto.ir.scalar_ops import cast

    if rounding_mode(mode) != _MODE_NAMES["round"]:
        raise TypeError("pl.cast: Scalar inputs do not support non-default mode")
    return cast(as_expr(value), as_datatype(target_type), UNKNOWN_SPAN)
