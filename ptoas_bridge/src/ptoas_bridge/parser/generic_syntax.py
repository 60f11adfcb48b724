"""The generic form `"pto.op"(%a, %b) <{props}> ({regions}) {attrs} : (T, T) -> (T)` of every operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialect import types as T
from ..dialect.ir import Operation, Value
from . import control_syntax, system_syntax  # noqa: F401  (each registers its forms)
from .op_syntax import SYNTAX, check_arity

if TYPE_CHECKING:
    from .parser import Parser

# Operand segments of the forms that are not `ins`/`outs`: plain operands, then named ones (`*` = a list).
_SEGMENTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "alloc": (0, ("addr", "valid_row", "valid_col")),
    "make_tensor_view": (1, ("shape*", "strides*")),
    "partition_view": (1, ("offsets*", "sizes*")),
    "subview": (1, ("offsets*", "valid*")),
    "initialize_pipe": (0, ("gm_slot_buffer", "gm_slot_tensor", "c2v_consumer_buf", "v2c_consumer_buf")),
    "array_get": (1, ("indices*",)),
    "array_set": (1, ("indices*",)),
}
_ATTRIBUTE_NAMES = {"sat_mode": "satmode"}


def parse_generic(p: Parser, op: Operation) -> list[T.Type]:
    """Fill `op` from its generic form."""
    at = p.i
    p.expect("(")
    values = p.uses(")")
    kinds = op.spec.attrs
    if p.tokens[p.i] == "<" and p.tokens[p.i + 1] == "{":
        p.i += 1
        op.attrs.update(p.attr_dict(kinds))
        p.expect(">")
    if p.tokens[p.i] == "(":
        p.i += 1
        while not p.accept(")"):
            op.regions.append(p.region(labelled=True))
            p.accept(",")
    if p.tokens[p.i] == "{":
        op.attrs.update(p.attr_dict(kinds))
    op.attrs = {_ATTRIBUTE_NAMES.get(k, k): v for k, v in op.attrs.items()}
    p.expect(":")
    types = p.type_list()
    if len(types) != len(values):
        raise p.error(f"expected {len(values)} operand types but had {len(types)}", at)
    for number, (value, type_) in enumerate(zip(values, types)):
        p.check_type(value, type_, at + 1 + 2 * number)
    p.expect("->")
    results = p.type_list()
    sizes = op.attrs.pop("operandSegmentSizes", None)
    if sizes is not None and sum(sizes) != len(values):
        raise p.error(f"'{op.name}' op operandSegmentSizes do not add up to {len(values)} operands", at)
    _distribute(p, op, values, sizes, at)
    return results


def _distribute(p: Parser, op: Operation, values: list[Value], sizes: list[int] | None, at: int) -> None:
    form = op.spec.form
    if form == "dps":
        _distribute_clauses(op, values, sizes)
        check_arity(p, op, at)
        return
    plain, named = _SEGMENTS.get(form, (len(values), ()))
    op.ins = values[:plain]
    rest = values[plain:]
    if sizes is None:
        if any(name.endswith("*") for name in named) and rest:
            raise p.error(f"'{op.name}' op requires operandSegmentSizes in its generic form", at)
        sizes = [1] * plain + [1] * len(rest)
    for name, size in zip(named, sizes[plain:]):
        taken, rest = rest[:size], rest[size:]
        if name.endswith("*"):
            op.named[name[:-1]] = taken
        elif taken:
            op.named[name] = taken[0]


def _distribute_clauses(op: Operation, values: list[Value], sizes: list[int] | None) -> None:
    if sizes is None:
        outs = op.spec.outs_range[0]
    else:
        outs = sum(sizes[-len(op.spec.outs) :]) if op.spec.outs else 0
    split = len(values) - outs
    op.ins, op.outs = values[:split], values[split:]


SYNTAX["generic"] = parse_generic
