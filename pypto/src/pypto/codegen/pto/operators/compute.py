"""Arithmetic whose text carries attributes or differs from the plain form."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.operators import (
    call_span,
    emits,
    instruction,
    operands_of,
    target,
    tile_operand,
)
from pypto.codegen.pto.operators.restrictions import check_mgather, check_prelu, check_sels, mgather_scratch
from pypto.codegen.pto.scalars import truth_value, typed_value
from pypto.codegen.pto.types import signless_text
from pypto.errors import user_error
from pypto.ir import DataType, Expr, Span, TileType, Var
from pypto.ir.expr import Call, ConstBool, const_index
from pypto.ops.pto_text import cmp_mode

_ROUND = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
_MASKS = {1: "P0101", 2: "P1010", 3: "P0001", 4: "P0010", 5: "P0100", 6: "P1000", 7: "P1111"}


@emits("tile.cmp", "tile.cmps")
def compare(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    mnemonic = "pto.tcmp" if call.op.name == "tile.cmp" else "pto.tcmps"
    out = target(emitter, call, result, span)
    ins = operands_of(emitter, call.args, call.args[0].type.dtype, at)
    instruction(emitter, mnemonic, ins, [tile_operand(out)], at, ins_attrs=cmp_mode(call, at))


@emits("tile.cast")
def cast(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    mode = f"{{rmode = #pto<round_mode {_ROUND[int(call.kwargs.get('mode', 2))]}>}}"
    source = emitter.tile(call.args[0])
    instruction(emitter, "pto.tcvt", [tile_operand(source)], [tile_operand(out)], at, ins_attrs=mode)


@emits("tile.col_sum")
def col_sum(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = operands_of(emitter, call.args, None, at)
    attrs = " {isBinary = true}" if len(ins) > 1 else ""
    instruction(emitter, "pto.tcolsum", ins, [tile_operand(out)], at, ins_attrs=attrs)


def _with_precision(name: str, mnemonic: str, attribute: str) -> None:
    @emits(name)
    def emission(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
        at = call_span(span, call)
        out = target(emitter, call, result, span)
        ins = operands_of(emitter, call.args, None, at)
        precise = f"{{precisionType = #pto<{attribute} high_precision>}}" if call.kwargs.get("high_precision") else ""
        instruction(emitter, mnemonic, ins, [tile_operand(out)], at, attrs=precise)


_with_precision("tile.div", "pto.tdiv", "div_precision")
_with_precision("tile.log", "pto.tlog", "log_precision")
_with_precision("tile.recip", "pto.trecip", "recip_precision")


@emits("tile.sels")
def select_scalar(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    check_sels(emitter, call, at)
    out = target(emitter, call, result, span)
    ins = operands_of(emitter, call.args, result.type.dtype, at)
    instruction(emitter, "pto.tsels", ins, [tile_operand(out)], at)


@emits("tile.prelu")
def parametric_relu(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    check_prelu(emitter, call, result, at)
    out = target(emitter, call, result, span)
    instruction(emitter, "pto.tprelu", operands_of(emitter, call.args, None, at), [tile_operand(out)], at)


@emits("tile.lrelu")
def leaky_relu(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """The slope stays FP32 whatever the element type is."""
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = operands_of(emitter, call.args, DataType.FP32, at)
    instruction(emitter, "pto.tlrelu", ins, [tile_operand(out)], at)


@emits("tile.row_expand", "tile.col_expand")
def expand(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """Only the vector is an operand; the target gives the shape."""
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    mnemonic = "pto.trowexpand" if call.op.name == "tile.row_expand" else "pto.tcolexpand"
    instruction(emitter, mnemonic, [tile_operand(emitter.tile(call.args[1]))], [tile_operand(out)], at)


@emits("tile.transpose")
def transpose(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = [tile_operand(emitter.tile(a)) for a in call.args if isinstance(a.type, TileType)]
    instruction(emitter, "pto.ttrans", ins, [tile_operand(out)], at)


@emits("tile.matmul_acc")
def matmul_acc(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    accumulator = emitter.tile(call.args[0])
    out = target(emitter, call, result, span)
    lhs, rhs = (tile_operand(emitter.tile(a)) for a in call.args[1:3])
    init = call.args[3] if len(call.args) > 3 else None

    def fresh() -> None:
        instruction(emitter, "pto.tmatmul", [lhs, rhs], [tile_operand(out)], at)

    def accumulate() -> None:
        instruction(emitter, "pto.tmatmul.acc", [tile_operand(accumulator), lhs, rhs], [tile_operand(out)], at)

    if init is None or (isinstance(init, ConstBool) and not init.value):
        accumulate()
    elif isinstance(init, ConstBool):
        fresh()
    else:
        condition = truth_value(emitter, init, at)
        emitter.line(f"scf.if {condition} {{")
        with emitter.region():
            fresh()
        emitter.line("} else {")
        with emitter.region():
            accumulate()
        emitter.line("}")


@emits("tile.gemv_acc")
def gemv_acc(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    accumulator = emitter.tile(call.args[0])
    out = target(emitter, call, result, span)
    ins = [tile_operand(accumulator), *(tile_operand(emitter.tile(a)) for a in call.args[1:3])]
    instruction(emitter, "pto.tgemv.acc", ins, [tile_operand(out)], at)


@emits("tile.gather_mask", "tile.scatter_mask")
def masked(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    gather = call.op.name == "tile.gather_mask"
    out = target(emitter, call, result, span)
    source = emitter.tile(call.args[0 if gather else 1])
    pattern = _MASKS[int(call.kwargs["mask_pattern"])]
    emitter.line(
        f"pto.{'tgather' if gather else 'tscatter'} ins({source.name}, "
        f'{{maskPattern = #pto.mask_pattern<{pattern}>}} : {source.type_text}, "row") outs({out.typed})',
        at,
    )


@emits("tile.scatter")
def scatter(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = [tile_operand(emitter.tile(a)) for a in call.args[1:3]]
    instruction(emitter, "pto.tscatter", ins, [tile_operand(out)], at)


@emits("tile.tri")
def tri(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    dtype = result.type.dtype
    if dtype in (DataType.INT8, DataType.UINT8, DataType.BF16) and emitter.handler.arch != "a5":
        raise user_error(f"tile.tri of {dtype} is not supported on the '{emitter.handler.arch}' backend", span=at)
    out = target(emitter, call, result, span)
    diagonal = typed_value(emitter, call.args[0], DataType.INT32, span=at)
    upper = int(bool(call.kwargs.get("upper")))
    emitter.line(
        f'"pto.ttri"({diagonal}, {out.name}) {{upperOrLower = {upper} : i32}} : (i32, {out.type_text}) -> ()', at
    )


@emits("tile.ci")
def sequence(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    dtype = result.type.dtype
    out = target(emitter, call, result, span)
    start = typed_value(emitter, call.args[0], dtype, span=at)
    descending = "true" if call.kwargs.get("descending") else "false"
    instruction(
        emitter, "pto.tci", [(start, signless_text(dtype))], [tile_operand(out)], at,
        attrs=f"{{descending = {descending}}}",
    )  # fmt: skip


@emits("tile.random")
def random(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = [(typed_value(emitter, a, DataType.INT32, span=at), "i32") for a in call.args[:6]]
    rounds = int(call.kwargs.get("rounds", 10))
    instruction(emitter, "pto.trandom", ins, [tile_operand(out)], at, attrs=f"{{rounds = {rounds} : i32}}")


@emits("tile.mrgsort_format1")
def merge_sort(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    length = typed_value(emitter, call.args[1], DataType.INT32, span=at)
    ins = [tile_operand(emitter.tile(call.args[0])), (length, "i32")]
    instruction(emitter, "pto.tmrgsort", ins, [tile_operand(out)], at)


@emits("tile.mrgsort_format2")
def merge_lists(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    out = target(emitter, call, result, span)
    ins = [tile_operand(emitter.tile(a)) for a in call.args]
    counts = emitter.fresh("executed")
    zeros = "dense<0> : vector<4xi16>"
    emitter.line(f"{counts} = arith.constant {zeros}", at)
    exhausted = "true" if call.kwargs.get("exhausted") else "false"
    instruction(
        emitter, "pto.tmrgsort", ins, [tile_operand(out), (counts, "vector<4xi16>")], at,
        ins_attrs=f"{{exhausted = {exhausted}}}",
    )  # fmt: skip


def whole_tensor(emitter: KernelEmitter, tensor: Expr, span: Span) -> tuple[str, str]:
    """Partition view of everything a tensor holds, as an operand."""
    ref = emitter.tensor(tensor)
    return emitter.partition(ref, tensor.name_hint, [const_index(0)] * len(ref.type.shape), ref.type.shape, span)


@emits("tile.mgather")
def mgather(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    memory, indices = call.args[:2]
    check_mgather(emitter, call, result, at)
    out = target(emitter, call, result, span)
    ins = [whole_tensor(emitter, memory, at)]
    if isinstance(indices.type, TileType):
        ins.append(tile_operand(emitter.tile(indices)))
    else:
        ins.append(whole_tensor(emitter, indices, at))
    scratch = mgather_scratch(call)
    if scratch is not None:
        ins.append(whole_tensor(emitter, scratch, at))
    coalesce = ("row", "elem")[int(call.kwargs.get("coalesce", 0))]
    attrs = f"coalesce = #pto<coalesce {coalesce}>"
    policy = int(call.kwargs.get("gather_oob", 0))
    if policy:
        attrs += f", gatherOob = #pto<gather_oob {('undefined', 'clamp', 'wrap', 'zero')[policy]}>"
    instruction(emitter, "pto.mgather", ins, [tile_operand(out)], at, attrs=f"{{{attrs}}}")


@emits("tile.mscatter")
def mscatter(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    source, indices, output = call.args[:3]
    out = whole_tensor(emitter, output, at)
    ins = [tile_operand(emitter.tile(source)), tile_operand(emitter.tile(indices))]
    instruction(emitter, "pto.mscatter", ins, [out], at, attrs="{coalesce = #pto<coalesce elem>}")
    if result is not None:
        emitter.tensors[result] = emitter.tensor(output)
