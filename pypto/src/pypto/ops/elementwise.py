"""Elementwise operators of two values: arithmetic, partial combination, three-operand forms."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import TileLayout
from pypto.ir.types import ScalarType, Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Element, Tensor, Tile
from pypto.ops.memory_specs import BOTH, VEC_SCALAR_VEC, row_major, vec
from pypto.ops.pto_text import precision
from pypto.ops.registry import op
from pypto.ops.rules import (
    elementwise_tensors,
    elementwise_tiles,
    fresh_like,
    fresh_tensor,
    require,
    require_dtype,
    require_same_dtype,
    valid_region,
)

DIV_DTYPES = (DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)
PRECISE_DTYPES = (DataType.FP16, DataType.FP32)
_MAXIMUM, _MINIMUM, _FMOD = T.call("maximum"), T.call("minimum"), T.call("fmod")


def check_precision(name: str, dtype: DataType, high_precision: bool) -> None:
    """Reject the precise form of other element types."""
    if high_precision and dtype not in PRECISE_DTYPES:
        raise ValueError(f"{name} supports high_precision only for FP16 or FP32, but got {dtype}")


def _tile_binary(leaf: str, torch: Any, doc: str, *, pto: str = "", scalar_form: bool = True, **facts: Any) -> None:
    def rule(lhs: Tile, rhs: Tile) -> Type:
        return elementwise_tiles(f"tile.{leaf}", lhs, rhs)

    rule.__doc__ = doc
    facts.setdefault("family", "elementwise_binary")
    op(
        f"tile.{leaf}", memory=vec(2), layouts=row_major(2), backends=BOTH, pto=f"pto.{pto or 't' + leaf}",
        torch=torch, scalar_form=f"tile.{leaf}s" if scalar_form else None, **facts,
    )(rule)  # fmt: skip


_tile_binary("add", T.rounded(lambda a, b: a + b), "``lhs + rhs`` over the valid region, in the promoted type.")
_tile_binary("sub", T.rounded(lambda a, b: a - b), "``lhs - rhs`` over the valid region, in the promoted type.")
_tile_binary("mul", T.rounded(lambda a, b: a * b), "``lhs * rhs`` over the valid region, in the promoted type.")
_tile_binary("maximum", _MAXIMUM, "The larger of two elements.", pto="tmax", scalar_form=False)
_tile_binary("minimum", _MINIMUM, "The smaller of two elements.", pto="tmin", scalar_form=False)


@op(
    "tile.div", family="elementwise_binary", memory=vec(2), layouts=row_major(2), backends=BOTH, pto="pto.tdiv",
    pto_attrs=precision("div"), torch=T.divide, scalar_form="tile.divs",
)  # fmt: skip
def tile_div(lhs: Tile, rhs: Tile, high_precision: Attr[bool] = False) -> Type:
    """``lhs / rhs``; integers truncate. Operands agree in shape, element type and valid region."""
    name = "tile.div"
    require_same_dtype(name, lhs, rhs, "src0", "src1")
    if not S.all_equal(lhs.type.shape, rhs.type.shape):
        raise ValueError(
            f"{name} requires src0, src1, and dst of identical physical shape, but got "
            f"{S.shape_text(lhs.type.shape)} and {S.shape_text(rhs.type.shape)}"
        )
    left, right = valid_region(lhs), valid_region(rhs)
    if not S.all_equal(left, right):
        raise ValueError(
            f"{name} requires src0, src1, and dst to have the same valid_shape, but got {S.shape_text(left)} and "
            f"{S.shape_text(right)}"
        )
    require_dtype(name, lhs.type.dtype, DIV_DTYPES)
    check_precision(name, lhs.type.dtype, high_precision)
    return fresh_like(lhs)


_tile_binary("fmod", _FMOD, "C ``fmod``: the sign follows the dividend.", scalar_form=False, level="extended",
             inplace_safe=False)  # fmt: skip


@op(
    "tile.rem", family="elementwise_binary", level="extended", memory=vec(3), layouts=row_major(3), backends=BOTH,
    pto="pto.trem", torch=lambda lhs, rhs, tmp: T.call("remainder")(lhs, rhs),
)  # fmt: skip
def tile_rem(lhs: Tile, rhs: Tile, tmp: Tile) -> Type:
    """Floor modulo (sign of the divisor); ``tmp`` is scratch of one row."""
    S.broadcast(lhs.type.shape, rhs.type.shape, "tile.rem")
    check_remainder_scratch("tile.rem", lhs, tmp)
    return fresh_like(lhs)


def check_remainder_scratch(name: str, lhs: Tile, tmp: Tile) -> None:
    """Scratch of rem and rems: row_major, the element type of the operand, at least one row, at least its columns."""
    require_same_dtype(name, lhs, tmp, "lhs", "tmp")
    require(
        tmp.type.get_effective_tile_view().blayout is TileLayout.row_major, f"{name} requires a row_major scratch tmp"
    )
    have, need = valid_region(tmp), valid_region(lhs)
    if S.provably_lt(have[-1], need[-1]) or any(S.provably_lt(extent, 1) for extent in have[:-1]):
        raise ValueError(
            f"{name} requires tmp to have at least one valid row and the valid columns of the result "
            f"({S.dim_text(need[-1])}), but got {S.shape_text(have)}"
        )


def _partial(leaf: str, torch: Any, verb: str) -> None:
    def tile_rule(src0: Tile, src1: Tile) -> Type:
        return elementwise_tiles(f"tile.part_{leaf}", src0, src1)

    def tensor_rule(lhs: Tensor, rhs: Tensor) -> Type:
        shape = S.broadcast(lhs.type.shape, rhs.type.shape, f"tensor.part_{leaf}")
        return fresh_tensor(shape, S.promote(lhs.type.dtype, rhs.type.dtype))

    doc = f"{verb} where both operands are valid; where one is valid, that one."
    tile_rule.__doc__ = tensor_rule.__doc__ = doc
    op(
        f"tile.part_{leaf}", family="partial", level="extended", memory=vec(2), layouts=row_major(2), backends=BOTH,
        pto=f"pto.tpart{leaf}", torch=torch,
    )(tile_rule)  # fmt: skip
    op(f"tensor.part_{leaf}", family="partial", level="extended", converts_to=f"tile.part_{leaf}", torch=torch)(
        tensor_rule
    )


_partial("add", T.rounded(lambda a, b: a + b), "Sum")
_partial("mul", T.rounded(lambda a, b: a * b), "Product")
_partial("max", _MAXIMUM, "Maximum")
_partial("min", _MINIMUM, "Minimum")


def _ternary(leaf: str, torch: Any, doc: str) -> None:
    def rule(lhs: Tile, rhs: Tile, rhs2: Tile) -> Type:
        return elementwise_tiles(f"tile.{leaf}", lhs, rhs, rhs2)

    def scalar_rule(lhs: Tile, rhs: Element, rhs2: Tile) -> Type:
        if not S.all_equal(lhs.type.shape, rhs2.type.shape):
            S.broadcast(lhs.type.shape, rhs2.type.shape, f"tile.{leaf[:-1]}sc")
        return fresh_like(lhs)

    rule.__doc__ = scalar_rule.__doc__ = doc
    op(
        f"tile.{leaf}", family="ternary", level="extended", memory=vec(3), backends=BOTH, pto=f"pto.t{leaf}",
        torch=torch,
    )(rule)  # fmt: skip
    op(
        f"tile.{leaf[:-1]}sc", family="ternary", level="extended", memory=VEC_SCALAR_VEC, layouts=row_major(3),
        backends=BOTH, pto=f"pto.t{leaf[:-1]}sc", torch=torch,
    )(scalar_rule)  # fmt: skip


_ternary("addc", lambda a, b, c: a + b + c, "``lhs + rhs + rhs2``, left to right.")
_ternary("subc", lambda a, b, c: a - b + c, "``lhs - rhs + rhs2``, as the instruction computes it.")


def _tensor_binary(leaf: str, torch: Any, doc: str, *, scalar_form: bool = True, **facts: Any) -> None:
    def rule(lhs: Tensor, rhs: Tensor) -> Type:
        return elementwise_tensors(f"tensor.{leaf}", lhs, rhs)

    rule.__doc__ = doc
    facts.setdefault("converts_to", "custom")
    op(
        f"tensor.{leaf}", family="tensor_elementwise", torch=torch,
        scalar_form=f"tensor.{leaf}s" if scalar_form else None, **facts,
    )(rule)  # fmt: skip


def _tensor_or_scalar(leaf: str, torch: Any, doc: str) -> None:
    def rule(lhs: Tensor, rhs: Tensor | Element) -> Type:
        if isinstance(rhs.type, ScalarType):
            return fresh_like(lhs, S.promote(lhs.type.dtype, rhs.type.dtype))
        return elementwise_tensors(f"tensor.{leaf}", lhs, rhs)

    rule.__doc__ = doc
    op(f"tensor.{leaf}", family="tensor_elementwise", torch=torch, converts_to="custom")(rule)


_tensor_binary("add", T.rounded(lambda a, b: a + b), "``lhs + rhs`` with numpy broadcasting.")
_tensor_binary("sub", T.rounded(lambda a, b: a - b), "``lhs - rhs`` with numpy broadcasting.")
_tensor_binary("mul", T.rounded(lambda a, b: a * b), "``lhs * rhs`` with numpy broadcasting.")
_tensor_or_scalar("maximum", lambda a, b: T.scalar_like(_MAXIMUM)(a, b) if not hasattr(b, "shape") else _MAXIMUM(a, b),
                  "The larger of two elements; a scalar on the right is allowed.")  # fmt: skip
_tensor_or_scalar("minimum", lambda a, b: T.scalar_like(_MINIMUM)(a, b) if not hasattr(b, "shape") else _MINIMUM(a, b),
                  "The smaller of two elements; a scalar on the right is allowed.")  # fmt: skip
_tensor_binary("fmod", _FMOD, "C ``fmod`` with numpy broadcasting.", level="extended", converts_to="tile.fmod")


@op(
    "tensor.div", family="tensor_elementwise", torch=T.divide, scalar_form="tensor.divs", converts_to="custom",
)  # fmt: skip
def tensor_div(lhs: Tensor, rhs: Tensor, high_precision: Attr[bool] = False) -> Type:
    """``lhs / rhs`` with numpy broadcasting."""
    result = elementwise_tensors("tensor.div", lhs, rhs)
    for operand in (lhs, rhs):
        require_dtype("tensor.div", operand.type.dtype, DIV_DTYPES)
    check_precision("tensor.div", result.dtype, high_precision)
    return result


# --- scalar right-hand sides -------------------------------------------------------------------------------------

SUBS_DTYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32, DataType.BF16)


def _check_subs(name: str, lhs: Any, rhs: Any) -> None:
    require_dtype(name, lhs.type.dtype, SUBS_DTYPES)
    require_dtype(name, rhs.type.dtype, SUBS_DTYPES, "scalar dtype")


def _scalar_forms(
    leaf: str, torch: Any, doc: str, *, pto: str = "", tensor: bool = True, layouts: Any = None, **facts: Any
) -> None:
    keeps_dtype = leaf == "subs"
    value = T.scalar_like(torch)

    def tile_rule(lhs: Tile, rhs: Element) -> Type:
        if keeps_dtype:
            _check_subs("tile.subs", lhs, rhs)
        return fresh_like(lhs)

    def tensor_rule(lhs: Tensor, rhs: Element) -> Type:
        if keeps_dtype:
            _check_subs("tensor.subs", lhs, rhs)
            return fresh_like(lhs)
        return fresh_like(lhs, S.promote(lhs.type.dtype, rhs.type.dtype))

    tile_rule.__doc__ = tensor_rule.__doc__ = doc
    level = facts.get("level", "core")
    op(
        f"tile.{leaf}", family="elementwise_scalar", memory=vec(1), backends=BOTH, pto=f"pto.{pto or 't' + leaf}",
        layouts=row_major(2) if layouts is None else layouts, torch=value, **facts,
    )(tile_rule)  # fmt: skip
    if tensor:
        op(f"tensor.{leaf}", family="tensor_scalar", level=level, torch=_promoting(torch, keeps_dtype),
           converts_to=f"tile.{leaf}")(tensor_rule)  # fmt: skip


def _promoting(function: Any, keeps_dtype: bool) -> Any:
    """Tensor forms lift integers to FP32 next to a fractional scalar (except ``subs``)."""
    value = T.scalar_like(function)

    def evaluate(lhs: Any, rhs: Any) -> Any:
        lifts = not keeps_dtype and isinstance(rhs, float) and not lhs.dtype.is_floating_point
        return value(lhs.float() if lifts else lhs, rhs)

    return evaluate


_scalar_forms("adds", lambda a, b: a + b, "``lhs + rhs`` with a scalar.")
_scalar_forms("subs", lambda a, b: a - b, "``lhs - rhs`` with a scalar.")
_scalar_forms("muls", lambda a, b: a * b, "``lhs * rhs`` with a scalar.")
_scalar_forms("divs", T.divide, "``lhs / rhs`` with a scalar; integers truncate.")
_scalar_forms("maximums", _MAXIMUM, "The larger of element and scalar.", pto="tmaxs", tensor=False)
_scalar_forms("minimums", _MINIMUM, "The smaller of element and scalar.", pto="tmins", tensor=False, layouts={})
_scalar_forms("fmods", _FMOD, "C ``fmod`` with a scalar.", level="extended", inplace_safe=False)


@op(
    "tile.rems", family="elementwise_scalar", level="extended", memory=VEC_SCALAR_VEC, backends=BOTH, pto="pto.trems",
    torch=lambda lhs, rhs, tmp: T.scalar_like(T.call("remainder"))(lhs, rhs),
)  # fmt: skip
def tile_rems(lhs: Tile, rhs: Element, tmp: Tile) -> Type:
    """Floor modulo by a scalar (sign of the divisor); ``tmp`` is scratch of one row."""
    check_remainder_scratch("tile.rems", lhs, tmp)
    if rhs.type.dtype != lhs.type.dtype:
        raise ValueError(f"tile.rems requires scalar dtype {lhs.type.dtype}, but got {rhs.type.dtype}")
    return fresh_like(lhs)
