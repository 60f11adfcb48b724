"""Assembly formats of synchronisation, pipes, runtime values, locals and communication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialect import types as T
from ..dialect.enums import EnumAttr
from ..dialect.ir import Operation, Value
from .op_syntax import check_arity_ins, comma_operands, form, optional_attrs

if TYPE_CHECKING:
    from .parser import Parser


# --- synchronisation ---------------------------------------------------------------------------------------------


@form("flag")
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
    optional_attrs(p, op)


def _endpoint(p: Parser, kind: str) -> EnumAttr:
    token = p.tokens[p.i]
    if kind == "pipe_event_type" and "sync_op_type" in token:
        return EnumAttr("pipe_event_type", p.enum("sync_op_type").value)
    return p.enum(kind)


@form("barrier")
def _barrier(p: Parser, op: Operation):
    op.attrs["pipe"] = p.enum("pipe")
    optional_attrs(p, op)


@form("barrier_sync")
def _barrier_sync(p: Parser, op: Operation):
    p.expect("[")
    op.attrs["event_type"] = _endpoint(p, "pipe_event_type")
    p.expect("]")


@form("buffer_id")
def _buffer_id(p: Parser, op: Operation):
    p.expect("[")
    op.attrs["event_type"] = _endpoint(p, "pipe_event_type")
    p.expect(",")
    op.attrs["buffer"] = p.integer()
    p.expect("]")
    optional_attrs(p, op)


@form("cross_core")
def _cross_core(p: Parser, op: Operation):
    op.attrs["pipe"] = p.enum("pipe")
    p.expect(",")
    if p.tokens[p.i].startswith("%"):
        op.ins = [p.use()]
    else:
        op.attrs["event"] = p.integer()
    optional_attrs(p, op)


@form("unary_typed")
def _unary_typed(p: Parser, op: Operation):
    at = comma_operands(p, op, 1)
    p.typed(op.ins, at)


@form("syncall")
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


@form("fence")
def _fence(p: Parser, op: Operation):
    op.attrs["scope"] = p.enum("fence_scope")


@form("cacheinvalid")
def _cacheinvalid(p: Parser, op: Operation):
    if p.accept("all"):
        op.attrs["space"] = p.enum("address_space")
        return
    at = p.i
    op.ins = [p.use()]
    p.expect("single_cache_line")
    p.typed(op.ins, at)


@form("declare")
def _declare(p: Parser, op: Operation):
    optional_attrs(p, op)
    p.expect("->")
    return [p.type()]


@form("event_array_get")
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


@form("event_array_set")
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


@form("initialize_pipe")
def _initialize_pipe(p: Parser, op: Operation):
    optional_attrs(p, op)
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
    optional_attrs(p, op)


@form("pipe_push")
def _pipe_push(p: Parser, op: Operation):
    p.accept("ins")
    p.expect("(")
    at = p.i
    op.ins = [p.use()]
    p.typed(op.ins, at)
    p.expect(")")
    optional_attrs(p, op)


@form("pipe_pop")
def _pipe_pop(p: Parser, op: Operation):
    if p.accept("("):
        op.ins = p.uses(")")
    optional_attrs(p, op)
    p.expect("->")
    return [p.type()]


@form("pipe_free")
def _pipe_free(p: Parser, op: Operation):
    if p.accept("("):
        at = p.i
        op.ins = [p.use()]
        p.typed(op.ins, at)
        p.expect(")")
    optional_attrs(p, op)


# --- runtime values, sections, locals ----------------------------------------------------------------------------


@form("runtime_value")
def _runtime_value(p: Parser, op: Operation):
    if p.accept(":"):
        return [p.type()]
    return [T.I64]


@form("nullary")
def _nullary(p: Parser, op: Operation):
    optional_attrs(p, op)


@form("section")
def _section(p: Parser, op: Operation):
    op.regions = [p.region()]


@form("print")
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


@form("array_get")
def _array_get(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    _indices(p, op)
    p.typed(op.ins, at)
    p.expect("->")
    return [p.type()]


@form("array_set")
def _array_set(p: Parser, op: Operation):
    at = p.i
    op.ins = [p.use()]
    _indices(p, op)
    p.expect(",")
    op.ins.append(p.use())
    p.typed(op.ins, at)


@form("paren_call")
def _paren_call(p: Parser, op: Operation):
    """`(%a, %b : T, T) {attrs} [-> T]`."""
    p.expect("(")
    at = p.i
    while p.tokens[p.i].startswith("%"):
        op.ins.append(p.use())
        p.accept(",")
    p.typed(op.ins, at)
    p.expect(")")
    optional_attrs(p, op)
    check_arity_ins(p, op)
    if p.accept("->"):
        return [p.type()]
    return None


@form("comm")
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
    optional_attrs(p, op)
    if len(op.ins) != len(op.spec.ins):
        raise p.error(f"'{op.name}' op expects {len(op.spec.ins)} operands, got {len(op.ins)}", op.at)
    if p.accept("->"):
        return [p.type()]
    return [T.I1] if op.spec.results else None
