"""Assembly formats of the accepted arith, scf and func operations."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ..dialect import types as T
from ..dialect.foreign_ops import FLOAT_PREDICATES, INT_PREDICATES
from ..dialect.ir import Operation, Value
from .op_syntax import comma_operands, form, optional_attrs

if TYPE_CHECKING:
    from .parser import Parser


@form("constant")
def _constant(p: Parser, op: Operation):
    if p.tokens[p.i] == "{":
        p.attr_dict({})
    token = p.take()
    if token in ("true", "false"):
        op.attrs["value"] = token == "true"
        if p.accept(":"):
            return [p.type()]
        return [T.I1]
    if token.startswith("dense"):
        op.attrs["value"] = token
        p.expect(":")
        return [p.type()]
    at = p.i - 1
    if not token or not token.lstrip("-")[:1].isdigit():
        raise p.error(f"expected a constant, got '{token}'", at)
    type_: T.Type = T.I64
    if p.accept(":"):
        type_ = p.type()
    elif "." in token:
        type_ = T.SCALARS["f64"]
    if not isinstance(type_, T.ScalarType):
        raise p.error(f"a constant needs a scalar type, got '{type_}'", at)
    op.attrs["value"] = number(p, token, type_, at)
    return [type_]


def number(p: Parser, token: str, type_: T.ScalarType, at: int) -> int | float:
    """The value of a literal; hexadecimal floats hold the bit pattern."""
    if type_.is_float:
        if "0x" in token:
            return _from_bits(int(token, 16), type_)
        if "." not in token and "e" not in token.lower():
            raise p.error(f"unexpected decimal integer literal for a floating point value, write {token}.0", at)
        return float(token)
    if "." in token or ("e" in token.lower() and "0x" not in token):
        raise p.error(f"floating point literal '{token}' for the integer type '{type_}'", at)
    value = int(token, 16 if "0x" in token else 10)
    bits = type_.bits if type_.kind == "int" else 64
    if not -(1 << (bits - 1)) <= value < (1 << bits):
        raise p.error(f"integer constant out of range for attribute of type '{type_}'", at)
    return value


def _from_bits(bits: int, type_: T.ScalarType) -> float:
    if type_.text == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    if type_.text == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if type_.text == "f64":
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def _flags(p: Parser) -> None:
    """`overflow<nsw>` and `fastmath<...>` are accepted and carry no meaning here."""
    while p.tokens[p.i] in ("overflow", "fastmath"):
        p.i += 1
        p.expect("<")
        while p.take() != ">":
            pass


@form("arith_binary")
def _arith_binary(p: Parser, op: Operation):
    at = p.i
    left = p.use()
    p.expect(",")
    right = p.use()
    op.ins = [left, right]
    _flags(p)
    p.expect(":")
    type_ = p.type()
    if left.type is not type_:
        p.check_type(left, type_, at)
    if right.type is not type_:
        p.check_type(right, type_, at + 2)
    return [type_]


@form("arith_unary")
def _arith_unary(p: Parser, op: Operation):
    at = comma_operands(p, op, 1)
    _flags(p)
    p.typed(op.ins, at)
    return [op.ins[0].type]


@form("arith_wide")
def _arith_wide(p: Parser, op: Operation):
    at = comma_operands(p, op, 2)
    p.expect(":")
    type_ = p.type()
    p.check_type(op.ins[0], type_, at)
    p.check_type(op.ins[1], type_, at + 2)
    if p.accept(","):
        return [type_, p.type()]
    return [type_, T.I1 if op.name == "arith.addui_extended" else type_]


@form("arith_cast")
def _arith_cast(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.typed(op.ins, at)
    p.expect("to")
    return [p.type()]


@form("compare")
def _compare(p: Parser, op: Operation):
    known = INT_PREDICATES if op.name.endswith("cmpi") else FLOAT_PREDICATES
    predicate = p.tokens[p.i].strip('"')
    if predicate not in known:
        raise p.error(f"unknown predicate '{predicate}'; expected one of {', '.join(known)}")
    p.i += 1
    op.attrs["predicate"] = predicate
    p.expect(",")
    at = comma_operands(p, op, 2)
    _flags(p)
    p.expect(":")
    type_ = p.type()
    p.check_type(op.ins[0], type_, at)
    p.check_type(op.ins[1], type_, at + 2)
    return [T.I1]


@form("select")
def _select(p: Parser, op: Operation):
    at = comma_operands(p, op, 3)
    p.expect(":")
    type_ = p.type()
    if p.accept(","):
        type_ = p.type()
    p.check_type(op.ins[0], T.I1, at)
    p.check_type(op.ins[1], type_, at + 2)
    p.check_type(op.ins[2], type_, at + 4)
    return [type_]


@form("yield")
def _yield(p: Parser, op: Operation):
    at = p.i
    while p.tokens[p.i].startswith("%") and p.tokens[p.i + 1] != "=":
        op.ins.append(p.use())
        if not p.accept(","):
            break
    if op.ins:
        p.typed(op.ins, at)


@form("condition")
def _condition(p: Parser, op: Operation):
    p.expect("(")
    at = p.i
    op.ins = [p.use()]
    p.check_type(op.ins[0], T.I1, at)
    p.expect(")")
    at = p.i
    carried: list[Value] = []
    while p.tokens[p.i].startswith("%"):
        carried.append(p.use())
        if not p.accept(","):
            break
    if carried:
        p.typed(carried, at)
    op.ins += carried


@form("call")
def _call(p: Parser, op: Operation):
    op.attrs["callee"] = p.attr_value("symbol").name
    p.expect("(")
    at = p.i
    op.ins = p.uses(")")
    p.expect(":")
    types_at = p.i
    types = p.type_list()
    if len(types) != len(op.ins):
        raise p.error(f"{len(op.ins)} operands present, but expected {len(types)}", types_at)
    for number, (value, type_) in enumerate(zip(op.ins, types)):
        p.check_type(value, type_, at + 2 * number)
    p.expect("->")
    return p.type_list()


@form("scf_for")
def _scf_for(p: Parser, op: Operation):
    variable_at = p.i
    variable = p.take()
    if not variable.startswith("%"):
        raise p.error("expected the loop variable", variable_at)
    p.expect("=")
    at = p.i
    lower = p.use()
    p.expect("to")
    upper = p.use()
    p.expect("step")
    op.ins = [lower, upper, p.use()]
    names: list[tuple[str, int]] = []
    inits: list[Value] = []
    types: list[T.Type] = []
    if p.accept("iter_args"):
        p.expect("(")
        while not p.accept(")"):
            names.append((p.take(), p.i - 1))
            p.expect("=")
            inits.append(p.use())
            if not p.accept(","):
                p.expect(")")
                break
        p.expect("->")
        types = p.type_list()
        _match_carried(p, inits, types)
    op.named["inits"] = inits
    type_: T.Type = T.INDEX
    if p.accept(":"):
        type_ = p.type()
    for number, value in enumerate(op.ins):
        p.check_type(value, type_, at + 2 * number)
    args = [(variable, type_, variable_at)]
    args += [(name, carried, where) for (name, where), carried in zip(names, types)]
    op.regions = [p.region(args)]
    _terminated(p, op, op.regions[0], types)
    optional_attrs(p, op)
    return types


def _match_carried(p: Parser, inits: list[Value], types: list[T.Type]) -> None:
    if len(inits) != len(types):
        raise p.error(f"mismatch in number of loop-carried values and defined values: {len(inits)} and {len(types)}")
    for value, type_ in zip(inits, types):
        p.check_type(value, type_, p.i - 1)


def _terminated(p: Parser, op: Operation, region, types: list[T.Type], terminator: str = "scf.yield") -> None:
    """A region that yields values ends with `terminator`; one that yields none may leave it out."""
    last = region.ops[-1] if region.ops else None
    if last is None or last.name != terminator:
        if types or terminator != "scf.yield":
            raise p.error(f"'{op.name}' op expects its region to end with '{terminator}'", p.i - 1)
        return
    given = last.ins[1:] if terminator == "scf.condition" else last.ins
    if [v.type for v in given] != list(types):
        wanted = ", ".join(str(t) for t in types)
        raise p.error(f"'{terminator}' op expects operands of types ({wanted})", last.at)


@form("scf_if")
def _scf_if(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.check_type(op.ins[0], T.I1, at)
    types = p.type_list() if p.accept("->") else []
    op.regions = [p.region()]
    _terminated(p, op, op.regions[0], types)
    if p.accept("else"):
        op.regions.append(p.region())
        _terminated(p, op, op.regions[1], types)
    elif types:
        raise p.error("'scf.if' op must have an else block if defining values", op.at)
    optional_attrs(p, op)
    return types


@form("scf_while")
def _scf_while(p: Parser, op: Operation):
    names: list[tuple[str, int]] = []
    inits: list[Value] = []
    if p.accept("("):
        while not p.accept(")"):
            names.append((p.take(), p.i - 1))
            p.expect("=")
            inits.append(p.use())
            if not p.accept(","):
                p.expect(")")
                break
    op.named["inits"] = inits
    p.expect(":")
    before_types = p.type_list()
    p.expect("->")
    types = p.type_list()
    _match_carried(p, inits, before_types)
    before = p.region([(name, type_, at) for (name, at), type_ in zip(names, before_types)])
    _terminated(p, op, before, types, "scf.condition")
    p.expect("do")
    after = p.region(labelled=True)
    if [v.type for v in after.args] != types:
        raise p.error("'scf.while' op expects the arguments of its 'do' block to match its results", op.at)
    _terminated(p, op, after, before_types)
    op.regions = [before, after]
    return types


@form("scf_execute")
def _scf_execute(p: Parser, op: Operation):
    types = p.type_list() if p.accept("->") else []
    op.regions = [p.region()]
    _terminated(p, op, op.regions[0], types)
    return types


@form("scf_switch")
def _scf_switch(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.check_type(op.ins[0], T.INDEX, at)
    optional_attrs(p, op)
    types = p.type_list() if p.accept("->") else []
    cases: list[int] = []
    while p.accept("case"):
        cases.append(p.integer())
        op.regions.append(p.region())
        _terminated(p, op, op.regions[-1], types)
    p.expect("default")
    op.regions.append(p.region())
    _terminated(p, op, op.regions[-1], types)
    op.attrs["cases"] = cases
    return types
