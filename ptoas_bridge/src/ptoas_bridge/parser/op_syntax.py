"""Assembly formats of the operations, one function per form of the operation table.

A function reads the text after the operation's name, fills the operation and returns the types of its results.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dialect import types as T
from ..dialect.enums import EnumAttr
from ..dialect.foreign_ops import FLOAT_PREDICATES, INT_PREDICATES
from ..dialect.ir import Operation, Value

if TYPE_CHECKING:
    from .parser import Parser

Syntax = Callable[["Parser", Operation], "list[T.Type] | None"]
SYNTAX: dict[str, Syntax] = {}


def _form(name: str) -> Callable[[Syntax], Syntax]:
    def register(function: Syntax) -> Syntax:
        SYNTAX[name] = function
        return function

    return register


def _optional_attrs(p: Parser, op: Operation) -> None:
    if p.tokens[p.i] == "{":
        op.attrs.update(p.attr_dict(op.spec.attrs))


# --- ins(...) outs(...) ------------------------------------------------------------------------------------------


def _clause(p: Parser, op: Operation, into: list[Value]) -> None:
    """`( %a, %b {attrs} : T, T [fp %f : T] [, %q : i64] )` after the keyword `ins` or `outs`."""
    tokens = p.tokens
    p.expect("(")
    pending: list[tuple[Value, int]] = []
    while True:
        token = tokens[p.i]
        if token and token[0] == "%":
            pending.append((p.use(), p.i - 1))
        elif token == ":":
            p.i += 1
            for number, (value, at) in enumerate(pending):
                if number:
                    p.expect(",")
                type_ = p.type()
                if value.type is not type_:
                    p.check_type(value, type_, at)
                into.append(value)
            pending = []
        elif token == ",":
            p.i += 1
        elif token == ")":
            if pending:
                raise p.error("expected ':' and the operand types")
            p.i += 1
            return
        elif token == "{":
            op.attrs.update(p.attr_dict(op.spec.attrs))
        elif token in ("fp", "pre_quant"):
            p.i += 1
            value = p.use()
            p.typed([value], p.i - 1)
            op.named[token] = value
        elif token in ('"row"', '"col"'):
            p.i += 1
            op.attrs["axis"] = token[1:-1]
        else:
            raise p.error(f"expected ')' or ',', got '{token or 'end of file'}'")


_LOAD_OPTIONS = ("pad_mode", "pad_value", "left_padding_num", "right_padding_num", "init_out_buffer", "init_condition")


@_form("dps")
def parse_dps(p: Parser, op: Operation) -> list[T.Type] | None:
    """`ins(...) outs(...) {attrs}`, with an optional trailing result type."""
    at = p.i
    if p.tokens[p.i] == "ins":
        p.i += 1
        _clause(p, op, op.ins)
    elif op.spec.ins_range[0]:
        raise p.error(f"expected 'ins(' after '{op.name}', got '{p.tokens[p.i]}'")
    if p.tokens[p.i] == "outs":
        p.i += 1
        _clause(p, op, op.outs)
    elif op.spec.outs_range[0]:
        raise p.error(f"expected 'outs(', got '{p.tokens[p.i]}'")
    if p.tokens[p.i] == "{":
        op.attrs.update(p.attr_dict(op.spec.attrs))
    while p.tokens[p.i] in _LOAD_OPTIONS:
        _load_option(p, op)
    check_arity(p, op, at)
    if p.accept("->"):
        return [p.type()]
    return None


def _load_option(p: Parser, op: Operation) -> None:
    key = p.take()
    p.expect("=")
    if p.tokens[p.i].startswith("%"):
        at = p.i
        op.named[key] = p.use()
        if p.tokens[p.i] == ":":
            p.typed([op.named[key]], at)
    else:
        op.attrs[key] = p.attr_value("padmode" if key == "pad_mode" else None)


def check_arity(p: Parser, op: Operation, at: int) -> None:
    """Fail when the number of clause operands does not fit the table."""
    for clause, values, (low, high) in (
        ("ins", op.ins, op.spec.ins_range),
        ("outs", op.outs, op.spec.outs_range),
    ):
        if not low <= len(values) <= high:
            wanted = str(low) if low == high else f"{low} to {high}" if high < 99 else f"at least {low}"
            raise p.error(f"'{op.name}' op expects {wanted} operands in '{clause}', got {len(values)}", at)


@_form("tgetval")
def _tgetval(p: Parser, op: Operation):
    p.expect("ins")
    _clause(p, op, op.ins)
    check_arity_ins(p, op)
    p.expect("outs")
    p.expect(":")
    return [p.type()]


def check_arity_ins(p: Parser, op: Operation) -> None:
    if len(op.ins) != len(op.spec.ins):
        raise p.error(f"'{op.name}' op expects {len(op.spec.ins)} operands in 'ins', got {len(op.ins)}", op.at)


# --- pointers and views ------------------------------------------------------------------------------------------


@_form("addptr")
def _addptr(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@_form("cast")
def _cast(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


def _bracketed(p: Parser, key: str) -> list[Value]:
    p.expect(key)
    p.expect("=")
    p.expect("[")
    return p.uses("]")


@_form("make_tensor_view")
def _make_tensor_view(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.named["shape"] = _bracketed(p, "shape")
    p.expect(",")
    op.named["strides"] = _bracketed(p, "strides")
    _optional_attrs(p, op)
    p.expect(":")
    view = p.type()
    source = op.ins[0].type
    if isinstance(view, T.TensorViewType) and isinstance(source, T.PtrType) and source.elem is not view.elem:
        p.check_type(op.ins[0], T.ptr(view.elem, source.space), at)
    return [view]


@_form("partition_view")
def _partition_view(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.named["offsets"] = _bracketed(p, "offsets")
    p.expect(",")
    op.named["sizes"] = _bracketed(p, "sizes")
    _optional_attrs(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


@_form("view_query")
def _view_query(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@_form("load_scalar")
def _load_scalar(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    op.ins.append(p.use())
    p.expect("]")
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@_form("store_scalar")
def _store_scalar(p: Parser, op: Operation):
    value_at = p.i
    value = p.use()
    p.expect(",")
    ptr_at = p.i
    ptr = p.use()
    p.expect("[")
    offset = p.use()
    p.expect("]")
    op.ins = [value, ptr, offset]
    p.expect(":")
    p.check_type(ptr, p.type(), ptr_at)
    p.expect(",")
    p.check_type(value, p.type(), value_at)


# --- tiles -------------------------------------------------------------------------------------------------------


@_form("alloc")
def _alloc(p: Parser, op: Operation):
    while p.tokens[p.i] in ("addr", "valid_row", "valid_col"):
        key = p.take()
        p.expect("=")
        op.named[key] = p.use()
    _optional_attrs(p, op)
    p.expect(":")
    return [p.type()]


@_form("multi_tile_get")
def _multi_tile_get(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    op.ins.append(p.use())
    p.expect("]")
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@_form("subview")
def _subview(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    op.named["offsets"] = p.uses("]")
    p.expect("sizes")
    op.attrs["sizes"] = p.attr_value()
    if p.accept("valid"):
        p.expect("[")
        op.named["valid"] = p.uses("]")
    _optional_attrs(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


def _comma_operands(p: Parser, op: Operation, count: int) -> int:
    at = p.i
    for number in range(count):
        if number:
            p.expect(",")
        op.ins.append(p.use())
    return at


@_form("set_validshape")
def _set_validshape(p: Parser, op: Operation):
    at = _comma_operands(p, op, 3)
    p.typed(op.ins[:1], at)


@_form("get_validshape")
def _get_validshape(p: Parser, op: Operation):
    at = _comma_operands(p, op, 1)
    p.typed(op.ins, at)
    return [T.INDEX, T.INDEX]


@_form("tassign")
def _tassign(p: Parser, op: Operation):
    at = _comma_operands(p, op, 2)
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


# --- synchronisation ---------------------------------------------------------------------------------------------


@_form("flag")
def _flag(p: Parser, op: Operation):
    """`[src, dst, event]`; the two endpoints are pipes for flags and events for record/wait_event."""
    endpoint = "pipe" if "flag" in op.name else "pipe_event_type"
    p.expect("[")
    op.attrs["src"] = _endpoint(p, endpoint)
    p.expect(",")
    op.attrs["dst"] = _endpoint(p, endpoint)
    p.expect(",")
    if p.tokens[p.i].startswith("%"):
        op.ins = [p.use()]
    else:
        op.attrs["event"] = p.enum("event")
    p.expect("]")
    _optional_attrs(p, op)


def _endpoint(p: Parser, kind: str) -> EnumAttr:
    token = p.tokens[p.i]
    if kind == "pipe_event_type" and "sync_op_type" in token:
        return EnumAttr("pipe_event_type", p.enum("sync_op_type").value)
    return p.enum(kind)


@_form("barrier")
def _barrier(p: Parser, op: Operation):
    op.attrs["pipe"] = p.enum("pipe")
    _optional_attrs(p, op)


@_form("barrier_sync")
def _barrier_sync(p: Parser, op: Operation):
    p.expect("[")
    op.attrs["event_type"] = _endpoint(p, "pipe_event_type")
    p.expect("]")


@_form("buffer_id")
def _buffer_id(p: Parser, op: Operation):
    p.expect("[")
    op.attrs["event_type"] = _endpoint(p, "pipe_event_type")
    p.expect(",")
    op.attrs["buffer"] = p.integer()
    p.expect("]")
    _optional_attrs(p, op)


@_form("cross_core")
def _cross_core(p: Parser, op: Operation):
    op.attrs["pipe"] = p.enum("pipe")
    p.expect(",")
    if p.tokens[p.i].startswith("%"):
        op.ins = [p.use()]
    else:
        op.attrs["event"] = p.integer()
    _optional_attrs(p, op)


@_form("unary_typed")
def _unary_typed(p: Parser, op: Operation):
    at = _comma_operands(p, op, 1)
    p.typed(op.ins, at)


@_form("syncall")
def _syncall(p: Parser, op: Operation):
    p.expect("(")
    at = p.i
    while p.tokens[p.i].startswith("%"):
        op.ins.append(p.use())
        p.accept(",")
    if op.ins:
        p.typed(op.ins, at)
    p.expect(")")
    p.expect("mode")
    p.expect("=")
    op.attrs["mode"] = p.enum("sync_all_mode")
    p.expect(",")
    p.expect("core_type")
    p.expect("=")
    op.attrs["core_type"] = p.enum("sync_core_type")


@_form("fence")
def _fence(p: Parser, op: Operation):
    op.attrs["scope"] = p.enum("fence_scope")


@_form("cacheinvalid")
def _cacheinvalid(p: Parser, op: Operation):
    if p.accept("all"):
        op.attrs["space"] = p.enum("address_space")
        return
    at = p.i
    op.ins = [p.use()]
    p.expect("single_cache_line")
    p.typed(op.ins, at)


@_form("declare")
def _declare(p: Parser, op: Operation):
    _optional_attrs(p, op)
    p.expect("->")
    return [p.type()]


@_form("event_array_get")
def _event_array_get(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    if p.tokens[p.i].startswith("%"):
        op.ins.append(p.use())
    else:
        op.attrs["index"] = p.integer()
    p.expect("]")
    p.typed(op.ins[:1], at)
    if p.accept("->"):
        return [p.type()]
    return [T.INDEX]


@_form("event_array_set")
def _event_array_set(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    if p.tokens[p.i].startswith("%"):
        op.ins.append(p.use())
    else:
        op.attrs["index"] = p.integer()
    p.expect("]")
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins[:1], at)
    while p.accept(","):
        p.type()


# --- cross-core pipes --------------------------------------------------------------------------------------------

_PIPE_OPERANDS = ("gm_slot_buffer", "gm_slot_tensor", "c2v_consumer_buf", "v2c_consumer_buf")


@_form("initialize_pipe")
def _initialize_pipe(p: Parser, op: Operation):
    _optional_attrs(p, op)
    p.expect("(")
    last = -1
    while not p.accept(")"):
        at = p.i
        key = p.take()
        if key not in _PIPE_OPERANDS:
            raise p.error(f"expected one of {', '.join(_PIPE_OPERANDS)}, got '{key}'", at)
        if _PIPE_OPERANDS.index(key) <= last:
            raise p.error(f"pipe operands come once each in the order {', '.join(_PIPE_OPERANDS)}", at)
        last = _PIPE_OPERANDS.index(key)
        p.expect("=")
        value_at = p.i
        op.named[key] = p.use()
        p.typed([op.named[key]], value_at)
        if not p.accept(","):
            p.expect(")")
            break
    _optional_attrs(p, op)


@_form("pipe_push")
def _pipe_push(p: Parser, op: Operation):
    p.accept("ins")
    p.expect("(")
    at = p.i
    op.ins = [p.use()]
    p.typed(op.ins, at)
    p.expect(")")
    _optional_attrs(p, op)


@_form("pipe_pop")
def _pipe_pop(p: Parser, op: Operation):
    if p.accept("("):
        op.ins = p.uses(")")
    _optional_attrs(p, op)
    p.expect("->")
    return [p.type()]


@_form("pipe_free")
def _pipe_free(p: Parser, op: Operation):
    if p.accept("("):
        at = p.i
        op.ins = [p.use()]
        p.typed(op.ins, at)
        p.expect(")")
    _optional_attrs(p, op)


# --- runtime values, sections, locals ----------------------------------------------------------------------------


@_form("runtime_value")
def _runtime_value(p: Parser, op: Operation):
    if p.accept(":"):
        return [p.type()]
    return [T.I64]


@_form("nullary")
def _nullary(p: Parser, op: Operation):
    _optional_attrs(p, op)


@_form("section")
def _section(p: Parser, op: Operation):
    op.regions = [p.region()]


@_form("print")
def _print(p: Parser, op: Operation):
    p.expect("ins")
    p.expect("(")
    at = p.i
    op.attrs["format"] = p.attr_value("str")
    while p.accept(","):
        op.ins.append(p.use())
    if op.ins:
        p.typed(op.ins, at + 2)
    p.expect(")")


def _indices(p: Parser, op: Operation) -> None:
    """`[%i, %j]` (local arrays) or `[0, 1]` (struct paths)."""
    p.expect("[")
    if p.tokens[p.i].startswith("%"):
        op.named["indices"] = p.uses("]")
        return
    path = [p.integer()]
    while p.accept(","):
        path.append(p.integer())
    p.expect("]")
    op.attrs["path"] = path


@_form("array_get")
def _array_get(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    _indices(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


@_form("array_set")
def _array_set(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    _indices(p, op)
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins, at)


@_form("paren_call")
def _paren_call(p: Parser, op: Operation):
    """`(%a, %b : T, T) {attrs} [-> T]`."""
    p.expect("(")
    at = p.i
    while p.tokens[p.i].startswith("%"):
        op.ins.append(p.use())
        p.accept(",")
    p.typed(op.ins, at)
    p.expect(")")
    _optional_attrs(p, op)
    check_arity_ins(p, op)
    if p.accept("->"):
        return [p.type()]
    return None


@_form("comm")
def _comm(p: Parser, op: Operation):
    """`(%a, %b, buf(%x, %y), group(%g, ...) : T, ...) {attrs} [-> T]`."""
    p.expect("(")
    at = p.i
    plain: list[Value] = []
    ordered: list[Value] = []
    while p.tokens[p.i] != ":":
        token = p.tokens[p.i]
        if token in ("buf", "recv", "group"):
            p.i += 1
            p.expect("(")
            op.named[token] = p.uses(")")
            ordered += op.named[token]
        else:
            plain.append(p.use())
            ordered.append(plain[-1])
        if not p.accept(","):
            break
    op.ins = plain
    p.typed(ordered, at)
    p.expect(")")
    _optional_attrs(p, op)
    if len(op.ins) != len(op.spec.ins):
        raise p.error(f"'{op.name}' op expects {len(op.spec.ins)} operands, got {len(op.ins)}", op.at)
    if p.accept("->"):
        return [p.type()]
    return [T.I1] if op.spec.results else None


# --- arith and scf -----------------------------------------------------------------------------------------------


@_form("constant")
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
    if not token or not (token[0].isdigit() or token[0] == "-"):
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


@_form("arith_binary")
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


@_form("arith_unary")
def _arith_unary(p: Parser, op: Operation):
    at = _comma_operands(p, op, 1)
    _flags(p)
    p.typed(op.ins, at)
    return [op.ins[0].type]


@_form("arith_wide")
def _arith_wide(p: Parser, op: Operation):
    at = _comma_operands(p, op, 2)
    p.expect(":")
    type_ = p.type()
    p.check_type(op.ins[0], type_, at)
    p.check_type(op.ins[1], type_, at + 2)
    if p.accept(","):
        return [type_, p.type()]
    return [type_, T.I1 if op.name == "arith.addui_extended" else type_]


@_form("arith_cast")
def _arith_cast(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.typed(op.ins, at)
    p.expect("to")
    return [p.type()]


@_form("compare")
def _compare(p: Parser, op: Operation):
    known = INT_PREDICATES if op.name.endswith("cmpi") else FLOAT_PREDICATES
    predicate = p.tokens[p.i].strip('"')
    if predicate not in known:
        raise p.error(f"unknown predicate '{predicate}'; expected one of {', '.join(known)}")
    p.i += 1
    op.attrs["predicate"] = predicate
    p.expect(",")
    at = _comma_operands(p, op, 2)
    _flags(p)
    p.expect(":")
    type_ = p.type()
    p.check_type(op.ins[0], type_, at)
    p.check_type(op.ins[1], type_, at + 2)
    return [T.I1]


@_form("select")
def _select(p: Parser, op: Operation):
    at = _comma_operands(p, op, 3)
    p.expect(":")
    type_ = p.type()
    if p.accept(","):
        type_ = p.type()
    p.check_type(op.ins[0], T.I1, at)
    p.check_type(op.ins[1], type_, at + 2)
    p.check_type(op.ins[2], type_, at + 4)
    return [type_]


@_form("yield")
def _yield(p: Parser, op: Operation):
    at = p.i
    while p.tokens[p.i].startswith("%") and p.tokens[p.i + 1] != "=":
        op.ins.append(p.use())
        if not p.accept(","):
            break
    if op.ins:
        p.typed(op.ins, at)


@_form("condition")
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


@_form("call")
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


@_form("scf_for")
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
    _optional_attrs(p, op)
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


@_form("scf_if")
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
    _optional_attrs(p, op)
    return types


@_form("scf_while")
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


@_form("scf_execute")
def _scf_execute(p: Parser, op: Operation):
    types = p.type_list() if p.accept("->") else []
    op.regions = [p.region()]
    _terminated(p, op, op.regions[0], types)
    return types


@_form("scf_switch")
def _scf_switch(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.check_type(op.ins[0], T.INDEX, at)
    _optional_attrs(p, op)
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
