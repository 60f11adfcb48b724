"""Elementwise, compare, select and convert: element types, shapes, layouts, scratch tiles."""

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
    names,
    scratch_of,
    tiles_of,
)

_UNARY = "texp tlog tsqrt trecip trsqrt tabs tneg trelu tnot"
_BINARY = "tadd tsub tmul tdiv tmax tmin tfmod trem tand tor txor tshl tshr tprelu taddc tsubc taddsc tsubsc taddrelu"
_SCALAR = "tadds tsubs tmuls tmaxs tmins tands tors txors tshls tshrs tlrelu tfmods trems tdivs"
_BITWISE = "tand tor txor tands tors txors"
_PARTIAL = "tpartadd tpartmul tpartmax tpartmin"


@rule(*_UNARY.split(), *_BINARY.split(), *_SCALAR.split())
def _elementwise(c: Checker, op: Operation) -> None:
    tiles = tiles_of(op)
    if len(tiles) < 2:
        c.fail(op, "expects tile operands")
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    check_plain_rows(c, op, tiles)
    for source in tiles[:-1]:
        check_same_valid(c, op, source, tiles[-1])


@rule(*_SCALAR.split(), "taddsc", "tsubsc", "taxpy")
def _scalar_operand(c: Checker, op: Operation) -> None:
    scalars = [v for v in op.ins if not isinstance(v.type, T.TileType)]
    if len(scalars) != 1:
        c.fail(op, f"expects one scalar operand, got {len(scalars)}")
    scalar, dtype = scalars[0].type, tiles_of(op)[0][1].type.dtype
    if not isinstance(scalar, T.ScalarType):
        c.fail(op, f"expects a scalar operand, got '{scalar}'")
    name = op.name.removeprefix("pto.")
    if name == "tlrelu":
        matches = scalar.text == "f32" or scalar is dtype
    else:
        matches = key(scalar) == key(dtype)
    if not matches:
        if name in ("tands", "tors", "txors") and c.arch == "a3":
            c.fail(op, f"expects A2/A3 {name} src, scalar, and dst element type to be i8/i16")
        c.fail(op, f"expects the scalar type to match the element type {dtype}, got {scalar}")


@rule("tands", "tors", "txors")
def _bitwise_scalar(c: Checker, op: Operation) -> None:
    name = op.name.removeprefix("pto.")
    if any(src is dst for src in op.ins for dst in op.outs):
        c.fail(op, f"expects src and dst of {name} to be different tiles")


@rule(*_PARTIAL.split())
def _partial(c: Checker, op: Operation) -> None:
    tiles = tiles_of(op)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    check_plain_rows(c, op, tiles)
    first, second, dst = (value.type for _, value in tiles)
    if any(t.dynamic for t in (first, second, dst)):
        return
    wanted = (dst.v_row, dst.v_col)
    if wanted not in ((first.v_row, first.v_col), (second.v_row, second.v_col)):
        c.fail(op, "expects at least one source to have the valid_shape of dst")
    for role, t in (("src0", first), ("src1", second)):
        if t.v_row > dst.v_row or t.v_col > dst.v_col:
            c.fail(op, f"expects {role} valid_shape not to exceed dst valid_shape")


@rule("taxpy")
def _taxpy(c: Checker, op: Operation) -> None:
    source, dst = op.ins[0], op.outs[0]
    check_vec(c, op, [("src", source), ("dst", dst)])
    check_dtypes(c, op, [("src", source), ("dst", dst)], op.spec.element_types(c.arch))
    widening = (source.type.dtype.text, dst.type.dtype.text) == ("f16", "f32")
    if source.type.dtype is not dst.type.dtype and not widening:
        c.fail(op, "expects src and dst to have the same element type, or f16 into f32")
    check_same_valid(c, op, ("src", source), ("dst", dst))


@rule("texpands")
def _texpands(c: Checker, op: Operation) -> None:
    dst = c.tile(op, op.outs[0], "dst")
    scalar = op.ins[0].type
    if dst.loc not in ("vec", "mat"):
        c.fail(op, f"expects dst to use loc=vec or loc=mat, got loc={dst.loc}")
    if not isinstance(scalar, T.ScalarType) or key(scalar) != key(dst.dtype):
        c.fail(op, f"expects the scalar type to match the element type {dst.dtype}, got {scalar}")


@rule("tconcat")
def _tconcat(c: Checker, op: Operation) -> None:
    tiles = tiles_of(op)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    first, second, dst = (value.type for _, value in tiles)
    if T.DYNAMIC not in (first.v_col, second.v_col, dst.v_col) and first.v_col + second.v_col != dst.v_col:
        c.fail(op, f"expects dst valid cols to be {first.v_col + second.v_col}, got {dst.v_col}")


