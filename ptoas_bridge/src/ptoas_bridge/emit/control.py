"""Loops, branches, calls and returns."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, Region, Value
from .cpp_types import cpp_type
from .function import FunctionEmitter, emits
from .views import View, declare_view, layout_of, view_of

_TERMINATORS = ("scf.yield", "scf.condition")


Target = str | View


def _declare_results(e: FunctionEmitter, op: Operation) -> list[Target]:
    """Uninitialised variables that the regions assign."""
    targets: list[Target] = []
    for value in op.results:
        if isinstance(value.type, T.TensorViewType):
            targets.append(declare_view(e, value, layout_of(value)))
            continue
        name = e.fresh()
        e.line(f"{cpp_type(value.type)} {name};")
        e.expr[value] = name
        targets.append(name)
    return targets


def _bind(e: FunctionEmitter, arg: Value, target: Target) -> None:
    """Let a region argument read the variables of `target`."""
    if isinstance(target, View):
        e.views[arg] = target
    else:
        e.expr[arg] = target


def _assign(e: FunctionEmitter, targets: list[Target], values: list[Value]) -> None:
    """Parallel assignment: several targets may read each other, so their new values are computed first."""
    pairs: list[tuple[str, str, str]] = []
    for target, value in zip(targets, values):
        if isinstance(target, View):
            source = view_of(e, value)
            pairs.append((target.pointer, source.pointer, f"__gm__ {target.elem}*"))
            pairs += [(t, s, "int64_t") for t, s in zip(target.shape + target.strides, source.shape + source.strides)]
        else:
            pairs.append((target, e.use(value), cpp_type(value.type)))
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    if len(pairs) > 1:
        staged = []
        for target, text, type_ in pairs:
            name = e.fresh()
            e.line(f"{type_} {name} = {text};")
            staged.append((target, name, type_))
        pairs = staged
    for target, text, _ in pairs:
        e.line(f"{target} = {text};")


def _body(e: FunctionEmitter, region: Region) -> list[Value]:
    """The operations of a region without its terminator; the values the terminator passes on."""
    ops = region.ops
    passed: list[Value] = []
    if ops and ops[-1].name in _TERMINATORS:
        passed = ops[-1].ins
        ops = ops[:-1]
    e.indent += 1
    e.operations(ops)
    e.indent -= 1
    return passed


def _close(e: FunctionEmitter, targets: list[Target], values: list[Value]) -> None:
    e.indent += 1
    _assign(e, targets, values)
    e.indent -= 1


@emits("scf.for")
def _for(e: FunctionEmitter, op: Operation) -> None:
    lower, upper, step = (e.settled(v) for v in op.ins)
    region = op.regions[0]
    carried = _declare_results(e, op)
    _assign(e, carried, op.named.get("inits", []))
    variable = e.fresh()
    e.expr[region.args[0]] = variable
    for arg, target in zip(region.args[1:], carried):
        _bind(e, arg, target)
    e.note(region.args[0])
    kind = cpp_type(region.args[0].type)
    e.line(f"for ({kind} {variable} = {lower}; {variable} < {upper}; {variable} += {step}) {{")
    _close(e, carried, _body(e, region))
    e.line("}")


@emits("scf.if")
def _if(e: FunctionEmitter, op: Operation) -> None:
    condition = e.use(op.ins[0])
    targets = _declare_results(e, op)
    e.line(f"if ({condition}) {{")
    _close(e, targets, _body(e, op.regions[0]))
    if len(op.regions) > 1:
        e.line("} else {")
        _close(e, targets, _body(e, op.regions[1]))
    e.line("}")


@emits("scf.while")
def _while(e: FunctionEmitter, op: Operation) -> None:
    before, after = op.regions
    carried = []
    for arg, init in zip(before.args, op.named["inits"]):
        name = e.fresh()
        e.note(arg)
        e.line(f"{cpp_type(arg.type)} {name} = {e.use(init)};")
        e.expr[arg] = name
        carried.append(name)
    results = _declare_results(e, op)
    for arg, target in zip(after.args, results):
        _bind(e, arg, target)
    e.line("while (true) {")
    condition, *passed = _body(e, before)
    e.indent += 1
    test = e.settled(condition)
    _assign(e, results, passed)
    e.line(f"if (!{test}) {{")
    e.line("  break;")
    e.line("}")
    e.indent -= 1
    _close(e, carried, _body(e, after))
    e.line("}")


@emits("scf.execute_region")
def _execute_region(e: FunctionEmitter, op: Operation) -> None:
    targets = _declare_results(e, op)
    e.line("{")
    _close(e, targets, _body(e, op.regions[0]))
    e.line("}")


@emits("scf.index_switch")
def _index_switch(e: FunctionEmitter, op: Operation) -> None:
    selector = e.use(op.ins[0])
    targets = _declare_results(e, op)
    e.line(f"switch ({selector}) {{")
    labels = [f"case {number}: {{" for number in op.attrs["cases"]] + ["default: {"]
    for label, region in zip(labels, op.regions):
        e.line(label)
        _close(e, targets, _body(e, region))
        e.line("  break;")
        e.line("}")
    e.line("}")


@emits("scf.yield", "scf.condition")
def _terminator(e: FunctionEmitter, op: Operation) -> None:
    """Handled by the operation that owns the region."""


@emits("func.return")
def _return(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"return {e.use(op.ins[0])};" if op.ins else "return;")


@emits("func.call")
def _call(e: FunctionEmitter, op: Operation) -> None:
    call = f"{op.attrs['callee']}({', '.join(e.use(v) for v in op.ins)})"
    if op.results:
        e.declare(op.result, call)
    else:
        e.line(f"{call};")


@emits("pto.section.cube", "pto.section.vector")
def _section(e: FunctionEmitter, op: Operation) -> None:
    macro = "__DAV_CUBE__" if op.name.endswith("cube") else "__DAV_VEC__"
    e.lines.append(f"#if defined({macro})")
    if op.name.endswith("vector"):
        e.line("set_mask_norm();")
        e.line("set_vector_mask(-1, -1);")
    e.operations(op.regions[0].ops)
    e.lines.append(f"#endif // {macro}")
