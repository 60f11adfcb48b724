"""Prints a module as `.pto` text that parses back to the same program."""

from __future__ import annotations

from pathlib import Path

from .enums import EnumAttr, SymbolRef
from .ir import Function, Module, Operation, Region, Value
from .types import I1, I64, INDEX, ScalarType, Type

_ATTRS_INSIDE = frozenset(
    "pto." + name for name in ("tcmp", "tcmps", "tcvt", "tcolsum", "ttri", "trandom", "tgather", "tscatter", "tmrgsort")
)
_PRINTABLE = (bool, int, float, str, EnumAttr, SymbolRef, list, Type)


def print_module(module: Module) -> str:
    """The whole module as text."""
    attrs = dict(module.attrs)
    if module.arch != "a3":
        attrs.setdefault("pto.target_arch", module.arch)
    header = f"module attributes {_dict(attrs)} {{" if attrs else "module {"
    return "\n".join([header, *(_Printer(fn).function() for fn in module.functions), "}", ""])


def write_dump(module: Module, folder: Path, step: str) -> None:
    """Write the program after `step` as `NN_after_<step>.pto`; the folder is created when missing."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("*_after_*.pto"))) + 1
    (folder / f"{number:02d}_after_{step}.pto").write_text(print_module(module))


def _attr(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value!r} : f32"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_attr(v) for v in value) + "]"
    return str(value)


def _dict(attrs: dict) -> str:
    words = []
    for key, value in attrs.items():
        if not isinstance(value, _PRINTABLE):
            continue
        name = key if all(c.isalnum() or c in "._" for c in key) else f'"{key}"'
        words.append(name if value is True else f"{name} = {_attr(value)}")
    return "{" + ", ".join(words) + "}"


class _Printer:
    """Prints one function; names are kept where they are unique in it."""

    def __init__(self, fn: Function):
        self.fn = fn
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []

    def function(self) -> str:
        fn = self.fn
        args = ", ".join(f"{self.name(a)}: {a.type}" for a in fn.args)
        private = "private " if fn.private else ""
        results = f" -> ({', '.join(map(str, fn.result_types))})" if fn.result_types else ""
        attrs = f" attributes {_dict(fn.attrs)}" if _dict(fn.attrs) != "{}" else ""
        header = f"  func.func {private}@{fn.name}({args}){results}{attrs}"
        if fn.body is None:
            return header
        self.lines.append(header + " {")
        self.region(fn.body, 2)
        self.lines.append("  }" + self.loc(fn.loc))
        return "\n".join(self.lines)

    def name(self, value: Value) -> str:
        found = self.names.get(value)
        if found is None:
            base = value.name.replace("#", "_")
            found, number = base, 0
            while found in self.taken:
                number += 1
                found = f"{base}_{number}" if not base[1:].isdigit() else f"%v{base[1:]}_{number}"
            self.taken.add(found)
            self.names[value] = found
        return found

    def list(self, values: list[Value]) -> str:
        return ", ".join(self.name(v) for v in values)

    @staticmethod
    def types(values: list[Value]) -> str:
        return ", ".join(v.type.text for v in values)

    @staticmethod
    def loc(payload: str | None) -> str:
        return f" loc({payload})" if payload is not None else ""

    def region(self, region: Region, depth: int) -> None:
        for op in region.ops:
            self.operation(op, depth)

    def operation(self, op: Operation, depth: int) -> None:
        pad = "  " * depth
        method = getattr(self, "form_" + op.spec.form)
        # Names of results are fixed before the regions print, so that inner names avoid them.
        results = self.list(op.results)
        prefix = pad + (f"{results} = " if results else "")
        if op.regions:
            method(op, prefix, depth)
            return
        self.lines.append(prefix + method(op).rstrip() + self.loc(op.loc))

    def attrs(self, op: Operation, *skip: str) -> str:
        text = _dict({k: v for k, v in op.attrs.items() if k not in skip})
        return "" if text == "{}" else " " + text

    # --- forms --------------------------------------------------------------------------------------------------

    def form_dps(self, op: Operation) -> str:
        inside = op.name in _ATTRS_INSIDE
        attrs = self.attrs(op, "axis")
        text = op.name
        if op.ins:
            comma = "," if "maskPattern" in op.attrs and inside else ""
            text += f" ins({self.list(op.ins)}{comma + attrs if inside else ''} : {self.types(op.ins)}"
            if "axis" in op.attrs:
                text += f', "{op.attrs["axis"]}"'
            for key in ("fp", "pre_quant"):
                if key in op.named:
                    text += f" {key} {self.name(op.named[key])} : {op.named[key].type}"
            text += ")"
        if op.outs:
            text += f" outs({self.list(op.outs)} : {self.types(op.outs)})"
        text += "" if inside else attrs
        for key, value in op.named.items():
            if key not in ("fp", "pre_quant"):
                text += f" {key} = {self.name(value)} : {value.type}"
        return text + (f" -> {op.result.type}" if op.results else "")

    def form_tgetval(self, op: Operation) -> str:
        return f"{op.name} ins({self.list(op.ins)} : {self.types(op.ins)}) outs : {op.result.type}"

    def form_addptr(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {op.ins[0].type} -> {op.result.type}"

    form_view_query = form_addptr
    form_tassign = form_addptr

    def form_cast(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {self.types(op.ins)} -> {op.result.type}"

    def form_make_tensor_view(self, op: Operation) -> str:
        shape, strides = self.list(op.named["shape"]), self.list(op.named["strides"])
        attrs = self.attrs(op)
        return f"{op.name} {self.list(op.ins)}, shape = [{shape}], strides = [{strides}]{attrs} : {op.result.type}"

    def form_partition_view(self, op: Operation) -> str:
        offsets, sizes = self.list(op.named["offsets"]), self.list(op.named["sizes"])
        text = f"{op.name} {self.list(op.ins)}, offsets = [{offsets}], sizes = [{sizes}]{self.attrs(op)}"
        return f"{text} : {op.ins[0].type} -> {op.result.type}"

    def form_load_scalar(self, op: Operation) -> str:
        pointer, offset = op.ins
        return f"{op.name} {self.name(pointer)}[{self.name(offset)}] : {pointer.type} -> {op.result.type}"

    form_multi_tile_get = form_load_scalar

    def form_store_scalar(self, op: Operation) -> str:
        value, pointer, offset = op.ins
        place = f"{self.name(pointer)}[{self.name(offset)}]"
        return f"{op.name} {self.name(value)}, {place} : {pointer.type}, {value.type}"

    def form_alloc(self, op: Operation) -> str:
        operands = "".join(f" {key} = {self.name(value)}" for key, value in op.named.items() if value is not None)
        return f"{op.name}{operands}{self.attrs(op)} : {op.result.type}"

    def form_subview(self, op: Operation) -> str:
        text = f"{op.name} {self.list(op.ins)}[{self.list(op.named['offsets'])}] sizes {_attr(op.attrs['sizes'])}"
        if op.named.get("valid"):
            text += f" valid [{self.list(op.named['valid'])}]"
        return f"{text} : {op.ins[0].type} -> {op.result.type}"

    def form_set_validshape(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {op.ins[0].type}"

    form_get_validshape = form_set_validshape
    form_unary_typed = form_set_validshape

    def form_flag(self, op: Operation) -> str:
        event = self.list(op.ins) if op.ins else str(op.attrs["event"])
        return f"{op.name}[{op.attrs['src']}, {op.attrs['dst']}, {event}]"

    def form_barrier(self, op: Operation) -> str:
        return f"{op.name} {op.attrs['pipe']}"

    def form_barrier_sync(self, op: Operation) -> str:
        return f"{op.name}[{op.attrs['event_type']}]"

    def form_buffer_id(self, op: Operation) -> str:
        return f"{op.name}[{op.attrs['event_type']}, {op.attrs['buffer']}]{self.attrs(op, 'event_type', 'buffer')}"

    def form_cross_core(self, op: Operation) -> str:
        event = self.list(op.ins) if op.ins else str(op.attrs["event"])
        return f"{op.name} {op.attrs['pipe']}, {event}{self.attrs(op, 'pipe', 'event')}"

    def form_syncall(self, op: Operation) -> str:
        operands = f"{self.list(op.ins)} : {self.types(op.ins)}" if op.ins else ""
        return f"{op.name}({operands}) mode = {op.attrs['mode']}, core_type = {op.attrs['core_type']}"

    def form_fence(self, op: Operation) -> str:
        return f"{op.name} {op.attrs['scope']}"

    def form_cacheinvalid(self, op: Operation) -> str:
        if not op.ins:
            return f"{op.name} all {op.attrs['space']}"
        return f"{op.name} {self.list(op.ins)} single_cache_line : {self.types(op.ins)}"

    def form_declare(self, op: Operation) -> str:
        return f"{op.name}{self.attrs(op, 'resolved_base')} -> {op.result.type}"

    def form_event_array_get(self, op: Operation) -> str:
        index = self.name(op.ins[1]) if len(op.ins) > 1 else op.attrs["index"]
        return f"{op.name} {self.name(op.ins[0])}[{index}] : {op.ins[0].type} -> {op.result.type}"

    def form_event_array_set(self, op: Operation) -> str:
        index = op.attrs["index"] if "index" in op.attrs else self.name(op.ins[1])
        return f"{op.name} {self.name(op.ins[0])}[{index}], {self.name(op.ins[-1])} : {op.ins[0].type}"

    def form_initialize_pipe(self, op: Operation) -> str:
        operands = ", ".join(f"{k} = {self.name(v)} : {v.type}" for k, v in op.named.items())
        return f"{op.name}{self.attrs(op)} ({operands})"

    def form_pipe_push(self, op: Operation) -> str:
        return f"{op.name}({self.list(op.ins)} : {self.types(op.ins)}){self.attrs(op)}"

    def form_pipe_pop(self, op: Operation) -> str:
        operands = f"({self.list(op.ins)})" if op.ins else ""
        return f"{op.name}{operands}{self.attrs(op)} -> {op.result.type}"

    def form_pipe_free(self, op: Operation) -> str:
        operands = f"({self.list(op.ins)} : {self.types(op.ins)})" if op.ins else ""
        return f"{op.name}{operands}{self.attrs(op)}"

    def form_runtime_value(self, op: Operation) -> str:
        return op.name + (f" : {op.result.type}" if op.result.type is not I64 else "")

    def form_nullary(self, op: Operation) -> str:
        return op.name + self.attrs(op)

    def form_print(self, op: Operation) -> str:
        operands = "".join(f", {self.name(v)}" for v in op.ins)
        types = f" : {self.types(op.ins)}" if op.ins else ""
        return f'{op.name} ins("{op.attrs["format"]}"{operands}{types})'

    def _indices(self, op: Operation) -> str:
        if "path" in op.attrs:
            return ", ".join(map(str, op.attrs["path"]))
        return self.list(op.named["indices"])

    def form_array_get(self, op: Operation) -> str:
        return f"{op.name} {self.name(op.ins[0])}[{self._indices(op)}] : {op.ins[0].type} -> {op.result.type}"

    def form_array_set(self, op: Operation) -> str:
        return f"{op.name} {self.name(op.ins[0])}[{self._indices(op)}], {self.name(op.ins[1])} : {self.types(op.ins)}"

    def form_paren_call(self, op: Operation) -> str:
        result = f" -> {op.result.type}" if op.results else ""
        return f"{op.name}({self.list(op.ins)} : {self.types(op.ins)}){self.attrs(op)}{result}"

    def form_comm(self, op: Operation) -> str:
        groups = "".join(f", {key}({self.list(values)})" for key, values in op.named.items())
        values = list(op.operands())
        result = f" -> {op.result.type}" if op.results else ""
        return f"{op.name}({self.list(op.ins)}{groups} : {self.types(values)}){self.attrs(op)}{result}"

    def form_constant(self, op: Operation) -> str:
        value, type_ = op.attrs["value"], op.result.type
        if type_ is I1:
            return f"{op.name} {'true' if value else 'false'}"
        text = value if isinstance(value, str) else format_number(value, type_)
        return f"{op.name} {text} : {type_}"

    def form_arith_binary(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {op.ins[0].type}"

    form_arith_unary = form_arith_binary
    form_arith_wide = form_arith_binary

    def form_arith_cast(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {op.ins[0].type} to {op.result.type}"

    def form_compare(self, op: Operation) -> str:
        return f"{op.name} {op.attrs['predicate']}, {self.list(op.ins)} : {op.ins[0].type}"

    def form_select(self, op: Operation) -> str:
        return f"{op.name} {self.list(op.ins)} : {op.result.type}"

    def form_yield(self, op: Operation) -> str:
        name = "return" if op.name == "func.return" else op.name
        return f"{name} {self.list(op.ins)} : {self.types(op.ins)}" if op.ins else name

    def form_condition(self, op: Operation) -> str:
        condition, *passed = op.ins
        rest = f" {self.list(passed)} : {self.types(passed)}" if passed else ""
        return f"{op.name}({self.name(condition)}){rest}"

    def form_call(self, op: Operation) -> str:
        types = f"({self.types(op.ins)}) -> ({self.types(op.results)})"
        return f"{op.name} @{op.attrs['callee']}({self.list(op.ins)}) : {types}"

    # --- operations with regions --------------------------------------------------------------------------------

    def braces(self, region: Region, depth: int, end: str = "}") -> None:
        self.region(region, depth + 1)
        self.lines.append("  " * depth + end)

    def close(self, op: Operation) -> None:
        self.lines[-1] += self.loc(op.loc)

    def form_scf_for(self, op: Operation, prefix: str, depth: int) -> None:
        region = op.regions[0]
        variable, *carried = region.args
        lower, upper, step = (self.name(v) for v in op.ins)
        text = f"{prefix}{op.name} {self.name(variable)} = {lower} to {upper} step {step}"
        if carried:
            inits = ", ".join(f"{self.name(a)} = {self.name(i)}" for a, i in zip(carried, op.named["inits"]))
            text += f" iter_args({inits}) -> ({self.types(carried)})"
        if variable.type is not INDEX:
            text += f" : {variable.type}"
        self.lines.append(text + " {")
        self.braces(region, depth)
        self.close(op)

    def form_scf_if(self, op: Operation, prefix: str, depth: int) -> None:
        types = f" -> ({self.types(op.results)})" if op.results else ""
        self.lines.append(f"{prefix}{op.name} {self.name(op.ins[0])}{types} {{")
        if len(op.regions) > 1:
            self.braces(op.regions[0], depth, "} else {")
        self.braces(op.regions[-1], depth)
        self.close(op)

    def form_scf_while(self, op: Operation, prefix: str, depth: int) -> None:
        before, after = op.regions
        inits = ", ".join(f"{self.name(a)} = {self.name(i)}" for a, i in zip(before.args, op.named["inits"]))
        clause = f" ({inits})" if inits else ""
        types = f"({self.types(before.args)}) -> ({self.types(op.results)})"
        self.lines.append(f"{prefix}{op.name}{clause} : {types} {{")
        self.braces(before, depth, "} do {")
        if after.args:
            args = ", ".join(f"{self.name(a)} : {a.type}" for a in after.args)
            self.lines.append("  " * depth + f"^bb0({args}):")
        self.braces(after, depth)
        self.close(op)

    def form_scf_execute(self, op: Operation, prefix: str, depth: int) -> None:
        types = f" -> ({self.types(op.results)})" if op.results else ""
        self.lines.append(f"{prefix}{op.name}{types} {{")
        self.braces(op.regions[0], depth)
        self.close(op)

    def form_scf_switch(self, op: Operation, prefix: str, depth: int) -> None:
        types = f" -> ({self.types(op.results)})" if op.results else ""
        self.lines.append(f"{prefix}{op.name} {self.name(op.ins[0])}{types}")
        for label, region in zip([f"case {n}" for n in op.attrs["cases"]] + ["default"], op.regions):
            self.lines.append("  " * depth + label + " {")
            self.braces(region, depth)
        self.close(op)

    def form_section(self, op: Operation, prefix: str, depth: int) -> None:
        self.lines.append(f"{prefix}{op.name} {{")
        self.braces(op.regions[0], depth)
        self.close(op)


def format_number(value: int | float, type_: ScalarType) -> str:
    """A literal that parses back to the same value; non-finite floats print their bits."""
    if not isinstance(value, float):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        nan, negative = value != value, value < 0
        bits = {"f16": 0x7C00, "bf16": 0x7F80, "f64": 0x7FF0000000000000}.get(type_.text, 0x7F800000)
        quiet = {"f16": 0x200, "bf16": 0x40, "f64": 0x8000000000000}.get(type_.text, 0x400000)
        sign = {"f16": 0x8000, "bf16": 0x8000, "f64": 1 << 63}.get(type_.text, 0x80000000)
        return hex(bits | (quiet if nan else 0) | (sign if negative else 0))
    return f"{value:.17e}"
