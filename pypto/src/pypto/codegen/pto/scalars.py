"""Scalar expressions as ``arith`` operations."""

from __future__ import annotations

from collections.abc import Callable

from pypto.codegen.division import check_divisor
from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.types import dtype_text, signless_text
from pypto.errors import InternalError, UnsupportedFeatureError
from pypto.ir import DataType, Span
from pypto.ir import expr as E
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, Var
from pypto.ir.node import replace

_INT_OPS = {
    E.Add: "addi", E.Sub: "subi", E.Mul: "muli", E.FloorDiv: "divsi", E.FloorMod: "remsi", E.FloatDiv: "divsi",
    E.Min: "minsi", E.Max: "maxsi", E.BitAnd: "andi", E.BitOr: "ori", E.BitXor: "xori", E.BitShiftLeft: "shli",
    E.BitShiftRight: "shrsi",
}  # fmt: skip
_UNSIGNED_OPS = {**_INT_OPS, E.FloorDiv: "divui", E.FloorMod: "remui", E.FloatDiv: "divui", E.Min: "minui",
                 E.Max: "maxui", E.BitShiftRight: "shrui"}  # fmt: skip
_FLOAT_OPS = {
    E.Add: "addf", E.Sub: "subf", E.Mul: "mulf", E.FloatDiv: "divf", E.Min: "minimumf", E.Max: "maximumf",
    E.FloorMod: "remf",
}  # fmt: skip
_COMPARISONS = {E.Eq: "eq", E.Ne: "ne", E.Lt: "lt", E.Le: "le", E.Gt: "gt", E.Ge: "ge"}
#: ``a > b`` is printed as ``b < a``.
_SWAPPED = {E.Gt: "lt", E.Ge: "le"}
_LOGICAL = {E.And: "andi", E.Or: "ori", E.Xor: "xori"}


def scalar_value(emitter: KernelEmitter, expr: Expr, *, hint: str = "", span: Span | None = None) -> str:
    """SSA name of a scalar expression; ``hint`` names the last operation, ``span`` is its location.

    The type of the value is the signless spelling of ``expr.type.dtype``.
    """
    if isinstance(expr, ConstInt):
        return emitter.int_const(expr.value, dtype_text(expr.dtype))
    if isinstance(expr, ConstFloat):
        return emitter.float_const(expr.value, dtype_text(expr.dtype))
    if isinstance(expr, ConstBool):
        return emitter.int_const(int(expr.value), "i1")
    if isinstance(expr, Var):
        name = emitter.scalars.get(expr)
        if name is None:
            raise InternalError(f"scalar '{expr.name_hint}' is used before its definition", span=expr.span)
        if expr in emitter.unsigned:
            return signless(emitter, name, emitter.unsigned[expr], span or expr.span)
        return name
    span = span or expr.span
    if isinstance(expr, E.BinaryExpr):
        return _binary(emitter, expr, hint, span)
    if isinstance(expr, E.UnaryExpr):
        return _unary(emitter, expr, hint, span)
    if isinstance(expr, Call):
        from pypto.codegen.pto.operators import emit_scalar_call

        return emit_scalar_call(emitter, expr, hint, span)
    raise InternalError(f"{type(expr).__name__} is not a scalar expression of a kernel", span=expr.span)


def signless(emitter: KernelEmitter, value: str, type_text: str, span: Span) -> str:
    """A ``ui*`` value as the signless type of the same width."""
    if not type_text.startswith("ui"):
        return value
    return _emit(
        emitter,
        lambda n: f"{n} = builtin.unrealized_conversion_cast {value} : {type_text} to {type_text[1:]}",
        "",
        span,
    )


def index_value(emitter: KernelEmitter, expr: Expr, *, span: Span | None = None) -> str:
    """SSA name of an integer expression as ``index``."""
    if isinstance(expr, ConstInt):
        return emitter.index_const(expr.value)
    value = scalar_value(emitter, expr, span=span)
    return convert(emitter, value, expr.type.dtype, DataType.INDEX, span=span or expr.span)