# --- scratch tiles of A2/A3 --------------------------------------------------------------------------------------


@rule("trem", "trems")
def _rem_scratch(c: Checker, op: Operation) -> None:
    tmp = scratch_of(op)
    if c.arch != "a3" or tmp is None or not isinstance(tmp.type, T.TileType):
        return
    rows, cols = c.required_valid(tmp)
    _, dst_cols = c.required_valid(op.outs[0])
    least = 2 if op.name == "pto.trem" else 1
    if 0 <= rows < least:
        c.fail(op, f"expects A2/A3 tmp valid_shape[0] to be at least {least}, got {rows}")
    if cols >= 0 and dst_cols >= 0 and cols < dst_cols:
        c.fail(op, f"expects A2/A3 tmp valid_shape[1] to be at least {dst_cols}, got {cols}")


@rule("tprelu")
def _prelu_scratch(c: Checker, op: Operation) -> None:
    tmp = scratch_of(op)
    if c.arch != "a3":
        return
    if any(src is op.outs[0] for src in op.ins):
        c.fail(op, "expects A2/A3 tprelu src and dst to be different tiles")
    if tmp is None:
        return
    t = c.tile(op, tmp, "tmp")
    if t.dtype.bytes != 1:
        c.fail(op, f"expects A2/A3 tprelu tmp element type to be 8-bit, got {t.dtype}")
    dst_rows, dst_cols = c.required_valid(op.outs[0])
    _, cols = c.required_valid(tmp)
    if dst_rows >= 0 and t.rows < dst_rows + 1:
        c.fail(op, f"expects A2/A3 tprelu tmp rows to be at least {dst_rows + 1}, got {t.rows}")
    if dst_cols >= 0 and 0 <= cols < -(-dst_cols // 8):
        c.fail(op, f"expects A2/A3 tprelu tmp valid cols to be at least {-(-dst_cols // 8)}, got {cols}")


@rule("trecip")
def _recip_alias(c: Checker, op: Operation) -> None:
    if c.arch == "a3" and op.ins[0] is op.outs[0]:
        c.fail(op, "expects A2/A3 trecip src and dst to be different tiles")


@rule("txor", "txors")
def _xor_scratch(c: Checker, op: Operation) -> None:
    tmp = scratch_of(op)
    if c.arch != "a3" or tmp is None or not isinstance(tmp.type, T.TileType):
        return
    if tmp.type.dtype is not op.outs[0].type.dtype:
        c.fail(op, f"expects A2/A3 tmp element type to be {op.outs[0].type.dtype}, got {tmp.type.dtype}")
    check_plain_rows(c, op, [("tmp", tmp)])
    if op.name == "pto.txor":
        check_same_valid(c, op, ("tmp", tmp), ("dst", op.outs[0]))


@rule("trsqrt")
def _rsqrt_scratch(c: Checker, op: Operation) -> None:
    tmp = scratch_of(op)
    precision = op.attrs.get("precisionType")
    if precision is not None and precision.value == "high_precision" and tmp is None:
        c.fail(op, "expects tmp when precisionType is high_precision")
    if tmp is not None and c.tile(op, tmp, "tmp").bytes < 32:
        c.fail(op, f"expects tmp to hold at least 32 bytes, got {tmp.type.bytes}")


# --- compare, select, convert ------------------------------------------------------------------------------------


@rule("tcmp", "tcmps")
def _compare(c: Checker, op: Operation) -> None:
    tiles = tiles_of(op)
    sources, mask = tiles[:-1], tiles[-1]
    check_vec(c, op, tiles)
    check_same_dtype(c, op, sources)
    check_dtypes(c, op, sources, op.spec.element_types(c.arch))
    if key(mask[1].type.dtype) not in ("i8", "i32"):
        c.fail(op, f"expects dst element type to be i8 or ui8, got {mask[1].type.dtype}")
    first = sources[0][1].type
    if c.arch == "a5":
        for _, value in sources[1:]:
            t = value.type
            if (t.rows, t.cols) != (first.rows, first.cols):
                c.fail(op, f"expects {names(tiles)} to have the same shape")
        # Release 0.60 demands the shape of the sources for the mask too, although only its packed bits are written;
        # a narrower mask that holds them is what the compiler allocates, so it is accepted here.
        packed = mask[1].type
        bits = packed.cols * (8 if key(packed.dtype) == "i8" else 32)
        if packed.rows != first.rows or bits < first.cols:
            c.fail(op, f"expects {names(tiles)} to have the same shape")
    rows = mask[1].type.v_row
    if T.DYNAMIC not in (rows, first.v_row) and rows != first.v_row:
        c.fail(op, f"expects dst valid_shape[0] to be {first.v_row}, got {rows}")


@rule("tsel")
def _tsel(c: Checker, op: Operation) -> None:
    mask, first, second = op.ins[:3]
    dst = op.outs[0]
    for role, value in (("mask", mask), ("src0", first), ("src1", second), ("dst", dst)):
        c.tile(op, value, role)
    data = [("src0", first), ("src1", second), ("dst", dst)]
    check_vec(c, op, [("mask", mask), *data])
    check_same_dtype(c, op, data)
    check_dtypes(c, op, data, op.spec.element_types(c.arch))
    tmp = scratch_of(op)
    if tmp is not None and c.arch == "a3":
        t = c.tile(op, tmp, "tmp")
        if t.dtype.bytes != 4:
            c.fail(op, f"expects A2/A3 tsel tmp element type to be 4 bytes wide, got {t.dtype}")
        if t.bytes < 16:
            c.fail(op, f"expects A2/A3 tsel tmp to hold at least 16 bytes, got {t.bytes}")


@rule("tsels")
def _tsels(c: Checker, op: Operation) -> None:
    source, dst = op.ins[1], op.outs[0]
    data = [("src", source), ("dst", dst)]
    for role, value in data:
        c.tile(op, value, role)
    check_vec(c, op, data)
    check_same_dtype(c, op, data)
    check_dtypes(c, op, data, op.spec.element_types(c.arch))
    tmp = scratch_of(op)
    if tmp is not None and c.arch == "a3" and c.tile(op, tmp, "tmp").dtype is not dst.type.dtype:
        c.fail(op, f"expects A2/A3 tsels tmp element type to be {dst.type.dtype}, got {tmp.type.dtype}")


_CONVERSIONS = {
    "a3": {
        "f32": "f16 bf16 f32 i16 i32 i64", "f16": "f32 i32 i16 i8 ui8", "bf16": "f32 i32", "i16": "f16 f32",
        "i32": "f32 i16 i64 f16", "i64": "f32 i32", "ui8": "f16", "i8": "f16",
    },
    "a5": {
        "f32": "f16 bf16 f32 i16 i32 i64 f8E4M3FN f8E5M2 hif8", "f16": "f32 i32 i16 i8 ui8 hif8",
        "bf16": "f32 i32 f16 f4E1M2x2 f4E2M1x2", "i16": "f16 f32 ui8 ui32 i32",
        "i32": "f32 i16 ui16 i64 ui8", "i64": "f32 i32", "ui8": "f16 ui16", "i8": "f16 i16 i32",
        "ui32": "ui8 ui16 i16", "f8E4M3FN": "f32", "f8E5M2": "f32", "hif8": "f32",
        "f4E1M2x2": "bf16", "f4E2M1x2": "bf16",
    },
}  # fmt: skip


@rule("tcvt")
def _tcvt(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    if (source.rows, source.cols) != (dst.rows, dst.cols):
        c.fail(op, f"expects src and dst to have compatible shapes, got {source.rows}x{source.cols} and "
               f"{dst.rows}x{dst.cols}")  # fmt: skip
    check_same_valid(c, op, ("src", op.ins[0]), ("dst", op.outs[0]))
    table = _CONVERSIONS[c.arch]
    targets = table.get(source.dtype.key, "").split()
    if dst.dtype.key not in targets:
        reachable = ", ".join(targets) or "nothing"
        c.fail(op, f"expects a supported {c.label} tcvt element type pair, got {source.dtype} to {dst.dtype}",
               f"{source.dtype} converts to {reachable}")  # fmt: skip


@rule("tci")
def _tci(c: Checker, op: Operation) -> None:
    dst = c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("dst", op.outs[0])])
    if key(dst.dtype) not in ("i16", "i32"):
        c.fail(op, f"expects dst element type to be i16/i32, got {dst.dtype}")
    if dst.rows != 1:
        c.fail(op, f"expects dst rows == 1, got {dst.rows}")


@rule("ttri")
def _ttri(c: Checker, op: Operation) -> None:
    check_vec(c, op, [("dst", op.outs[0])])
    if op.attrs.get("upperOrLower", 0) not in (0, 1):
        c.fail(op, "expects upperOrLower to be 0 (lower) or 1 (upper)")
