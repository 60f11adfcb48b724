"""Functions, calls, loops, events: rules about structure."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.foreign_ops import FLOAT_BINARY, INTEGER_BINARY
from ..dialect.ir import Function, Operation, constant_of
from ..passes.tail import TAIL_HINTS
from .checker import Checker, rule


def check_function(c: Checker, fn: Function) -> None:
    """Rules over a function's signature, attributes and return."""

    def fail(text: str, at: int = fn.at) -> None:
        raise c.module.source.error(at, text, source_loc=fn.loc)

    if fn.is_entry and fn.result_types:
        fail("PTO entry functions must return void")
    hint = fn.attrs.get("pto.auto_sync_tail_hint", "default")
    if hint not in TAIL_HINTS:
        fail(f"invalid pto.auto_sync_tail_hint '{hint}'. Expected 'barrier-all' (or 'default') or 'mte3-to-s-event0'.")
    if any(isinstance(t, T.StructType) for t in fn.result_types):
        fail("a struct cannot be returned from a function")
    for type_ in [a.type for a in fn.args] + fn.result_types:
        if isinstance(type_, T.MultiTileType):
            fail("multi_tile_buf is not allowed as function argument or result")
    if len(fn.result_types) > 1:
        fail("functions with more than one result are not supported for C++ emission")
    if fn.body is not None:
        last = fn.body.ops[-1]
        if [v.type for v in last.ins] != fn.result_types:
            wanted = ", ".join(str(t) for t in fn.result_types) or "nothing"
            c.fail(last, f"has {len(last.ins)} operands, but enclosing function (@{fn.name}) returns {wanted}")


def check_calls(c: Checker) -> None:
    """Callees exist, signatures match, and no function calls itself in a circle."""
    edges: dict[str, list[tuple[str, Operation]]] = {}
    for fn in c.module.functions:
        c.function = fn
        edges[fn.name] = []
        for op in fn.body.walk() if fn.body is not None else ():
            if op.name != "func.call":
                continue
            name = op.attrs["callee"]
            callee = c.module.function(name)
            if callee is None:
                c.fail(op, f"'{name}' does not reference a valid function")
            if [v.type for v in op.ins] != [a.type for a in callee.args]:
                c.fail(op, f"operand types do not match the signature of @{name}")
            if [v.type for v in op.results] != callee.result_types and op.results:
                c.fail(op, f"result types do not match the signature of @{name}")
            edges[fn.name].append((name, op))
    done: set[str] = set()
    for name in edges:
        _check_acyclic(c, name, edges, [], done)


def _check_acyclic(c: Checker, name: str, edges: dict, path: list[str], done: set[str]) -> None:
    if name in done:
        return
    for callee, op in edges[name]:
        if callee == name or callee in path:
            raise c.error(op, "recursive function calls are not supported for EmitC C++ emission", bare=True)
        _check_acyclic(c, callee, edges, [*path, name], done)
    done.add(name)


@rule("scf.for")
def _for(c: Checker, op: Operation) -> None:
    step = constant_of(op.ins[2])
    if step is not None and step <= 0:
        c.fail(op, f"constant step operand must be positive, got {step}")


@rule(*("arith." + name for name in INTEGER_BINARY), "arith.cmpi")
def _integer_arith(c: Checker, op: Operation) -> None:
    for number, value in enumerate(op.ins):
        t = value.type
        if not isinstance(t, T.ScalarType) or not t.is_integer or not t.signless:
            c.fail(op, f"operand #{number} must be signless-fixed-width-integer-like, but got '{t}'",
                   "cast with builtin.unrealized_conversion_cast")  # fmt: skip


@rule(*("arith." + name for name in FLOAT_BINARY), "arith.negf", "arith.cmpf")
def _float_arith(c: Checker, op: Operation) -> None:
    for number, value in enumerate(op.ins):
        if not isinstance(value.type, T.ScalarType) or not value.type.is_float:
            c.fail(op, f"operand #{number} must be floating-point-like, but got '{value.type}'")


