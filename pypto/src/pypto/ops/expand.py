"""Row and column vectors spread over a wide operand, and constants of a given shape."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import TileLayout
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Element, Tensor, Tile
from pypto.ops.memory_specs import BOTH, vec
from pypto.ops.registry import op
from pypto.ops.rules import (
    ROW_VECTOR_DTYPES,
    dtype_names,
    fresh_like,
    fresh_tensor,
    require,
    require_same_dtype,
    valid_region,
)


def _check_row_vector(name: str, wide: Any, vector: Any) -> None:
    """A ``[M, 1]`` vector next to ``[M, N]``."""
    rows, have = wide.type.shape[:-1], vector.type.shape
    ranks = len(have) == len(wide.type.shape) > 0
    if not ranks or any(S.provably_different(x, y) for x, y in zip(rows, have[:-1])):
        raise ValueError(
            f"{name} requires matching row dimensions, but got {S.shape_text(wide.type.shape)} and {S.shape_text(have)}"
        )
    require(
        S.const(have[-1]) in (1, None), f"{name} requires the row vector to have one column, got {S.shape_text(have)}"
    )


def _check_col_vector(name: str, wide: Any, vector: Any) -> None:
    """A ``[1, N]`` vector next to ``[M, N]``."""
    have = vector.type.shape
    ranks = len(have) == len(wide.type.shape) > 0
    if not ranks or S.provably_different(have[-1], wide.type.shape[-1]):
        raise ValueError(
            f"{name} requires matching column dimensions, but got {S.shape_text(wide.type.shape)} and "
            f"{S.shape_text(have)}"
        )
    require(
        len(have) < 2 or S.const(have[-2]) in (1, None),
        f"{name} requires the column vector to have one row, got {S.shape_text(have)}",
    )


def _promoted_tile(wide: Any, vector: Any) -> Type:
    return fresh_like(wide, S.promote(wide.type.dtype, vector.type.dtype))


def _promoted_tensor(wide: Any, vector: Any) -> Type:
    return fresh_tensor(wide.type.shape, S.promote(wide.type.dtype, vector.type.dtype))


_VALUES = {
    "mul": T.rounded(lambda a, b: a * b),
    "div": T.divide,
    "sub": T.rounded(lambda a, b: a - b),
    "add": T.rounded(lambda a, b: a + b),
    "max": T.call("maximum"),
    "min": T.call("minimum"),
    "expdif": T.rounded(lambda a, b: (a - b).exp()),
}
_VERBS = {
    "mul": "wide * vector", "div": "wide / vector", "sub": "wide - vector", "add": "wide + vector",
    "max": "max(wide, vector)", "min": "min(wide, vector)", "expdif": "exp(wide - vector)",
}  # fmt: skip


def _row_expand(kind: str) -> None:
    leaf = f"row_expand_{kind}"

    def tile_rule(tile: Tile, row_vec: Tile) -> Type:
        _check_row_vector(f"tile.{leaf}", tile, row_vec)
        return _promoted_tile(tile, row_vec)

    def tensor_rule(tensor: Tensor, row_vec: Tensor) -> Type:
        _check_row_vector(f"tensor.{leaf}", tensor, row_vec)
        return _promoted_tensor(tensor, row_vec)

    tile_rule.__doc__ = tensor_rule.__doc__ = f"``{_VERBS[kind]}`` with a ``[M, 1]`` vector spread along the rows."
    op(
        f"tile.{leaf}", family="broadcast_row", memory=vec(2), backends=BOTH, no_alias_args=(1,),
        pto=f"pto.trowexpand{kind}", torch=_VALUES[kind],
    )(tile_rule)  # fmt: skip
    op(f"tensor.{leaf}", family="broadcast_row", converts_to=f"tile.{leaf}", torch=_VALUES[kind])(tensor_rule)


def _col_expand(kind: str) -> None:
    leaf = f"col_expand_{kind}"

    def tile_rule(tile: Tile, col_vec: Tile) -> Type:
        _check_col_vector(f"tile.{leaf}", tile, col_vec)
        return _promoted_tile(tile, col_vec)

    def tensor_rule(tensor: Tensor, col_vec: Tensor) -> Type:
        _check_col_vector(f"tensor.{leaf}", tensor, col_vec)
        return _promoted_tensor(tensor, col_vec)

    tile_rule.__doc__ = tensor_rule.__doc__ = f"``{_VERBS[kind]}`` with a ``[1, N]`` vector spread down the columns."
    op(
        f"tile.{leaf}", family="broadcast_col", memory=vec(2), backends=BOTH, no_alias_args=(1,),
        pto=f"pto.tcolexpand{kind}", torch=_VALUES[kind],
    )(tile_rule)  # fmt: skip
    op(f"tensor.{leaf}", family="broadcast_col", converts_to=f"tile.{leaf}", torch=_VALUES[kind])(tensor_rule)


for _kind in ("sub", "div", "mul", "max", "min", "expdif"):
    _row_expand(_kind)
for _kind in ("mul", "div", "sub", "add", "max", "min", "expdif"):
    _col_expand(_kind)


def _check_row_add_dtype(name: str, wide: Any, vector: Any) -> None:
    require_same_dtype(name, wide, vector, "src0", "src1")
    if wide.type.dtype not in ROW_VECTOR_DTYPES:
        raise ValueError(f"{name} requires dtype in {{{dtype_names(ROW_VECTOR_DTYPES)}}}, but got {wide.type.dtype}")


def _row_add_value(wide: Any, vector: Any, tmp: Any = None) -> Any:
    """A one-column vector spreads; a wider row holds lanes repeated across the columns."""
    import torch

    if vector.shape[-1] != 1:
        lanes = torch.arange(wide.shape[-1]) % vector.shape[-1]
        vector = vector[..., lanes]
    return _VALUES["add"](wide, vector)


@op(
    "tile.row_expand_add", family="broadcast_row", memory=vec(3), backends=BOTH, no_alias_args=(1, 2),
    pto="pto.trowexpandadd", torch=_row_add_value,
)  # fmt: skip
def tile_row_expand_add(tile: Tile, row_vec: Tile, tmp: Tile = None) -> Type:
    """``wide + vector``: a ``[M, 1]`` column spread along the rows, or a row_major 32-byte block of lanes repeated."""
    name = "tile.row_expand_add"
    _check_row_add_dtype(name, tile, row_vec)
    wide_view, vector_view = tile.type.get_effective_tile_view(), row_vec.type.get_effective_tile_view()
    require(wide_view.blayout is TileLayout.row_major, f"{name} requires src0 to be row_major")
    valid, vector_valid = valid_region(tile), valid_region(row_vec)
    if len(valid) != len(vector_valid) or not S.all_equal(valid[:-1], vector_valid[:-1]):
        raise ValueError(
            f"{name} requires the valid rows of src1 to provably equal those of src0, but got "
            f"{S.shape_text(vector_valid)} and {S.shape_text(valid)}"
        )
    width, vector_width = S.const(row_vec.type.shape[-1]), S.const(vector_valid[-1])
    if vector_view.blayout is TileLayout.row_major:
        lanes = 32 // row_vec.type.dtype.get_byte()
        if width != lanes or vector_width != lanes:
            raise ValueError(
                f"{name} requires a row_major src1 to hold exactly {lanes} lanes (32 bytes) per row, but got "
                f"{S.shape_text(row_vec.type.shape)} valid {S.shape_text(vector_valid)}"
            )
    elif vector_width != 1:
        raise ValueError(f"{name} requires a column src1 to have exactly 1 valid column")
    return fresh_like(tile)


@op("tensor.row_expand_add", family="broadcast_row", converts_to="tile.row_expand_add", torch=_VALUES["add"])
def tensor_row_expand_add(tensor: Tensor, row_vec: Tensor) -> Type:
    """``wide + vector`` with a ``[M, 1]`` vector spread along the rows."""
    _check_row_add_dtype("tensor.row_expand_add", tensor, row_vec)
    _check_row_vector("tensor.row_expand_add", tensor, row_vec)
    return fresh_tensor(tensor.type.shape, tensor.type.dtype)


def _spread(target: Any, vector: Any) -> Any:
    return vector.expand_as(target).clone()


@op(
    "tile.row_expand", family="broadcast_row", memory=vec(2), backends=BOTH, no_alias_args=(1,), pto="pto.trowexpand",
    pto_operands=lambda call: [call.args[1]], torch=_spread,
)  # fmt: skip
def tile_row_expand(target: Tile, row_vec: Tile) -> Type:
    """The ``[M, 1]`` vector in every column; ``target`` gives the shape only."""
    _check_row_vector("tile.row_expand", target, row_vec)
    return _promoted_tile(target, row_vec)


@op("tensor.row_expand", family="broadcast_row", converts_to="tile.row_expand", torch=_spread)
def tensor_row_expand(target: Tensor, row_vec: Tensor) -> Type:
    """The ``[M, 1]`` vector in every column; ``target`` gives the shape only."""
    _check_row_vector("tensor.row_expand", target, row_vec)
    return _promoted_tensor(target, row_vec)


@op(
    "tile.col_expand", family="broadcast_col", memory=vec(2), backends=BOTH, no_alias_args=(1,), pto="pto.tcolexpand",
    pto_operands=lambda call: [call.args[1]], torch=_spread,
)  # fmt: skip
def tile_col_expand(target: Tile, col_vec: Tile) -> Type:
    """The ``[1, N]`` vector in every row; ``target`` gives the shape only."""
    _check_col_vector("tile.col_expand", target, col_vec)
    return _promoted_tile(target, col_vec)


@op("tensor.col_expand", family="broadcast_col", converts_to="tile.col_expand", torch=_spread)
def tensor_col_expand(tensor: Tensor, col_vec: Tensor) -> Type:
    """The ``[1, N]`` vector in every row; ``tensor`` gives the shape only."""
    _check_col_vector("tensor.col_expand", tensor, col_vec)
    return _promoted_tensor(tensor, col_vec)


def _constant(target: Any, scalar: Any) -> Any:
    return T.call("full_like")(target, int(scalar) if not target.dtype.is_floating_point else scalar)


@op(
    "tile.expands", family="broadcast_scalar", memory=vec(1), pto="pto.texpands",
    pto_operands=lambda call: [call.args[1]], torch=_constant,
)  # fmt: skip
def tile_expands(target: Tile, scalar: Element) -> Type:
    """A scalar in every cell; ``target`` gives the shape and type only."""
    return fresh_like(target)


@op("tensor.expands", family="broadcast_scalar", converts_to="tile.expands", torch=_constant)
def tensor_expands(target: Tensor, scalar: Element) -> Type:
    """A scalar in every cell; ``target`` gives the shape and type only."""
    return fresh_tensor(target.type.shape, target.type.dtype)


@op(
    "tensor.expand_clone", family="broadcast_scalar", converts_to="custom",
    torch=lambda src, target: src.expand_as(target).clone(),
)  # fmt: skip
def tensor_expand_clone(src: Tensor, target: Tensor) -> Type:
    """``src`` broadcast to the shape of ``target`` along axes of extent 1."""
    name = "tensor.expand_clone"
    for what, operand in (("input", src), ("target", target)):
        require(
            len(operand.type.shape) == 3,
            f"{name} requires {what} rank to be 3, but got {S.shape_text(operand.type.shape)}",
        )
    for axis, (have, want) in enumerate(zip(src.type.shape, target.type.shape)):
        if S.const(have) != 1 and S.provably_different(have, want):
            raise ValueError(
                f"{name} requires dimension {axis} of input to be 1 or {S.dim_text(want)}, got {S.dim_text(have)}"
            )
    return fresh_tensor(target.type.shape, src.type.dtype)
