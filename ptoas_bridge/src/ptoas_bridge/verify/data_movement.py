"""Moves between on-chip memories: location pairs, windows, padding, transposition."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, constant_of
from .checker import Checker, rule
from .helpers import check_vec, same_extent

_PAIRS = {
    "a3": {("mat", "left"), ("mat", "right"), ("mat", "bias"), ("mat", "scaling"), ("vec", "vec"), ("acc", "mat"),
           ("acc", "vec")},
    "a5": {("mat", "left"), ("mat", "right"), ("mat", "bias"), ("mat", "scaling"), ("vec", "vec"), ("acc", "mat"),
           ("acc", "vec"), ("vec", "mat")},
}  # fmt: skip
_INSERT_PAIRS = {
    "a3": {("acc", "mat"), ("vec", "vec"), ("vec", "mat")},
    "a5": {("acc", "mat"), ("acc", "vec"), ("vec", "mat"), ("vec", "vec")},
}


def _pairs_text(pairs: set[tuple[str, str]]) -> str:
    words = [f"{a}->{b}" for a, b in sorted(pairs)]
    return ", ".join(words[:-1]) + f", or {words[-1]}"


def _check_modes(c: Checker, op: Operation, source: T.TileType, dst: T.TileType) -> None:
    """Fixpipe options make sense only when the accumulator is read."""
    if "accToVecMode" in op.attrs and (source.loc, dst.loc) != ("acc", "vec"):
        c.fail(op, "expects accToVecMode only for an acc->vec move")
    if source.loc == "acc":
        return
    relu = op.attrs.get("reluPreMode")
    if relu is not None and relu.value != "no_relu":
        c.fail(op, "expects reluPreMode only with an acc src")
    if "fp" in op.named or "pre_quant" in op.named:
        c.fail(op, "expects fp and preQuantScalar only with an acc src")


@rule("tmov")
def _tmov(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    pair = (source.loc, dst.loc)
    if pair not in _PAIRS[c.arch]:
        c.fail(
            op, f"expects {c.label} tmov to use a supported src/dst loc pair: {_pairs_text(_PAIRS[c.arch])}",
            f"got {pair[0]}->{pair[1]}",
        )  # fmt: skip
    resizing = "accToVecMode" in op.attrs or pair == ("mat", "scaling")
    if (source.rows, source.cols) != (dst.rows, dst.cols) and not resizing:
        c.fail(op, f"expects src and dst to have the same shape, got {source.rows}x{source.cols} and "
               f"{dst.rows}x{dst.cols}")  # fmt: skip
    if pair == ("vec", "vec") and source.dtype.bytes != dst.dtype.bytes:
        c.fail(op, f"expects src and dst element types to have the same size, got {source.dtype} and {dst.dtype}",
               "use pto.tcvt to convert")  # fmt: skip
    _check_modes(c, op, source, dst)


def _check_window(c: Checker, op: Operation, small: T.TileType, large: T.TileType, names: tuple[str, str]) -> None:
    """`small` at (row, col) lies inside `large`."""
    for index, extent, bound, word in (
        (op.ins[1], small.rows, large.rows, ("indexRow", "rows")),
        (op.ins[2], small.cols, large.cols, ("indexCol", "cols")),
    ):
        constant = constant_of(index)
        if constant is not None and constant < 0:
            c.fail(op, f"expects {word[0]} to be non-negative, got {constant}")
        if extent > bound or (constant is not None and constant + extent > bound):
            start = "?" if constant is None else constant
            c.fail(
                op, f"expects {word[0]} + {names[0]}.{word[1]} <= {names[1]}.{word[1]}, "
                f"got {start} + {extent} > {bound}",
            )  # fmt: skip


@rule("textract")
def _textract(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    pair = (source.loc, dst.loc)
    if pair not in _PAIRS[c.arch]:
        c.fail(
            op, f"expects {c.label} textract to use a supported src/dst loc pair: {_pairs_text(_PAIRS[c.arch])}",
            f"got {pair[0]}->{pair[1]}",
        )  # fmt: skip
    _check_window(c, op, dst, source, ("dst", "src"))
    if source.loc != "acc" and source.dtype is not dst.dtype:
        c.fail(op, f"expects src and dst to have the same element type, got {source.dtype} and {dst.dtype}")
    if c.arch == "a5" and pair == ("vec", "vec"):
        for t in (source, dst):
            if t.boxed or t.blayout != "row_major":
                c.fail(
                    op, "expects A5 vec->vec textract src/dst to use ND layout (blayout=row_major, slayout=none_box)"
                )
    _check_modes(c, op, source, dst)


@rule("tinsert")
def _tinsert(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    pair = (source.loc, dst.loc)
    if pair not in _INSERT_PAIRS[c.arch]:
        c.fail(
            op, f"expects {c.label} tinsert to use a supported src/dst loc pair: {_pairs_text(_INSERT_PAIRS[c.arch])}",
            f"got {pair[0]}->{pair[1]}",
        )  # fmt: skip
    if c.arch == "a3" and pair == ("acc", "mat"):
        if source.dtype.text != "f32" or dst.dtype.text not in ("f16", "bf16"):
            c.fail(op, f"expects A2/A3 tinsert element types to be src=f32, dst=f16/bf16, "
                   f"got src={source.dtype}, dst={dst.dtype}")  # fmt: skip
    elif source.loc != "acc" and source.dtype is not dst.dtype:
        c.fail(op, f"expects src and dst to have the same element type, got {source.dtype} and {dst.dtype}")
    _check_window(c, op, source, dst, ("src", "dst"))
    _check_modes(c, op, source, dst)


@rule("ttrans")
def _ttrans(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    check_vec(c, op, [("src", op.ins[0]), ("dst", op.outs[0])])
    if op.ins[0] is op.outs[0]:
        c.fail(op, "expects src and dst to be different tiles")
    if source.dtype.bytes != dst.dtype.bytes:
        c.fail(op, f"expects src and dst element types to have the same size, got {source.dtype} and {dst.dtype}")
    if not (same_extent(source.v_row, dst.v_col) and same_extent(source.v_col, dst.v_row)):
        c.fail(op, f"expects dst valid_shape to be the transposed src valid_shape [{source.v_col}, {source.v_row}], "
               f"got [{dst.v_row}, {dst.v_col}]")  # fmt: skip


@rule("tfillpad", "tfillpad_expand", "tfillpad_inplace")
def _tfillpad(c: Checker, op: Operation) -> None:
    source, dst = c.tile(op, op.ins[0], "src"), c.tile(op, op.outs[0], "dst")
    if "mode" in op.attrs:
        c.fail(op, "does not accept 'mode'", "the mode follows from shapes and addresses")
    if dst.pad == 0 and "padValue" not in op.attrs:
        c.fail(op, "expects dst PadVal != Null for tfillpad", "give the destination tile type a pad of 1, 2 or 3")
    if source.dtype.bytes != dst.dtype.bytes or source.dtype.bytes not in (1, 2, 4):
        c.fail(op, f"expects src and dst element sizes to be equal and 1, 2, or 4 bytes, "
               f"got {source.dtype} and {dst.dtype}")  # fmt: skip
    if dst.rows < source.rows or dst.cols < source.cols:
        c.fail(op, f"expects dst dims to be at least the src dims, got {dst.rows}x{dst.cols} for "
               f"{source.rows}x{source.cols}")  # fmt: skip
    if dst.loc == "mat" and (source.v_row, source.v_col, source.pad) != (dst.v_row, dst.v_col, dst.pad):
        c.fail(op, "expects mat src and dst to have identical valid_shape and pad")
