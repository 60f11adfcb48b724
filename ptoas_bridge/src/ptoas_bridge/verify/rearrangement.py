"""Gather, scatter, sort, scalar access, quantisation."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, constant_of
from .checker import Checker, rule
from .helpers import check_dtypes, check_same_dtype, check_vec, key


@rule("tgather")
def _tgather(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    if "maskPattern" in op.attrs:
        if len(op.ins) > 1 or len(op.outs) > 1:
            c.fail(op, "expects the mask form to have only src and dst")
        if source.dtype.bytes != dst.dtype.bytes:
            c.fail(op, f"expects src and dst element types to have the same size, got {source.dtype} and {dst.dtype}")
        return
    if op.ins[0] is op.outs[0]:
        c.fail(op, "expects src and dst to be different tiles")
    if len(op.outs) > 1:
        _check_compare_gather(c, op, source, dst)
        return
    if len(op.ins) < 2:
        c.fail(op, "expects indices, a compare value, or maskPattern")
    indices = c.tile(op, op.ins[1], "indices")
    if key(indices.dtype) != "i32" and not (c.arch == "a5" and key(indices.dtype) == "i16"):
        c.fail(op, f"expects indices element type to be i32, got {indices.dtype}")
    if source.dtype is not dst.dtype:
        c.fail(op, f"expects src and dst to have the same element type, got {source.dtype} and {dst.dtype}")
    if len(op.ins) < 3 and c.arch == "a3":
        c.fail(op, "expects tmp in the index form on A2/A3")


def _check_compare_gather(c: Checker, op: Operation, source: T.TileType, dst: T.TileType) -> None:
    mode = op.attrs.get("cmpMode")
    integer = source.dtype.text == "i32" and mode is not None and mode.value == "eq"
    if source.dtype.text not in ("f16", "f32") and not integer:
        c.fail(op, f"expects {c.label} compare-form tgather src element type to be f16/f32, or i32 when cmpMode=eq")
    if key(dst.dtype) != "i32":
        c.fail(op, f"expects dst element type to be i32, got {dst.dtype}")


@rule("tscatter")
def _tscatter(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    if source.dtype.bytes != dst.dtype.bytes:
        c.fail(op, f"expects src and dst element types to have the same size, got {source.dtype} and {dst.dtype}")
    if "maskPattern" in op.attrs:
        if len(op.ins) > 1:
            c.fail(op, "expects either indices or maskPattern, not both")
        return
    if len(op.ins) < 2:
        c.fail(op, "expects indices or maskPattern")
    indices = c.tile(op, op.ins[1], "indices")
    if key(indices.dtype) not in ("i16", "i32"):
        c.fail(op, f"expects indices element type to be i16 or i32, got {indices.dtype}")


@rule("tgatherb")
def _tgatherb(c: Checker, op: Operation) -> None:
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    offsets = c.tile(op, op.ins[1], "offsets")
    if key(offsets.dtype) != "i32":
        c.fail(op, f"expects offsets element type to be i32, got {offsets.dtype}")


@rule("mgather")
def _mgather(c: Checker, op: Operation) -> None:
    dst = c.tile(op, op.outs[0], "dst")
    view = op.ins[0].type
    if not isinstance(view, T.PartitionViewType):
        c.fail(op, f"expects mem to be a partition_tensor_view, got '{view}'")
    if "coalesce" not in op.attrs:
        c.fail(op, "requires attribute 'coalesce'")
    if dst.dtype.bytes != view.elem.bytes:
        c.fail(op, f"expects mem and dst element types to have the same size, got {view.elem} and {dst.dtype}")
    indices = op.ins[1].type
    elem = indices.dtype if isinstance(indices, T.TileType) else getattr(indices, "elem", None)
    if elem is None or key(elem) != "i32":
        c.fail(op, f"expects indices element type to be i32, got '{indices}'")


@rule("mscatter")
def _mscatter(c: Checker, op: Operation) -> None:
    source = c.tile(op, op.ins[0], "src")
    view = op.outs[0].type
    if not isinstance(view, T.PartitionViewType):
        c.fail(op, f"expects mem to be a partition_tensor_view, got '{view}'")
    if source.dtype.bytes != view.elem.bytes:
        c.fail(op, f"expects src and mem element types to have the same size, got {source.dtype} and {view.elem}")
    indices = c.tile(op, op.ins[1], "indices")
    if key(indices.dtype) != "i32":
        c.fail(op, f"expects indices element type to be i32, got {indices.dtype}")
    modes = [k for k in ("scatterAtomicOp", "scatterOob", "scatterConflict") if k in op.attrs]
    if modes and "coalesce" not in op.attrs:
        c.fail(op, f"requires attribute 'coalesce' when {modes[0]} is given")
    atomic = op.attrs["scatterAtomicOp"].value if "scatterAtomicOp" in op.attrs else "none"
    allowed = {"add": ("i32", "f16", "f32"), "max": ("i32", "f32"), "min": ("i32", "f32")}.get(atomic)
    if allowed is not None and key(source.dtype) not in allowed:
        c.fail(op, f"expects element type of atomic {atomic} to be {'/'.join(allowed)}, got {source.dtype}")


@rule("tsort32")
def _tsort32(c: Checker, op: Operation) -> None:
    tiles = [("src", op.ins[0]), ("dst", op.outs[0])]
    for role, value in tiles:
        c.tile(op, value, role)
    check_vec(c, op, tiles)
    check_same_dtype(c, op, tiles)
    check_dtypes(c, op, tiles, op.spec.element_types(c.arch))
    index = c.tile(op, op.ins[1], "idx")
    if key(index.dtype) != "i32":
        c.fail(op, f"expects idx element type to be ui32, got {index.dtype}")


@rule("tmrgsort")
def _tmrgsort(c: Checker, op: Operation) -> None:
    if len(op.outs) == 1:
        if len(op.ins) != 2:
            c.fail(op, f"expects src and block length, got {len(op.ins)} operands")
        source = c.tile(op, op.ins[0], "src")
        if source.rows != 1:
            c.fail(op, f"expects src rows == 1, got {source.rows}")
        if source.dtype.text not in ("f16", "f32"):
            c.fail(op, f"expects src element type to be f16/f32, got {source.dtype}")
        length = constant_of(op.ins[1])
        if length is not None and (length <= 0 or length % 64):
            c.fail(op, f"expects blockLen to be a positive multiple of 64, got {length}")
        return
    if not 3 <= len(op.ins) <= 5:
        c.fail(op, f"expects 2 to 4 lists and tmp, got {len(op.ins)} operands")
    for number, value in enumerate(op.ins):
        t = c.tile(op, value, f"src{number}" if number < len(op.ins) - 1 else "tmp")
        if t.rows != 1:
            c.fail(op, f"expects src rows == 1, got {t.rows}")
    tmp, dst = op.ins[-1].type, c.tile(op, op.outs[0], "dst")
    if tmp.cols < dst.cols:
        c.fail(op, f"format2 expects tmp.cols >= dst.cols, got {tmp.cols} and {dst.cols}")


@rule("tgetval")
def _tgetval(c: Checker, op: Operation) -> None:
    t = c.tile(op, op.ins[0], "src")
    check_vec(c, op, [("src", op.ins[0])])
    if op.result.type is not t.dtype:
        c.fail(op, f"expects the result type to be the element type {t.dtype}, got {op.result.type}")


@rule("tsetval")
def _tsetval(c: Checker, op: Operation) -> None:
    t = c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("dst", op.outs[0])])
    if op.ins[1].type is not t.dtype:
        c.fail(op, f"expects the value type to be the element type {t.dtype}, got {op.ins[1].type}")


@rule("thistogram")
def _thistogram(c: Checker, op: Operation) -> None:
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])


@rule("tquant")
def _tquant(c: Checker, op: Operation) -> None:
    kind = op.attrs.get("quant_type")
    if kind is None:
        c.fail(op, "requires attribute 'quant_type'")
    dst = c.tile(op, op.outs[0], "dst").dtype
    offset = len(op.ins) > 2
    if kind.value == "INT8_SYM":
        if offset:
            c.fail(op, "INT8_SYM quantization must not have an offset operand")
        if dst.text not in ("i8", "si8"):
            c.fail(op, f"expects dst element type i8 for INT8_SYM quantization, got {dst}")
    elif kind.value == "INT8_ASYM":
        if not offset:
            c.fail(op, "INT8_ASYM quantization requires an offset operand")
        if dst.text != "ui8":
            c.fail(op, f"expects dst element type ui8 for INT8_ASYM quantization, got {dst}")
