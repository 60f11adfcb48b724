"""Scalar arithmetic, casts, comparisons, pointers, and local arrays."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation
from .cpp_types import cpp_type, unsigned
from .function import FunctionEmitter, emits
from .views import check_element

_WRAPPING = {"addi": "+", "subi": "-", "muli": "*", "shli": "<<"}
_PLAIN = {
    "divsi": "/", "remsi": "%", "andi": "&", "ori": "|", "xori": "^", "shrsi": ">>",
    "addf": "+", "subf": "-", "mulf": "*", "divf": "/",
}  # fmt: skip
_UNSIGNED = {"divui": "/", "remui": "%", "shrui": ">>"}
_PICK = {"maxsi": ("<", False), "minsi": ("<", True), "maxui": ("<", False), "minui": ("<", True)}
_INT_COMPARE = {
    "eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">=",
    "ult": "<", "ule": "<=", "ugt": ">", "uge": ">=",
}  # fmt: skip


@emits("arith.constant")
def _constant(e: FunctionEmitter, op: Operation) -> None:
    """Constants are declared where they are first used (FunctionEmitter.use)."""


def _binary(e: FunctionEmitter, op: Operation) -> None:
    name = op.name[6:]
    type_ = op.result.type
    left, right = op.ins
    if name in _PICK or name in ("floordivsi", "ceildivsi", "ceildivui", "maximumf", "minimumf", "maxnumf", "minnumf"):
        a, b = e.settled(left), e.settled(right)
    else:
        a, b = e.use(left), e.use(right)
    cpp = cpp_type(type_)
    if name in _WRAPPING:
        if type_.bits == 1:
            text = f"{a} {'&' if name == 'muli' else '^'} {b}"
        else:
            text = f"({cpp}) (({unsigned(type_)}) {a} {_WRAPPING[name]} ({unsigned(type_)}) {b})"
    elif name in _PLAIN:
        text = f"{a} {_PLAIN[name]} {b}"
        if type_.bytes < 4 or not type_.is_integer:
            text = f"({cpp}) ({text})" if type_.text not in ("f32", "f64") else text
    elif name in _UNSIGNED:
        text = f"({cpp}) (({unsigned(type_)}) {a} {_UNSIGNED[name]} ({unsigned(type_)}) {b})"
    elif name in _PICK:
        operator, first_if_true = _PICK[name]
        cast = f"({unsigned(type_)}) " if name.endswith("ui") else ""
        first, second = (a, b) if first_if_true else (b, a)
        text = f"{cast}{a} {operator} {cast}{b} ? {first} : {second}"
    elif name == "floordivsi":
        text = f"{a} / {b} - (int64_t) ({a} % {b} != 0 && ({a} < 0) != ({b} < 0))"
        text = f"({cpp}) ({text})"
    elif name == "ceildivsi":
        text = f"{a} / {b} + (int64_t) ({a} % {b} != 0 && ({a} < 0) == ({b} < 0))"
        text = f"({cpp}) ({text})"
    elif name == "ceildivui":
        wide = unsigned(type_)
        text = f"({cpp}) (({wide}) {a} / ({wide}) {b} + (({wide}) {a} % ({wide}) {b} != 0))"
    elif name == "remf":
        text = f"({cpp}) __builtin_fmod({a}, {b})"
    else:
        text = _float_pick(name, a, b)
    e.pure(op.result, text)


def _float_pick(name: str, a: str, b: str) -> str:
    """`maximumf`/`minimumf` propagate NaN, `maxnumf`/`minnumf` ignore one NaN."""
    operator = ">" if name.startswith("max") else "<"
    if name.endswith("imumf"):
        return f"{a} != {a} ? {a} : {b} != {b} ? {b} : {a} {operator} {b} ? {a} : {b}"
    return f"{a} != {a} ? {b} : {b} != {b} ? {a} : {a} {operator} {b} ? {a} : {b}"


def _register_binary() -> None:
    from ..dialect.foreign_ops import FLOAT_BINARY, INTEGER_BINARY

    emits(*("arith." + name for name in INTEGER_BINARY + FLOAT_BINARY))(_binary)


_register_binary()


@emits("arith.negf")
def _negf(e: FunctionEmitter, op: Operation) -> None:
    e.pure(op.result, f"-{e.use(op.ins[0])}")


@emits("arith.addui_extended")
def _add_extended(e: FunctionEmitter, op: Operation) -> None:
    a, b = e.settled(op.ins[0]), e.settled(op.ins[1])
    wide = unsigned(op.ins[0].type)
    total = e.declare(op.results[0], f"({cpp_type(op.ins[0].type)}) (({wide}) {a} + ({wide}) {b})")
    e.pure(op.results[1], f"({wide}) {total} < ({wide}) {a}")


@emits("arith.mulsi_extended", "arith.mului_extended")
def _mul_extended(e: FunctionEmitter, op: Operation) -> None:
    a, b = e.settled(op.ins[0]), e.settled(op.ins[1])
    type_ = op.ins[0].type
    signed = op.name == "arith.mulsi_extended"
    narrow = cpp_type(type_) if signed else unsigned(type_)
    wide = ("__int128" if signed else "unsigned __int128") if type_.bits == 64 else "int64_t" if signed else "uint64_t"
    product = f"({wide}) ({narrow}) {a} * ({wide}) ({narrow}) {b}"
    e.pure(op.results[0], f"({cpp_type(type_)}) ({product})")
    e.pure(op.results[1], f"({cpp_type(type_)}) (({product}) >> {type_.bits})")


@emits("arith.cmpi")
def _cmpi(e: FunctionEmitter, op: Operation) -> None:
    predicate = op.attrs["predicate"]
    a, b = e.use(op.ins[0]), e.use(op.ins[1])
    cast = f"({unsigned(op.ins[0].type)}) " if predicate[0] == "u" else ""
    e.pure(op.result, f"{cast}{a} {_INT_COMPARE[predicate]} {cast}{b}")


@emits("arith.cmpf")
def _cmpf(e: FunctionEmitter, op: Operation) -> None:
    predicate = op.attrs["predicate"]
    if predicate in ("true", "false"):
        e.pure(op.result, predicate)
        return
    a, b = e.settled(op.ins[0]), e.settled(op.ins[1])
    nan = f"({a} != {a} || {b} != {b})"
    if predicate == "ord":
        text = f"!{nan}"
    elif predicate == "uno":
        text = nan
    else:
        operator = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[predicate[1:]]
        text = f"{a} {operator} {b}"
        if predicate[0] == "u" and predicate != "une":
            text = f"{nan} || {text}"
        elif predicate == "one":
            text = f"!{nan} && {text}"
    e.pure(op.result, text)


@emits("arith.select")
def _select(e: FunctionEmitter, op: Operation) -> None:
    condition, yes, no = op.ins
    type_ = op.result.type
    if isinstance(type_, T.ScalarType):
        e.pure(op.result, f"{e.use(condition)} ? {e.use(yes)} : {e.use(no)}")
    else:
        e.declare(op.result, f"{e.use(condition)} ? {e.use(yes)} : {e.use(no)}")


def _cast_text(e: FunctionEmitter, op: Operation) -> str:
    source, target = op.ins[0].type, op.result.type
    text = e.use(op.ins[0])
    cpp = cpp_type(target)
    name = op.name.rpartition(".")[2]
    if name in ("extui", "uitofp", "index_castui"):
        return f"({cpp}) ({unsigned(source)}) {text}"
    if name == "fptoui":
        return f"({cpp}) ({unsigned(target)}) {text}"
    if name == "trunci" and target.text == "i1":
        return f"({text} & 1) != 0"
    if name == "extsi" and source.text == "i1":
        return f"({cpp}) -({cpp}) {text}"
    if name == "bitcast":
        e.helpers.add("ptoas_bitcast")
        return f"ptoas_bitcast<{cpp}>({text})"
    return f"({cpp}) {text}"


def _register_casts() -> None:
    from ..dialect.foreign_ops import CASTS

    @emits(*("arith." + name for name in CASTS), "builtin.unrealized_conversion_cast")
    def _cast(e: FunctionEmitter, op: Operation) -> None:
        e.pure(op.result, _cast_text(e, op))


_register_casts()


# --- pointers ----------------------------------------------------------------------------------------------------


@emits("pto.addptr")
def _addptr(e: FunctionEmitter, op: Operation) -> None:
    e.pure(op.result, f"{e.use(op.ins[0])} + {e.use(op.ins[1])}")


@emits("pto.ptrtoint")
def _ptrtoint(e: FunctionEmitter, op: Operation) -> None:
    e.pure(op.result, f"(int64_t) {e.use(op.ins[0])}")


@emits("pto.inttoptr", "pto.castptr")
def _castptr(e: FunctionEmitter, op: Operation) -> None:
    e.pure(op.result, f"({cpp_type(op.result.type)}) {e.use(op.ins[0])}")


@emits("pto.load_scalar")
def _load_scalar(e: FunctionEmitter, op: Operation) -> None:
    check_element(e, op, op.ins[0], op.ins[1])
    e.declare(op.result, f"({e.use(op.ins[0])})[{e.use(op.ins[1])}]")


@emits("pto.store_scalar")
def _store_scalar(e: FunctionEmitter, op: Operation) -> None:
    check_element(e, op, op.ins[1], op.ins[2])
    e.line(f"({e.use(op.ins[1])})[{e.use(op.ins[2])}] = {e.use(op.ins[0])};")
    e.writes_scalars = True


@emits("pto.get_block_idx", "pto.get_block_num", "pto.get_subblock_idx", "pto.get_subblock_num")
def _runtime_value(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, f"{op.spec.call}()")


# --- local arrays and structs ------------------------------------------------------------------------------------


@emits("pto.declare_local_array")
def _declare_array(e: FunctionEmitter, op: Operation) -> None:
    type_ = op.result.type
    name = e.fresh()
    e.note(op.result)
    e.line(f"{type_.elem.cpp} {name}{''.join(f'[{d}]' for d in type_.dims)};")
    e.expr[op.result] = name


def _element(e: FunctionEmitter, op: Operation) -> str:
    if "path" in op.attrs:
        return e.use(op.ins[0]) + "".join(f".f{i}" for i in op.attrs["path"])
    return e.use(op.ins[0]) + "".join(f"[{e.use(i)}]" for i in op.named["indices"])


@emits("pto.local_array_get", "pto.struct_get")
def _array_get(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, _element(e, op))


@emits("pto.local_array_set", "pto.struct_set")
def _array_set(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"{_element(e, op)} = {e.use(op.ins[1])};")


@emits("pto.declare_struct")
def _declare_struct(e: FunctionEmitter, op: Operation) -> None:
    name = e.fresh()
    e.note(op.result)
    e.line(f"{cpp_type(op.result.type)} {name};")
    e.expr[op.result] = name
