"""Assembly formats of pointers, views, tiles and every `ins(...) outs(...)` operation, one function per form.

A function reads the text after the operation's name, fills the operation and returns the types of its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dialect import types as T
from ..dialect.ir import Operation, Value
from ..errors import AssemblerError

if TYPE_CHECKING:
    from .parser import Parser

Syntax = Callable[["Parser", Operation], "list[T.Type] | None"]
SYNTAX: dict[str, Syntax] = {}


def form(name: str) -> Callable[[Syntax], Syntax]:
    def register(function: Syntax) -> Syntax:
        SYNTAX[name] = function
        return function

    return register


def optional_attrs(p: Parser, op: Operation) -> None:
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


@form("dps")
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
    spec = op.spec
    low, high = spec.ins_range
    if not low <= len(op.ins) <= high:
        raise _arity_error(p, op, at, "ins", len(op.ins), low, high)
    low, high = spec.outs_range
    if not low <= len(op.outs) <= high:
        raise _arity_error(p, op, at, "outs", len(op.outs), low, high)


def _arity_error(p: Parser, op: Operation, at: int, clause: str, count: int, low: int, high: int) -> AssemblerError:
    wanted = str(low) if low == high else f"{low} to {high}" if high < 99 else f"at least {low}"
    return p.error(f"'{op.name}' op expects {wanted} operands in '{clause}', got {count}", at)


@form("tgetval")
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


@form("addptr")
def _addptr(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@form("cast")
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


@form("make_tensor_view")
def _make_tensor_view(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.named["shape"] = _bracketed(p, "shape")
    p.expect(",")
    op.named["strides"] = _bracketed(p, "strides")
    optional_attrs(p, op)
    p.expect(":")
    view = p.type()
    source = op.ins[0].type
    if isinstance(view, T.TensorViewType) and isinstance(source, T.PtrType) and source.elem is not view.elem:
        p.check_type(op.ins[0], T.ptr(view.elem, source.space), at)
    return [view]


@form("partition_view")
def _partition_view(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.named["offsets"] = _bracketed(p, "offsets")
    p.expect(",")
    op.named["sizes"] = _bracketed(p, "sizes")
    optional_attrs(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


@form("view_query")
def _view_query(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@form("load_scalar")
def _load_scalar(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    op.ins.append(p.use())
    p.expect("]")
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@form("store_scalar")
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


@form("alloc")
def _alloc(p: Parser, op: Operation):
    while p.tokens[p.i] in ("addr", "valid_row", "valid_col"):
        key = p.take()
        p.expect("=")
        op.named[key] = p.use()
    optional_attrs(p, op)
    p.expect(":")
    return [p.type()]


@form("multi_tile_get")
def _multi_tile_get(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    p.expect("[")
    op.ins.append(p.use())
    p.expect("]")
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]


@form("subview")
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
    optional_attrs(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


def comma_operands(p: Parser, op: Operation, count: int) -> int:
    at = p.i
    for number in range(count):
        if number:
            p.expect(",")
        op.ins.append(p.use())
    return at


@form("set_validshape")
def _set_validshape(p: Parser, op: Operation):
    at = comma_operands(p, op, 3)
    p.typed(op.ins[:1], at)


@form("get_validshape")
def _get_validshape(p: Parser, op: Operation):
    at = comma_operands(p, op, 1)
    p.typed(op.ins, at)
    return [T.INDEX, T.INDEX]


@form("tassign")
def _tassign(p: Parser, op: Operation):
    at = comma_operands(p, op, 2)
    p.typed(op.ins[:1], at)
    p.expect("->")
    return [p.type()]
