"""Reductions and broadcasts: shapes of vectors, scratch sizes of A2/A3."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation
from .checker import Checker, rule
from .helpers import (
    check_dtypes,
    check_plain_rows,
    check_same_dtype,
    check_same_valid,
    check_vec,
    key,
    same_extent,
    scratch_of,
    tiles_of,
)

_KINDS = ["add", "sub", "mul", "div", "max", "min", "expdif"]


def _source_not_empty(c: Checker, op: Operation, dims: tuple[int, ...]) -> None:
    t = op.ins[0].type
    for dim in dims:
        if (t.v_row, t.v_col)[dim] == 0:
            c.fail(op, f"expects src valid_shape[{dim}] to be non-zero")


@rule("trowsum", "trowmax", "trowmin", "trowprod")
def _row_reduction(c: Checker, op: Operation) -> None:
    tiles = [("src", op.ins[0]), ("dst", op.outs[0])]
    for role, value in tiles:
        c.tile(op, value, role)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    _row_shapes(c, op)


@rule("trowargmax", "trowargmin")
def _row_index(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    check_dtypes(c, op, [("src", op.ins[0])], op.spec.element_types(c.arch))
    if key(dst.dtype) != "i32":
        c.fail(op, f"expects dst element type to be i32 or ui32, got {dst.dtype}")
    _row_shapes(c, op)
    tmp = scratch_of(op)
    if tmp is not None and c.arch == "a3" and isinstance(tmp.type, T.TileType):
        _check_index_scratch(c, op, tmp, source)


def _row_shapes(c: Checker, op: Operation) -> None:
    check_plain_rows(c, op, [("src", op.ins[0])])
    _source_not_empty(c, op, (0, 1))
    dst = op.outs[0].type
    if dst.boxed:
        c.fail(op, "expects dst to use slayout=none_box")
    if dst.v_col not in (1, T.DYNAMIC):
        c.fail(op, f"expects dst valid_shape[1] to be 1, got {dst.v_col}")
    if dst.blayout == "col_major" and dst.cols != 1:
        c.fail(op, f"expects a col_major dst to have one column, got {dst.cols}")
    _, cols = c.required_valid(op.outs[0])
    if cols not in (1, 0, T.DYNAMIC):
        c.fail(op, f"expects dst valid_shape[1] to be 1, got {cols}")
    if not same_extent(op.ins[0].type.v_row, dst.v_row):
        c.fail(op, f"expects src and dst to have the same valid_shape[0], got {op.ins[0].type.v_row} and {dst.v_row}")


def index_scratch_width(cols: int, dtype: T.ScalarType) -> int:
    """Least valid columns of the scratch of an index reduction over `cols` columns (wide rows)."""
    per_repeat = 2048 // dtype.bits
    per_block = 256 // dtype.bits
    repeats = -(-cols // per_repeat)
    return (-(-2 * repeats // per_block) + -(-repeats // per_block)) * per_block


def _check_index_scratch(c: Checker, op: Operation, tmp, source: T.TileType) -> None:
    rows, cols = c.required_valid(tmp)
    src_rows, src_cols = c.required_valid(op.ins[0])
    if min(rows, cols, src_rows, src_cols) < 0 or (rows, cols) == (src_rows, src_cols):
        return
    if src_cols <= 2048 // source.dtype.bits:
        column = tmp.type.blayout == "col_major" and rows >= 2 * src_rows
        if not column and not (rows >= src_rows and cols >= 2):
            c.fail(op, f"expects A2/A3 tmp valid_shape[1] to be at least 2 for src valid_shape[1] = {src_cols}")
        return
    least = index_scratch_width(src_cols, source.dtype)
    if cols < least:
        c.fail(op, f"expects A2/A3 tmp valid_shape[1] to be at least {least} for src valid_shape[1] = {src_cols}")


@rule("tcolargmax", "tcolargmin")
def _col_index(c: Checker, op: Operation) -> None:
    dst = c.tile(op, op.outs[0], "dst")
    tiles = [("src", op.ins[0]), ("dst", op.outs[0])]
    check_vec(c, op, tiles)
    check_dtypes(c, op, tiles[:1], op.spec.element_types(c.arch))
    if key(dst.dtype) != "i32":
        c.fail(op, f"expects dst element type to be i32 or ui32, got {dst.dtype}")
    _col_shapes(c, op)


@rule("tcolsum", "tcolmax", "tcolmin", "tcolprod")
def _col_reduction(c: Checker, op: Operation) -> None:
    tiles = [("src", op.ins[0]), ("dst", op.outs[0])]
    for role, value in tiles:
        c.tile(op, value, role)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    _col_shapes(c, op)


def _col_shapes(c: Checker, op: Operation) -> None:
    check_plain_rows(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    _source_not_empty(c, op, (0, 1))
    dst = op.outs[0].type
    if dst.v_row not in (1, T.DYNAMIC):
        c.fail(op, f"expects dst valid_shape[0] to be 1, got {dst.v_row}")
    if not same_extent(op.ins[0].type.v_col, dst.v_col):
        c.fail(op, f"expects src and dst to have the same valid_shape[1], got {op.ins[0].type.v_col} and {dst.v_col}")


@rule("tcolsum")
def _colsum_scratch(c: Checker, op: Operation) -> None:
    tmp = scratch_of(op)
    binary = op.attrs.get("isBinary", False)
    if (tmp is None) != ("isBinary" not in op.attrs):
        c.fail(op, "expects tmp and isBinary to appear together")
    if tmp is None:
        return
    t = c.tile(op, tmp, "tmp")
    _, cols = c.required_valid(op.ins[0])
    if binary and cols >= 0 and t.cols < cols:
        c.fail(
            op, f"expects tmp shape[1] to be at least src valid_shape[1] when isBinary is true; got {t.cols} vs {cols}"
        )
    if t.dtype is not op.ins[0].type.dtype:
        c.fail(op, f"expects tmp element type to be {op.ins[0].type.dtype}, got {t.dtype}")


# --- broadcasts --------------------------------------------------------------------------------------------------


@rule("trowexpand", "tcolexpand")
def _expand(c: Checker, op: Operation) -> None:
    tiles = [("src", op.ins[0]), ("dst", op.outs[0])]
    for role, value in tiles:
        c.tile(op, value, role)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    if op.name == "pto.trowexpand":
        _source_not_empty(c, op, (0, 1))
        if not same_extent(op.ins[0].type.v_row, op.outs[0].type.v_row):
            c.fail(op, "expects src and dst to have the same valid_shape[0]")
    elif not same_extent(op.ins[0].type.v_col, op.outs[0].type.v_col):
        c.fail(op, "expects src and dst to have the same valid_shape[1]")


@rule(*(f"trowexpand{kind}" for kind in _KINDS))
def _row_broadcast(c: Checker, op: Operation) -> None:
    tiles = [("src0", op.ins[0]), ("src1", op.ins[1]), ("dst", op.outs[0])]
    for role, value in tiles:
        c.tile(op, value, role)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    kind = op.name.removeprefix("pto.trowexpand")
    full, vector = tiles[0], tiles[1]
    if kind in ("max", "min", "expdif") and _is_row_vector(full[1].type) and not _is_row_vector(vector[1].type):
        full, vector = vector, full
    check_same_valid(c, op, full, tiles[2])
    if not _is_row_vector(vector[1].type):
        c.fail(
            op, f"expects {vector[0]} to be a column vector: col_major with 1 valid column, or row_major with "
            f"{32 // vector[1].type.dtype.bytes} valid columns",
        )  # fmt: skip
    precision = op.attrs.get("precisionType")
    if precision is not None and precision.value == "high_precision" and scratch_of(op) is None:
        c.fail(op, "expects tmp when precisionType is high_precision")


def _is_row_vector(t: T.TileType) -> bool:
    if t.boxed:
        return False
    if t.blayout == "col_major":
        return t.v_col in (1, T.DYNAMIC)
    return t.v_col in (32 // t.dtype.bytes, 1, T.DYNAMIC)


@rule(*(f"tcolexpand{kind}" for kind in _KINDS))
def _col_broadcast(c: Checker, op: Operation) -> None:
    tiles = tiles_of(op)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    check_plain_rows(c, op, tiles)
    check_same_valid(c, op, tiles[0], tiles[2])
    if not same_extent(tiles[1][1].type.v_col, tiles[2][1].type.v_col):
        c.fail(op, "expects src1 and dst to have the same valid_shape[1]")