_CASTS = {
    "extf": ("float", "float"), "truncf": ("float", "float"), "extsi": ("int", "int"), "extui": ("int", "int"),
    "trunci": ("int", "int"), "sitofp": ("int", "float"), "uitofp": ("int", "float"), "fptosi": ("float", "int"),
    "fptoui": ("float", "int"),
}  # fmt: skip


@rule(*("arith." + name for name in _CASTS))
def _cast(c: Checker, op: Operation) -> None:
    name = op.name.removeprefix("arith.")
    for what, t, kind in (
        ("operand #0", op.ins[0].type, _CASTS[name][0]),
        ("result #0", op.result.type, _CASTS[name][1]),
    ):
        if not isinstance(t, T.ScalarType) or t.kind != kind or not t.signless:
            word = "floating-point-like" if kind == "float" else "signless-fixed-width-integer-like"
            c.fail(op, f"{what} must be {word}, but got '{t}'")
    narrow, wide = op.ins[0].type.bits, op.result.type.bits
    if name in ("extf", "extsi", "extui") and narrow >= wide:
        c.fail(op, f"result type '{op.result.type}' must be wider than operand type '{op.ins[0].type}'")
    if name in ("truncf", "trunci") and narrow <= wide:
        c.fail(op, f"result type '{op.result.type}' must be shorter than operand type '{op.ins[0].type}'")


@rule("arith.index_cast", "arith.index_castui")
def _index_cast(c: Checker, op: Operation) -> None:
    types = (op.ins[0].type, op.result.type)
    if types.count(T.INDEX) != 1 or not all(isinstance(t, T.ScalarType) and t.is_integer and t.signless for t in types):
        c.fail(op, f"casts between index and a signless integer, got '{types[0]}' to '{types[1]}'")


@rule("arith.bitcast")
def _bitcast(c: Checker, op: Operation) -> None:
    source, result = op.ins[0].type, op.result.type
    if not isinstance(source, T.ScalarType) or not isinstance(result, T.ScalarType) or source.bits != result.bits:
        c.fail(op, f"casts between types of one width, got '{source}' and '{result}'")


@rule("local_array_get", "local_array_set")
def _local_array(c: Checker, op: Operation) -> None:
    array = op.ins[0].type
    if not isinstance(array, T.LocalArrayType):
        c.fail(op, f"expects a local_array, got '{array}'")
    indices = op.named.get("indices") or []
    if len(indices) != len(array.dims):
        c.fail(op, f"expects {len(array.dims)} indices, got {len(indices)}")
    value = op.result.type if op.results else op.ins[1].type
    if value is not array.elem:
        c.fail(op, f"expects the element type {array.elem}, got {value}")
    for dim, (index, extent) in enumerate(zip(indices, array.dims)):
        constant = constant_of(index)
        if constant is not None and not 0 <= constant < extent:
            c.fail(op, f"index {constant} at dim {dim} is out of range [0, {extent})")


@rule("scf.if", "scf.for", "scf.while", "scf.execute_region", "scf.index_switch", "arith.select")
def _carried_types(c: Checker, op: Operation) -> None:
    """Structs and multi tiles live where they are declared; they are never results."""
    for value in op.results:
        if isinstance(value.type, (T.StructType, T.MultiTileType, T.LocalArrayType)):
            c.fail(op, f"cannot yield or select a value of type '{value.type}'",
                   "declare it before and write its parts inside")  # fmt: skip


@rule("struct_get", "struct_set")
def _struct_path(c: Checker, op: Operation) -> None:
    type_: T.Type = op.ins[0].type
    for index in op.attrs.get("path", ()):
        if not isinstance(type_, T.StructType) or not 0 <= index < len(type_.fields):
            c.fail(op, f"path {op.attrs['path']} does not lead to a field of '{op.ins[0].type}'")
        type_ = type_.fields[index]
    value = op.result.type if op.results else op.ins[1].type
    if value is not type_:
        c.fail(op, f"expects the field type {type_}, got {value}")


