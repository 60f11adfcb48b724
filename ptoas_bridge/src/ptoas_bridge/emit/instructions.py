"""Tile instructions: the common call `NAME(dst, operands...)` and the operations that differ from it."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.enums import EnumAttr
from ..dialect.ir import Operation, Value
from ..errors import UnsupportedFeatureError
from .cpp_types import camel, cpp_type, enum_value
from .function import FunctionEmitter, emits


def _names(e: FunctionEmitter, values: list[Value]) -> str:
    return ", ".join(e.use(v) for v in values)


def _type_of(e: FunctionEmitter, value: Value) -> str:
    return e.tensor_type.get(value) or cpp_type(value.type)


def _call(e: FunctionEmitter, name: str, arguments: list[str], template: list[str] = ()) -> None:
    parameters = f"<{', '.join(template)}>" if template else ""
    e.line(f"{name}{parameters}({', '.join(arguments)});")


@emits("default")
def emit_default(e: FunctionEmitter, op: Operation) -> None:
    """`NAME(dst, ins...)`, with an algorithm template argument when high precision is asked for."""
    if op.spec is None or op.spec.form != "dps":
        raise UnsupportedFeatureError("is not translated to C++")
    template = []
    precision = op.attrs.get("precisionType")
    if isinstance(precision, EnumAttr) and precision.value == "high_precision":
        template = [f"pto::{camel(precision.kind.removesuffix('_precision'))}Algorithm::HIGH_PRECISION"]
    phase = op.attrs.get("accPhase")
    if isinstance(phase, EnumAttr) and phase.value != "unspecified":
        template = [enum_value(phase)]
    outs = [e.use(v) for v in op.outs]
    _call(e, op.spec.call, outs + [e.use(v) for v in op.ins], template)


def _named_mode(e: FunctionEmitter, type_: str, value: str) -> str:
    name = e.fresh()
    e.line(f"{type_} {name} = {value};")
    return name


@emits("pto.tcmp", "pto.tcmps")
def _compare(e: FunctionEmitter, op: Operation) -> None:
    mode = _named_mode(e, "CmpMode", enum_value(op.attrs.get("cmpMode", EnumAttr("cmp", "eq"))))
    e.line(f"{op.spec.call}({e.use(op.outs[0])}, {_names(e, op.ins)}, {mode});")


@emits("pto.tcvt")
def _tcvt(e: FunctionEmitter, op: Operation) -> None:
    rounding = _named_mode(e, "RoundMode", enum_value(op.attrs.get("rmode", EnumAttr("round_mode", "CAST_RINT"))))
    saturation = _named_mode(
        e, "SaturationMode", enum_value(op.attrs.get("satmode", EnumAttr("saturation_mode", "OFF")))
    )
    e.line(f"TCVT({e.use(op.outs[0])}, {_names(e, op.ins)}, {rounding}, {saturation});")


@emits("pto.tcolsum")
def _tcolsum(e: FunctionEmitter, op: Operation) -> None:
    arguments = [e.use(op.outs[0]), *(e.use(v) for v in op.ins)]
    if len(op.ins) > 1:
        flag = "true" if op.attrs.get("isBinary") else "false"
        arguments.append(_named_mode(e, "const bool", flag))
    _call(e, "TCOLSUM", arguments)


@emits("pto.tci")
def _tci(e: FunctionEmitter, op: Operation) -> None:
    dst = op.outs[0]
    template = [_type_of(e, dst), *(_type_of(e, v) for v in op.ins[1:]), dst.type.dtype.cpp]
    template.append("1" if op.attrs.get("descending") else "0")
    start = e.use(op.ins[0])
    if op.ins[0].type is not dst.type.dtype:
        start = f"({dst.type.dtype.cpp}) {start}"
    _call(e, "TCI", [e.use(dst), start, *(e.use(v) for v in op.ins[1:])], template)


@emits("pto.ttri")
def _ttri(e: FunctionEmitter, op: Operation) -> None:
    dst = op.outs[0]
    _call(e, "TTRI", [e.use(dst), e.use(op.ins[0])], [_type_of(e, dst), str(op.attrs.get("upperOrLower", 0))])


@emits("pto.trandom")
def _trandom(e: FunctionEmitter, op: Operation) -> None:
    rounds = op.attrs.get("rounds", 10)
    keys, counters, dst = e.fresh(), e.fresh(), op.outs[0]
    words = [e.use(v) for v in op.ins]
    e.line(f"TRandomKey {keys} = {{(uint32_t) {words[0]}, (uint32_t) {words[1]}}};")
    e.line(f"TRandomCounter {counters} = {{{', '.join(f'(uint32_t) {w}' for w in words[2:])}}};")
    _call(e, "TRANDOM", [e.use(dst), keys, counters], [str(rounds)])


@emits("pto.texpands")
def _texpands(e: FunctionEmitter, op: Operation) -> None:
    dst = op.outs[0]
    value = e.use(op.ins[0])
    if op.ins[0].type is not dst.type.dtype:
        value = f"({dst.type.dtype.cpp}) {value}"
    _call(e, "TEXPANDS", [e.use(dst), value])


@emits("pto.tfillpad", "pto.tfillpad_expand", "pto.tfillpad_inplace")
def _tfillpad(e: FunctionEmitter, op: Operation) -> None:
    source, dst = op.ins[0], op.outs[0]
    mode = ""
    if dst.type.loc != "mat":
        if op.name.endswith("_expand") or (source.type.rows, source.type.cols) != (dst.type.rows, dst.type.cols):
            mode = "Expand"
        elif op.name.endswith("_inplace") or source is dst or _same_address(source, dst):
            mode = "InPlace"
    template = [f"pto::TFillPadMode::{mode}"] if mode else []
    _call(e, "TFILLPAD", [e.use(dst), e.use(source)], template)


def _same_address(first: Value, second: Value) -> bool:
    """Whether both tiles are known to start at one address (level3 operands or planned addresses)."""
    from ..passes.storage import base_address

    one, other = base_address(first), base_address(second)
    return one is not None and one == other


@emits("pto.tstore")
def _tstore(e: FunctionEmitter, op: Operation) -> None:
    source, target = op.ins[0], op.outs[0]
    arguments = [e.use(target), e.use(source)]
    types = [_type_of(e, source), _type_of(e, target)]
    atomic = op.attrs.get("atomicType")
    relu = op.attrs.get("reluPreMode")
    phase = op.attrs.get("stPhase")
    scale = op.named.get("pre_quant") or (op.ins[1] if len(op.ins) > 1 else None)
    modes: list[str] = []
    if atomic is not None and atomic.value != "atomic_none":
        modes.append(enum_value(atomic))
    if relu is not None and relu.value != "no_relu":
        modes = (modes or ["AtomicType::AtomicNone"]) + [enum_value(relu)]
    if "fp" in op.named:
        fp = op.named["fp"]
        _call(e, "TSTORE_FP", [*arguments, e.use(fp)], [*types, _type_of(e, fp), *modes])
        return
    if scale is not None:
        arguments.append(f"(uint64_t) {e.use(scale)}")
    if modes:
        _call(e, "TSTORE", arguments, [*types, *modes])
    elif phase is not None and phase.value != "unspecified":
        _call(e, "TSTORE", arguments, [enum_value(phase)])
    else:
        _call(e, "TSTORE", arguments)


@emits("pto.tmov")
def _tmov(e: FunctionEmitter, op: Operation) -> None:
    source, dst = op.ins[0], op.outs[0]
    arguments = [e.use(dst), e.use(source)]
    types = [_type_of(e, dst), _type_of(e, source)]
    modes = _move_modes(op)
    extra = [*op.ins[1:], *op.named.values()]
    tiles = [v for v in extra if isinstance(v.type, T.TileType)]
    scalars = [v for v in extra if not isinstance(v.type, T.TileType)]
    if tiles:
        _call(e, "TMOV_FP", [*arguments, e.use(tiles[0])], [*types, _type_of(e, tiles[0]), *modes])
        return
    arguments += [f"(uint64_t) {e.use(v)}" for v in scalars]
    _call(e, "TMOV", arguments, [*types, *modes] if modes else [])


def _move_modes(op: Operation) -> list[str]:
    modes = []
    to_vec = op.attrs.get("accToVecMode")
    relu = op.attrs.get("reluPreMode")
    if to_vec is not None:
        modes.append(enum_value(to_vec))
    if relu is not None and (to_vec is not None or relu.value != "no_relu"):
        modes.append(enum_value(relu))
    elif to_vec is not None:
        modes.append("ReluPreMode::NoRelu")
    return modes


@emits("pto.textract", "pto.tinsert")
def _window_move(e: FunctionEmitter, op: Operation) -> None:
    source, row, col = op.ins[:3]
    dst = op.outs[0]
    window = [e.use(row), e.use(col)]
    types = [_type_of(e, dst), _type_of(e, source)]
    modes = _move_modes(op)
    scale = op.named.get("pre_quant") or (op.ins[3] if len(op.ins) > 3 else None)
    if "fp" in op.named:
        fp = op.named["fp"]
        arguments = [e.use(dst), e.use(source), e.use(fp), *window]
        _call(e, op.spec.call + "_FP", arguments, [*types, _type_of(e, fp), *modes])
        return
    arguments = [e.use(dst), e.use(source)]
    if scale is not None:
        arguments.append(f"(uint64_t) {e.use(scale)}")
    _call(e, op.spec.call, [*arguments, *window], [*types, *modes] if modes else [])


@emits("pto.tgather")
def _tgather(e: FunctionEmitter, op: Operation) -> None:
    dst = op.outs[0]
    pattern = op.attrs.get("maskPattern")
    if pattern is not None:
        template = [_type_of(e, dst), _type_of(e, op.ins[0]), enum_value(pattern)]
        if op.attrs.get("axis") == "col":
            template.append("pto::GatherAxis::GATHER_COL")
        _call(e, "TGATHER", [e.use(dst), e.use(op.ins[0])], template)
    elif len(op.outs) > 1:
        source, key, tmp = op.ins
        counts = op.outs[1]
        mode = enum_value(op.attrs.get("cmpMode", EnumAttr("cmp", "eq")))
        key_type = _type_of(e, key)
        template = [_type_of(e, dst), _type_of(e, source), key_type, _type_of(e, counts), _type_of(e, tmp), mode]
        offset = str(op.attrs.get("offset", 0))
        _call(e, "TGATHER", [e.use(v) for v in (dst, source, key, counts, tmp)] + [offset], template)
    else:
        _call(e, "TGATHER", [e.use(dst), *(e.use(v) for v in op.ins)])


@emits("pto.tscatter")
def _tscatter(e: FunctionEmitter, op: Operation) -> None:
    pattern = op.attrs.get("maskPattern")
    template = []
    if pattern is not None:
        axis = "SCATTER_COL" if op.attrs.get("axis") == "col" else "SCATTER_ROW"
        template = [f"pto::{enum_value(pattern)}", f"pto::ScatterAxis::{axis}"]
    _call(e, "TSCATTER", [e.use(op.outs[0]), *(e.use(v) for v in op.ins)], template)


@emits("pto.tmrgsort")
def _tmrgsort(e: FunctionEmitter, op: Operation) -> None:
    dst = op.outs[0]
    if len(op.outs) == 1:
        source, length = op.ins
        _call(e, "TMRGSORT", [e.use(dst), e.use(source), e.use(length)])
        return
    *lists, tmp = op.ins
    executed = e.fresh()
    e.line(f"pto::MrgSortExecutedNumList {executed}{{}};")
    exhausted = "true" if op.attrs.get("exhausted") else "false"
    template = [_type_of(e, dst), _type_of(e, tmp), *(_type_of(e, v) for v in lists), exhausted]
    _call(e, "TMRGSORT", [e.use(dst), executed, e.use(tmp), *(e.use(v) for v in lists)], template)


@emits("pto.mgather", "pto.mscatter")
def _global_gather(e: FunctionEmitter, op: Operation) -> None:
    """Template arguments are printed only up to the last one that differs from its default."""
    keys = ["coalesce", "gatherOob"] if op.name == "pto.mgather" else [
        "coalesce", "scatterAtomicOp", "scatterOob", "scatterConflict",
    ]  # fmt: skip
    defaults = {"gatherOob": "undefined", "scatterAtomicOp": "none", "scatterOob": "undefined",
                "scatterConflict": "default"}  # fmt: skip
    kinds = {"gatherOob": "gather_oob", "scatterAtomicOp": "scatter_atomic_op", "scatterOob": "scatter_oob",
             "scatterConflict": "scatter_conflict"}  # fmt: skip
    template: list[str] = []
    needed = 0
    for position, key in enumerate(keys):
        attr = op.attrs.get(key)
        if attr is not None and attr.value != defaults.get(key):
            needed = position + 1
        attr = attr or EnumAttr(kinds.get(key, "coalesce"), defaults.get(key, "row"))
        template.append(enum_value(attr))
    _call(e, op.spec.call, [e.use(op.outs[0]), *(e.use(v) for v in op.ins)], template[:needed])


@emits("pto.tgetval")
def _tgetval(e: FunctionEmitter, op: Operation) -> None:
    e.declare(op.result, f"{e.use(op.ins[0])}.GetValue({e.use(op.ins[1])})")


@emits("pto.tsetval")
def _tsetval(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"{e.use(op.outs[0])}.SetValue({e.use(op.ins[0])}, {e.use(op.ins[1])});")


@emits("pto.tprint", "pto.tsync")
def _plain_call(e: FunctionEmitter, op: Operation) -> None:
    _call(e, op.spec.call, [e.use(v) for v in op.ins])


@emits("pto.thistogram")
def _thistogram(e: FunctionEmitter, op: Operation) -> None:
    byte = op.attrs.get("byte", 1 if op.attrs.get("isMSB", True) else 0)
    _call(e, "THISTOGRAM", [e.use(op.outs[0]), *(e.use(v) for v in op.ins)], [f"pto::HistByte::BYTE_{byte}"])


@emits("pto.tquant", "pto.tquant.mx")
def _tquant(e: FunctionEmitter, op: Operation) -> None:
    kind = op.attrs.get("quant_type", EnumAttr("quant_type", "INT8_SYM"))
    outs = [e.use(v) for v in op.outs]
    template = [enum_value(kind)]
    if op.name == "pto.tquant":
        source, scale, *offset = (e.use(v) for v in op.ins)
        arguments = [outs[0], source, scale, *outs[1:], *(f"&{name}" for name in offset)]
    else:
        arguments = [outs[0], e.use(op.ins[0]), *(f"&{name}" for name in outs[1:])]
        template += [enum_value(op.attrs[k]) for k in ("quantScaleAlg", "grpAxis") if k in op.attrs]
    _call(e, "TQUANT", arguments, template)


@emits("pto.set_quant_scalar", "pto.set_quant_vector")
def _set_quant(e: FunctionEmitter, op: Operation) -> None:
    _call(e, op.spec.call, [e.use(op.ins[0])])
