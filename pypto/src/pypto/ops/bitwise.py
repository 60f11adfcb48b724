"""Bitwise and shift operators of integer tiles and tensors."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Element, Tensor, Tile
from pypto.ops.memory_specs import BOTH, VEC_SCALAR_VEC, row_major, vec
from pypto.ops.registry import op
from pypto.ops.rules import common_region, elementwise_tiles, fresh_like, fresh_tensor, require

NOT_DTYPES = (DataType.INT16, DataType.UINT16)


def _require_integer(name: str, operand: Any, what: str) -> None:
    """Reject floats; ``what`` is the level with its article, as the catalogue words it."""
    if not operand.type.dtype.is_int():
        raise ValueError(f"{name} requires {what} dtype, but got {operand.type.dtype}")


def _require_integer_scalar(name: str, scalar: Any) -> None:
    if not scalar.type.dtype.is_int():
        raise ValueError(f"{name} requires the shift/bitwise scalar to be an integer, but got {scalar.type.dtype}")


def _require_count(name: str, scalar: Any) -> None:
    value = S.const(scalar)
    if value is not None and value < 0:
        raise ValueError(f"{name} requires a non-negative shift count, but got {value}")


def _tile_pair(name: str, lhs: Any, rhs: Any) -> Type:
    _require_integer(name, lhs, "integer tile")
    _require_integer(name, rhs, "integer tile")
    return elementwise_tiles(name, lhs, rhs)


def _tensor_pair(name: str, lhs: Any, rhs: Any) -> None:
    _require_integer(name, lhs, "an integer tensor")
    _require_integer(name, rhs, "an integer tensor")
    left, right = lhs.type.shape, rhs.type.shape
    if len(left) != len(right) or any(S.provably_different(x, y) for x, y in zip(left, right)):
        raise ValueError(
            f"{name} requires both operands to have the same shape, but got {S.shape_text(left)} and "
            f"{S.shape_text(right)}"
        )


def _logical(leaf: str, torch: Any, symbol: str) -> None:
    """``and`` or ``or`` at both levels, with their scalar forms."""
    scalar = T.scalar_like(torch)

    def tile_rule(lhs: Tile, rhs: Tile) -> Type:
        return _tile_pair(f"tile.{leaf}", lhs, rhs)

    def tile_scalar(lhs: Tile, rhs: Element) -> Type:
        _require_integer(f"tile.{leaf}s", lhs, "integer tile")
        _require_integer_scalar(f"tile.{leaf}s", rhs)
        return fresh_like(lhs)

    def tensor_rule(lhs: Tensor, rhs: Tensor) -> Type:
        _tensor_pair(f"tensor.{leaf}", lhs, rhs)
        dtype = S.promote(lhs.type.dtype, rhs.type.dtype)
        return fresh_tensor(lhs.type.shape, dtype, common_region(lhs, rhs))

    def tensor_scalar(lhs: Tensor, rhs: Element) -> Type:
        _require_integer(f"tensor.{leaf}s", lhs, "an integer tensor")
        _require_integer_scalar(f"tensor.{leaf}s", rhs)
        return fresh_like(lhs)

    for rule in (tile_rule, tile_scalar, tensor_rule, tensor_scalar):
        rule.__doc__ = f"``lhs {symbol} rhs`` of integers."
    op(f"tile.{leaf}", family="bitwise", memory=vec(2), layouts=row_major(2), backends=BOTH, pto=f"pto.t{leaf}",
       torch=torch, scalar_form=f"tile.{leaf}s")(tile_rule)  # fmt: skip
    op(f"tile.{leaf}s", family="bitwise", memory=vec(1), backends=BOTH, pto=f"pto.t{leaf}s", torch=scalar,
       inplace_safe=False)(tile_scalar)  # fmt: skip
    op(f"tensor.{leaf}", family="tensor_bitwise", torch=torch, converts_to=f"tile.{leaf}",
       scalar_form=f"tensor.{leaf}s")(tensor_rule)  # fmt: skip
    op(f"tensor.{leaf}s", family="tensor_bitwise", torch=scalar, converts_to=f"tile.{leaf}s")(tensor_scalar)


_logical("and", lambda a, b: a & b, "&")
_logical("or", lambda a, b: a | b, "|")


def _xor_value(lhs: Any, rhs: Any, tmp: Any = None) -> Any:
    return lhs ^ rhs


_XORS_VALUE = T.scalar_like(lambda a, b: a ^ b)


def _check_scratch(name: str, result: Any, tmp: Any) -> None:
    """Scratch of the element type and the shape of the result."""
    have = tmp.type
    if have.dtype != result.dtype:
        raise ValueError(f"{name} requires tmp of dtype {result.dtype} like the result, but got {have.dtype}")
    if len(have.shape) != len(result.shape) or any(
        S.provably_different(a, b) for a, b in zip(have.shape, result.shape)
    ):
        raise ValueError(
            f"{name} requires tmp of shape {S.shape_text(result.shape)} like the result, but got "
            f"{S.shape_text(have.shape)}"
        )


@op("tile.xor", family="bitwise", memory=vec(3), layouts=row_major(3), backends=BOTH, pto="pto.txor", torch=_xor_value)
def tile_xor(lhs: Tile, rhs: Tile, tmp: Tile) -> Type:
    """``lhs ^ rhs`` of integers; ``tmp`` is scratch of the element type and shape of the result."""
    result = _tile_pair("tile.xor", lhs, rhs)
    _check_scratch("tile.xor", result, tmp)
    return result


@op(
    "tile.xors", family="bitwise", memory=VEC_SCALAR_VEC, backends=BOTH, inplace_safe=False, pto="pto.txors",
    torch=lambda lhs, rhs, tmp: _XORS_VALUE(lhs, rhs),
)  # fmt: skip
def tile_xors(lhs: Tile, rhs: Element, tmp: Tile) -> Type:
    """``lhs ^ rhs`` with a scalar; ``tmp`` is scratch of the element type and shape of the result."""
    _require_integer("tile.xors", lhs, "integer tile")
    _require_integer_scalar("tile.xors", rhs)
    _check_scratch("tile.xors", lhs.type, tmp)
    return fresh_like(lhs)


@op("tensor.xor", family="tensor_bitwise", torch=_xor_value, converts_to="custom", scalar_form="tensor.xors")
def tensor_xor(lhs: Tensor, rhs: Tensor) -> Type:
    """``lhs ^ rhs`` of integers."""
    _tensor_pair("tensor.xor", lhs, rhs)
    return fresh_tensor(lhs.type.shape, S.promote(lhs.type.dtype, rhs.type.dtype))


@op("tensor.xors", family="tensor_bitwise", torch=_XORS_VALUE, converts_to="custom")
def tensor_xors(lhs: Tensor, rhs: Element) -> Type:
    """``lhs ^ rhs`` with a scalar; the result is fully valid."""
    _require_integer("tensor.xors", lhs, "an integer tensor")
    _require_integer_scalar("tensor.xors", rhs)
    return fresh_tensor(lhs.type.shape, lhs.type.dtype)


def _not_value(x: Any) -> Any:
    return ~x


@op("tile.not", family="bitwise", memory=vec(1), layouts=row_major(1), backends=BOTH, pto="pto.tnot", torch=_not_value)
def tile_not(tile: Tile) -> Type:
    """``~x`` of 16-bit integers."""
    require(
        tile.type.dtype in NOT_DTYPES, f"tile.not requires an int16 or uint16 tile dtype, but got {tile.type.dtype}"
    )
    return fresh_like(tile)


@op("tensor.not", family="tensor_bitwise", converts_to="tile.not", torch=_not_value)
def tensor_not(input: Tensor) -> Type:
    """``~x`` of 16-bit integers."""
    require(
        input.type.dtype in NOT_DTYPES,
        f"tensor.not requires an int16 or uint16 tensor dtype, but got {input.type.dtype}",
    )
    return fresh_like(input)


def _shift(leaf: str, torch: Any, symbol: str) -> None:
    """A shift at both levels, with its scalar forms; the element type of ``lhs`` is kept."""
    scalar = T.scalar_like(torch)

    def tile_rule(lhs: Tile, rhs: Tile) -> Type:
        name = f"tile.{leaf}"
        result = _tile_pair(name, lhs, rhs)
        return fresh_like(lhs) if S.all_equal(result.shape, lhs.type.shape) else result

    def tile_scalar(lhs: Tile, rhs: Element) -> Type:
        name = f"tile.{leaf}s"
        _require_integer(name, lhs, "integer tile")
        _require_integer_scalar(name, rhs)
        if leaf == "shr":
            _require_count(name, rhs)
        return fresh_like(lhs)

    def tensor_rule(lhs: Tensor, rhs: Tensor) -> Type:
        _tensor_pair(f"tensor.{leaf}", lhs, rhs)
        return fresh_tensor(lhs.type.shape, lhs.type.dtype, common_region(lhs, rhs))

    def tensor_scalar(lhs: Tensor, rhs: Element) -> Type:
        name = f"tensor.{leaf}s"
        _require_integer(name, lhs, "an integer tensor")
        _require_integer_scalar(name, rhs)
        _require_count(name, rhs)
        return fresh_like(lhs)

    for rule in (tile_rule, tile_scalar, tensor_rule, tensor_scalar):
        rule.__doc__ = f"``lhs {symbol} rhs``: arithmetic for signed integers, logical for unsigned ones."
    op(f"tile.{leaf}", family="bitwise", memory=vec(2), layouts=row_major(2), backends=BOTH, pto=f"pto.t{leaf}",
       torch=torch, scalar_form=f"tile.{leaf}s")(tile_rule)  # fmt: skip
    op(f"tile.{leaf}s", family="bitwise", memory=vec(1), backends=BOTH, pto=f"pto.t{leaf}s", torch=scalar)(tile_scalar)
    op(f"tensor.{leaf}", family="tensor_bitwise", torch=torch, converts_to=f"tile.{leaf}",
       scalar_form=f"tensor.{leaf}s")(tensor_rule)  # fmt: skip
    op(f"tensor.{leaf}s", family="tensor_bitwise", torch=scalar, converts_to=f"tile.{leaf}s")(tensor_scalar)


_shift("shl", T.call("bitwise_left_shift"), "<<")
_shift("shr", T.call("bitwise_right_shift"), ">>")