@rule("syncall")
def _syncall(c: Checker, op: Operation) -> None:
    if op.attrs["mode"].value == "hard":
        if op.ins:
            c.fail(op, "hard mode takes no operands")
        return
    if not op.ins:
        c.fail(op, "soft mode requires a workspace operand")
    workspace = op.ins[0].type
    elem = getattr(workspace, "elem", None)
    if elem is not T.I32:
        c.fail(op, f"expects an i32 workspace pointer or view, got '{workspace}'")
    dims = getattr(workspace, "dims", ())
    count = 1
    for extent in dims:
        count *= extent
    if dims and T.DYNAMIC not in dims and count < 16:
        c.fail(op, f"expects a workspace of at least 16 elements, got {count}")


@rule("sync.set", "sync.wait")
def _cross_core(c: Checker, op: Operation) -> None:
    if c.arch != "a3" or c.function is None or c.function.body is None:
        return
    if not any(o.name == "pto.set_ffts" for o in c.function.body.walk()):
        c.fail(op, "A3 inter-core sync requires explicit `pto.set_ffts` in the same function")


@rule("set_flag", "wait_flag")
def _flag(c: Checker, op: Operation) -> None:
    if op.attrs["src"] == op.attrs["dst"]:
        c.fail(op, "expects the two pipes to differ; use pto.barrier within one pipe")


@rule("inttoptr")
def _inttoptr(c: Checker, op: Operation) -> None:
    if op.ins[0].type is not T.I64:
        c.fail(op, f"operand must be i64, got '{op.ins[0].type}'")
    result = op.result
    for user in c.function.body.walk():
        if result in tuple(user.operands()) and user.name not in ("pto.load_scalar", "pto.store_scalar"):
            c.fail(op, "result may only be used as the pointer operand of pto.load_scalar or pto.store_scalar")


@rule("comm.tput", "comm.tget")
def _put_get(c: Checker, op: Operation) -> None:
    dst, src = op.ins[0].type, op.ins[1].type
    for role, view in (("dst", dst), ("src", src)):
        if not isinstance(view, T.PartitionViewType):
            c.fail(op, f"expects {role} to be a partition_tensor_view, got '{view}'")
    if dst.elem is not src.elem:
        c.fail(op, f"expects dst and src to have the same element type, got {dst.elem} and {src.elem}")
    if dst.dims != src.dims:
        c.fail(op, "expects dst and src to have the same shape")
    staging = op.named.get("buf") or []
    if not 1 <= len(staging) <= 2:
        c.fail(op, f"expects one or two staging tiles in buf(...), got {len(staging)}")
    for value in staging:
        if c.tile(op, value, "buf").loc != "vec":
            c.fail(op, f"expects staging tiles to use loc=vec, got loc={value.type.loc}")


@rule("comm.tnotify", "comm.twait", "comm.ttest")
def _signal(c: Checker, op: Operation) -> None:
    signal, value = op.ins[0].type, op.ins[1].type
    if getattr(signal, "elem", None) is not T.I32:
        c.fail(op, f"expects an i32 signal, got '{signal}'")
    if value is not T.I32:
        c.fail(op, f"expects an i32 value, got '{value}'")


@rule("comm.tbroadcast", "comm.tgather", "comm.tscatter", "comm.treduce")
def _collective(c: Checker, op: Operation) -> None:
    group = op.named.get("group") or []
    if not group:
        c.fail(op, "expects a non-empty group(...)")
    if len({v.type for v in group}) != 1:
        c.fail(op, "expects all group members to have the same type")
    root = op.attrs.get("root", 0)
    if not 0 <= root < len(group):
        c.fail(op, f"expects root to be in [0, {len(group)}), got {root}")