def typed_value(emitter: KernelEmitter, expr: Expr, dtype: DataType, *, span: Span | None = None) -> str:
    """SSA name of a scalar expression converted to ``dtype``; constants are retyped."""
    if isinstance(expr, ConstInt):
        expr = ConstFloat(float(expr.value), dtype, expr.span) if dtype.is_float() else replace(expr, dtype=dtype)
    elif isinstance(expr, ConstFloat):
        expr = replace(expr, dtype=dtype) if dtype.is_float() else ConstInt(int(expr.value), dtype, expr.span)
    value = scalar_value(emitter, expr, span=span)
    return convert(emitter, value, expr.type.dtype, dtype, span=span or expr.span)


def operand(emitter: KernelEmitter, expr: Expr, *, span: Span | None = None) -> tuple[str, str]:
    """(name, signless type) of a scalar operand of a tile operation."""
    return scalar_value(emitter, expr, span=span), signless_text(expr.type.dtype)


def _emit(emitter: KernelEmitter, text: Callable[[str], str], hint: str, span: Span) -> str:
    name = emitter.fresh(hint)
    emitter.line(text(name), span)
    return name


def _binary(emitter: KernelEmitter, expr: E.BinaryExpr, hint: str, span: Span) -> str:
    kind = type(expr)
    if kind in _LOGICAL:
        left, right = (truth_value(emitter, e, span) for e in (expr.left, expr.right))
        return _emit(emitter, lambda n: f"{n} = arith.{_LOGICAL[kind]} {left}, {right} : i1", hint, span)
    ldtype, rdtype = expr.left.type.dtype, expr.right.type.dtype
    if kind in _COMPARISONS:
        dtype = _common(ldtype, rdtype)
        left, right = (_as(emitter, e, dtype, span) for e in (expr.left, expr.right))
        if kind in _SWAPPED:
            left, right = right, left
        return _emit(
            emitter, lambda n: f"{n} = {_compare(kind, dtype)} {left}, {right} : {signless_text(dtype)}", hint, span
        )
    check_divisor(expr, span)
    dtype = expr.dtype
    table = _FLOAT_OPS if dtype.is_float() else _UNSIGNED_OPS if dtype.is_unsigned_int() else _INT_OPS
    op = table.get(kind)
    if op is None:
        raise UnsupportedFeatureError(f"{kind.__name__} of {dtype} scalars inside a kernel [{span}]")
    left, right = (_as(emitter, e, dtype, span) for e in (expr.left, expr.right))
    if not emitter.divisions.may_truncate(expr):
        return _rounded_down(emitter, kind, left, right, signless_text(dtype), hint, span)
    return _emit(emitter, lambda n: f"{n} = arith.{op} {left}, {right} : {signless_text(dtype)}", hint, span)


def _rounded_down(
    emitter: KernelEmitter, kind: type[Expr], left: str, right: str, type_text: str, hint: str, span: Span
) -> str:
    def step(op: str, a: str, b: str, hint: str = "") -> str:
        return _emit(emitter, lambda n: f"{n} = arith.{op} {a}, {b} : {type_text}", hint, span)

    if kind is E.FloorDiv:
        return step("floordivsi", left, right, hint)
    return step("subi", left, step("muli", step("floordivsi", left, right), right), hint)


def _common(left: DataType, right: DataType) -> DataType:
    """INDEX and INT64 meet without a cast in the IR; the text needs one type."""
    return left if left == right else DataType.INDEX if DataType.INDEX in (left, right) else left


def _as(emitter: KernelEmitter, expr: Expr, dtype: DataType, span: Span) -> str:
    if isinstance(expr, ConstInt) and dtype.is_int():
        return emitter.int_const(expr.value, dtype_text(dtype))
    return convert(emitter, scalar_value(emitter, expr, span=span), expr.type.dtype, dtype, span=span)


def _compare(kind: type, dtype: DataType) -> str:
    name = _SWAPPED.get(kind) or _COMPARISONS[kind]
    if dtype.is_float():
        return f"arith.cmpf {'u' if name == 'ne' else 'o'}{name},"
    if name in ("eq", "ne"):
        return f"arith.cmpi {name},"
    return f"arith.cmpi {'u' if dtype.is_unsigned_int() else 's'}{name},"


