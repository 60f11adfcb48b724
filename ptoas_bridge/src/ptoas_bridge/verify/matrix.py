"""Matrix products: locations, element-type triples, shapes."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, Value
from .checker import Checker, rule
from .helpers import key

_TRIPLES = {
    "a3": (("i32", "i8", "i8"), ("f32", "f16", "f16"), ("f32", "f32", "f32"), ("f32", "bf16", "bf16")),
    "a5": (
        ("i32", "i8", "i8"), ("f32", "f16", "f16"), ("f32", "f32", "f32"), ("f32", "bf16", "bf16"),
        ("f32", "f8E4M3FN", "f8E4M3FN"), ("f32", "f8E4M3FN", "f8E5M2"), ("f32", "f8E5M2", "f8E4M3FN"),
        ("f32", "f8E5M2", "f8E5M2"), ("f32", "hif8", "hif8"),
    ),
}  # fmt: skip
LIMIT = 4095


def _operand(c: Checker, op: Operation, name: str) -> Value:
    names = [role.name for role in op.spec.ins]
    return op.ins[names.index(name)]


def _check_location(c: Checker, op: Operation, role: str, value: Value, loc: str) -> T.TileType:
    t = c.tile(op, value, role)
    if t.loc != loc:
        c.fail(op, f"expects {role} to use loc={loc}, got loc={t.loc}")
    return t


def _product(c: Checker, op: Operation) -> None:
    scaled = ".mx" in op.name
    lhs = _check_location(c, op, "lhs", _operand(c, op, "lhs"), "left")
    rhs = _check_location(c, op, "rhs", _operand(c, op, "rhs"), "right")
    dst = _check_location(c, op, "dst", op.outs[0], "acc")
    if not scaled:
        triple = (key(dst.dtype), key(lhs.dtype), key(rhs.dtype))
        if triple not in _TRIPLES[c.arch]:
            wanted = " ".join(f"({', '.join(t)})" for t in _TRIPLES[c.arch])
            got = f"({dst.dtype}, {lhs.dtype}, {rhs.dtype})"
            c.fail(op, f"expects (dst, lhs, rhs) element types to match one of {wanted}, got {got}")
    for first, second, left, right in (
        ("lhs.rows", "dst.rows", lhs.rows, dst.rows),
        ("lhs.cols", "rhs.rows", lhs.cols, rhs.rows),
        ("rhs.cols", "dst.cols", rhs.cols, dst.cols),
    ):
        if left != right:
            c.fail(op, f"expects {first} to equal {second}, got {left} and {right}")
    m, k = c.required_valid(_operand(c, op, "lhs"))
    _, n = c.required_valid(_operand(c, op, "rhs"))
    for name, extent in (("m", m), ("k", k), ("n", n)):
        if extent > LIMIT:
            c.fail(op, f"expects {name} to be in [1, {LIMIT}], got {extent}")
    if op.name.endswith(".acc"):
        acc = _check_location(c, op, "acc_in", op.ins[0], "acc")
        if acc.dtype is not dst.dtype:
            c.fail(op, f"expects acc_in element type to be {dst.dtype}, got {acc.dtype}")
    if op.name.endswith(".bias"):
        bias = _check_location(c, op, "bias", _operand(c, op, "bias"), "bias")
        if bias.rows != 1:
            c.fail(op, f"expects bias rows to be 1, got {bias.rows}")
        if bias.dtype is not dst.dtype:
            c.fail(op, f"expects bias element type to be {dst.dtype}, got {bias.dtype}")
    if scaled:
        for role in ("lhs_scale", "rhs_scale"):
            _check_location(c, op, role, _operand(c, op, role), "scaling")


@rule(*("tmatmul" + suffix for suffix in ("", ".acc", ".bias", ".mx", ".mx.acc", ".mx.bias")))
def _tmatmul(c: Checker, op: Operation) -> None:
    _product(c, op)


@rule(*("tgemv" + suffix for suffix in ("", ".acc", ".bias", ".mx", ".mx.acc", ".mx.bias")))
def _tgemv(c: Checker, op: Operation) -> None:
    rows = op.outs[0].type.v_row if isinstance(op.outs[0].type, T.TileType) else 1
    if rows not in (1, T.DYNAMIC):
        c.fail(op, f"expects dst valid_shape[0] to be 1 for tgemv, got {rows}")
    _product(c, op)


@rule("tget_scale_addr")
def _tget_scale_addr(c: Checker, op: Operation) -> None:
    dst = c.tile(op, op.outs[0], "dst")
    if dst.loc != "scaling":
        c.fail(op, "expects dst to be in the scaling address space")
