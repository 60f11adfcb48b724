"""Elementwise operators: numpy broadcasting, mixed dtypes, reductions and operators with scratch."""

from __future__ import annotations

from typing import Any

from pypto.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, Expr, const_value
from pypto.ir.scalar_ops import promoted_dtype
from pypto.ir.types import ScalarType, same_dim, same_dims
from pypto.passes.tile.conversions.registry import ConversionContext, known_kwargs, op_conversion

_NO_ROUNDING, _ROUND = 0, 2


def same_dtype(ctx: ConversionContext, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Both tiles in the promoted dtype, with an explicit cast where one differs."""
    a, b = lhs.type.dtype, rhs.type.dtype
    if a == b:
        return lhs, rhs
    wide = promoted_dtype(a, b)

    def cast(tile: Expr, name: str) -> Expr:
        if tile.type.dtype == wide:
            return tile
        return ctx.emit(name, "tile.cast", [tile], {"target_type": wide, "mode": _ROUND})

    return cast(lhs, "lhs_cast"), cast(rhs, "rhs_cast")


def _is_one(dim: Expr) -> bool:
    return const_value(dim) == 1


def _broadcast_kind(big: Expr, small: Expr) -> str | None:
    """``row``: one value per row of ``big``; ``col``: one row for all rows; None: neither."""
    a, b = big.type.shape, small.type.shape
    if len(a) != len(b):
        if len(b) < len(a) and same_dim(a[-1], b[-1]) and all(_is_one(d) for d in b[:-1]):
            return "col"
        return None
    if len(a) < 2:
        return None
    if _is_one(b[-1]) and not _is_one(a[-1]) and same_dims(a[:-1], b[:-1]):
        return "row"
    if same_dim(a[-1], b[-1]) and all(_is_one(d) for d in b[:-1]):
        return "col"
    return None


@op_conversion("tensor.add", "tensor.sub", "tensor.mul", "tensor.maximum", "tensor.minimum")
def _binary(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    leaf = call.op.name.removeprefix("tensor.")
    lhs, rhs = args
    if isinstance(rhs.type, ScalarType):
        return ctx.call(f"tile.{leaf}s", args, known_kwargs(f"tile.{leaf}s", kwargs))
    lhs, rhs = same_dtype(ctx, lhs, rhs)
    if same_dims(lhs.type.shape, rhs.type.shape):
        return ctx.call(f"tile.{leaf}", [lhs, rhs], known_kwargs(f"tile.{leaf}", kwargs))
    word = {"maximum": "max", "minimum": "min"}.get(leaf, leaf)
    kind = _broadcast_kind(lhs, rhs)
    if kind is not None:
        return ctx.call(f"tile.{kind}_expand_{word}", [lhs, rhs])
    kind = _broadcast_kind(rhs, lhs)
    if kind is not None:
        if leaf != "sub":
            return ctx.call(f"tile.{kind}_expand_{word}", [rhs, lhs])
        target = ctx.scratch("expand_target", rhs.type.shape, rhs.type.dtype)
        wide = ctx.emit("lhs_expanded", f"tile.{kind}_expand", [target, lhs])
        return ctx.call("tile.sub", [wide, rhs])
    return ctx.call(f"tile.{leaf}", [lhs, rhs], known_kwargs(f"tile.{leaf}", kwargs))


@op_conversion("tensor.div")
def _div(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    lhs, rhs = args
    if isinstance(rhs.type, ScalarType):
        return ctx.call("tile.divs", args)
    lhs, rhs = same_dtype(ctx, lhs, rhs)
    a, b = lhs.type.shape, rhs.type.shape
    if same_dims(a, b):
        if not same_dims(lhs.type.valid_shape, rhs.type.valid_shape):
            raise InternalError(
                "tensor.div: dividend and divisor of one shape need equal valid shapes; elements outside of one "
                "region would divide unspecified values",
                span=call.span,
            )
        return ctx.call("tile.div", [lhs, rhs], known_kwargs("tile.div", kwargs))
    if _broadcast_kind(rhs, lhs) == "row":
        raise InternalError(
            "tensor.div: a row-vector lhs broadcast has no instruction; expand the dividend first", span=call.span
        )
    if _broadcast_kind(lhs, rhs) != "row":
        raise InternalError(
            f"tensor.div supports equal shapes or [M, N] / [M, 1], got {len(a)}-D and {len(b)}-D operands of other "
            "extents",
            span=call.span,
        )
    if kwargs.get("high_precision"):
        raise InternalError("tensor.div with high_precision=True does not support row broadcasting", span=call.span)
    if lhs.type.dtype not in (DataType.FP16, DataType.FP32):
        raise InternalError(
            f"tensor.div row broadcasting supports only FP16 or FP32, got {lhs.type.dtype}", span=call.span
        )
    if not _covers(rhs.type.valid_shape[0], lhs.type.valid_shape[0]):
        raise InternalError(
            "tensor.div: the divisor's valid rows must provably cover the dividend's valid rows", span=call.span
        )
    return ctx.call("tile.row_expand_div", [lhs, rhs])


def _covers(have: Expr, need: Expr) -> bool:
    if same_dim(have, need):
        return True
    h, n = const_value(have), const_value(need)
    return h is not None and n is not None and h >= n


@op_conversion("tensor.cmp")
def _cmp(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    scalar = isinstance(args[1].type, ScalarType)
    if not scalar:
        args = list(same_dtype(ctx, *args))
    return ctx.call("tile.cmps" if scalar else "tile.cmp", args, kwargs)


@op_conversion("tensor.rsqrt")
def _rsqrt(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    if kwargs.get("high_precision"):
        args = [args[0], ctx.scratch("rsqrt_tmp", args[0].type.shape, args[0].type.dtype)]
    return ctx.call("tile.rsqrt", args)


@op_conversion("tensor.xor", "tensor.xors")
def _xor(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    scratch = ctx.scratch("xor_tmp", args[0].type.shape, args[0].type.dtype)
    return ctx.call(call.op.name.replace("tensor.", "tile."), [*args, scratch])


@op_conversion("tensor.row_max", "tensor.row_min", "tensor.row_sum", "tensor.row_prod")
def _row_reduction(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    source = args[0].type
    last = const_value(source.shape[-1])
    width = source.shape[-1] if last is None else max(last, 128)
    scratch = ctx.scratch("tmp_tile", [*source.shape[:-1], width], source.dtype)
    return ctx.call(call.op.name.replace("tensor.", "tile."), [args[0], scratch])


@op_conversion("tensor.row_argmax", "tensor.row_argmin", "tensor.col_argmax", "tensor.col_argmin")
def _arg_reduction(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    scratch = ctx.scratch("tmp_tile", args[0].type.shape, args[0].type.dtype)
    return ctx.call(call.op.name.replace("tensor.", "tile."), [args[0], scratch])