def truth_value(emitter: KernelEmitter, expr: Expr, span: Span) -> str:
    """SSA name of an expression as ``i1``: anything that is no BOOL is compared with zero."""
    value = scalar_value(emitter, expr, span=span)
    dtype = expr.type.dtype
    if dtype == DataType.BOOL:
        return value
    text = signless_text(dtype)
    zero = emitter.float_const(0.0, text) if dtype.is_float() else emitter.int_const(0, text)
    op = "arith.cmpf une," if dtype.is_float() else "arith.cmpi ne,"
    return _emit(emitter, lambda n: f"{n} = {op} {value}, {zero} : {text}", "", span)


def _unary(emitter: KernelEmitter, expr: E.UnaryExpr, hint: str, span: Span) -> str:
    inner, dtype = expr.operand, expr.dtype
    if isinstance(expr, E.Cast):
        value = scalar_value(emitter, inner, span=span)
        return convert(emitter, value, inner.type.dtype, dtype, hint=hint, span=span)
    if isinstance(expr, E.Not):
        if isinstance(inner, (E.Eq, E.Ne)):
            flipped = (E.Ne if isinstance(inner, E.Eq) else E.Eq)(inner.left, inner.right, inner.dtype, inner.span)
            return scalar_value(emitter, flipped, hint=hint, span=span)
        value, one = truth_value(emitter, inner, span), emitter.int_const(1, "i1")
        return _emit(emitter, lambda n: f"{n} = arith.xori {value}, {one} : i1", hint, span)
    value, text = scalar_value(emitter, inner, span=span), signless_text(dtype)
    if isinstance(expr, E.Neg):
        if dtype.is_float():
            return _emit(emitter, lambda n: f"{n} = arith.negf {value} : {text}", hint, span)
        zero = emitter.int_const(0, text)
        return _emit(emitter, lambda n: f"{n} = arith.subi {zero}, {value} : {text}", hint, span)
    if isinstance(expr, E.BitNot):
        ones = emitter.int_const(-1, text)
        return _emit(emitter, lambda n: f"{n} = arith.xori {value}, {ones} : {text}", hint, span)
    if isinstance(expr, E.Abs):
        negated = scalar_value(emitter, E.Neg(inner, dtype, span), span=span)
        op = "maximumf" if dtype.is_float() else "maxsi"
        return _emit(emitter, lambda n: f"{n} = arith.{op} {value}, {negated} : {text}", hint, span)
    raise UnsupportedFeatureError(f"{type(expr).__name__} of a scalar inside a kernel [{span}]")


def convert(
    emitter: KernelEmitter, value: str, source: DataType, target: DataType, *, hint: str = "", span: Span | None = None
) -> str:
    """The value in another element type; the same name when no operation is needed."""
    src, dst = signless_text(source), signless_text(target)
    if src == dst:
        return value
    if target == DataType.BOOL:
        zero = emitter.float_const(0.0, src) if source.is_float() else emitter.int_const(0, src)
        op = "cmpf une," if source.is_float() else "cmpi ne,"
        return _emit(emitter, lambda n: f"{n} = arith.{op} {value}, {zero} : {src}", hint, span)
    unsigned = source.is_unsigned_int() or source == DataType.BOOL
    if source.is_float() and target.is_float():
        op = "extf" if target.get_bit() > source.get_bit() else "truncf"
        if target.get_bit() == source.get_bit():
            wide = _emit(emitter, lambda n: f"{n} = arith.extf {value} : {src} to f32", "", span)
            return _emit(emitter, lambda n: f"{n} = arith.truncf {wide} : f32 to {dst}", hint, span)
    elif source.is_float():
        op = "fptoui" if target.is_unsigned_int() else "fptosi"
        if target == DataType.INDEX:
            wide = _emit(emitter, lambda n: f"{n} = arith.fptosi {value} : {src} to i64", "", span)
            return _emit(emitter, lambda n: f"{n} = arith.index_cast {wide} : i64 to index", hint, span)
    elif target.is_float():
        if source == DataType.INDEX:
            value, src = _emit(emitter, lambda n: f"{n} = arith.index_cast {value} : index to i64", "", span), "i64"
        op = "uitofp" if unsigned else "sitofp"
    elif DataType.INDEX in (source, target):
        op = "index_castui" if unsigned else "index_cast"
    elif target.get_bit() > source.get_bit():
        op = "extui" if unsigned else "extsi"
    else:
        op = "trunci"
    return _emit(emitter, lambda n: f"{n} = arith.{op} {value} : {src} to {dst}", hint, span)
