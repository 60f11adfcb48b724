"""Prints a module in MLIR's generic form: every operation as `"name"(operands) ({regions}) {attrs} : types`.

Generic text needs no knowledge of assembly formats, so any MLIR reader that knows (or tolerates) the dialect takes it.
"""

from __future__ import annotations

from .enums import EnumAttr, SymbolRef
from .foreign_ops import FLOAT_PREDICATES, INT_PREDICATES
from .ir import Function, Module, Operation, Region, Value
from .printer import format_number
from .types import F32, I1, ScalarType, Type

_TERMINATORS = ("scf.yield", "scf.condition", "func.return")


def print_generic(module: Module) -> str:
    """The module as generic text."""
    attrs = {**module.attrs, "pto.target_arch": module.arch}
    body = "\n".join(_Generic().function(fn) for fn in module.functions)
    return f'"builtin.module"() ({{\n{body}\n}}) {_dict(attrs)} : () -> ()\n'


def segments(op: Operation) -> tuple[list[Value], list[Value], list[Value]]:
    """Operands in their three segments: ins, outs, and those introduced by a keyword."""
    named: list[Value] = []
    for value in op.named.values():
        named += value if isinstance(value, list) else [value] if value is not None else []
    return op.ins, op.outs, named


def _attr(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{format_number(value, F32)} : f32"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_attr(v) for v in value) + "]"
    return str(value)


def _dict(attrs: dict) -> str:
    printable = (bool, int, float, str, EnumAttr, SymbolRef, list, Type)
    words = [f'"{k}" = {_attr(v)}' for k, v in attrs.items() if isinstance(v, printable)]
    return "{" + ", ".join(words) + "}"


class _Generic:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}

    def name(self, value: Value) -> str:
        return self.names.setdefault(value, f"%{len(self.names)}")

    def names_of(self, values: list[Value]) -> str:
        return ", ".join(self.name(v) for v in values)

    def function(self, fn: Function) -> str:
        args = ", ".join(a.type.text for a in fn.args)
        results = ", ".join(t.text for t in fn.result_types)
        properties = f'sym_name = "{fn.name}", function_type = ({args}) -> ({results})'
        if fn.private:
            properties += ', sym_visibility = "private"'
        body = "" if fn.body is None else self.region(fn.body, "func.return")
        return f'"func.func"() <{{{properties}}}> ({{{body}}}) {_dict(fn.attrs)} : () -> ()'

    def region(self, region: Region, terminator: str | None) -> str:
        args = ", ".join(f"{self.name(a)} : {a.type}" for a in region.args)
        lines = [f"\n^bb0({args}):" if region.args else ""]
        lines += [self.operation(op) for op in region.ops]
        if terminator is not None and not (region.ops and region.ops[-1].name in _TERMINATORS):
            lines.append(f'"{terminator}"() : () -> ()')
        return "\n".join(lines) + "\n"

    def operation(self, op: Operation) -> str:
        groups = segments(op)
        operands = [value for group in groups for value in group]
        results = f"{self.names_of(op.results)} = " if op.results else ""
        types = ", ".join(v.type.text for v in operands)
        result_types = ", ".join(v.type.text for v in op.results)
        terminator = "scf.yield" if op.name.startswith("scf.") else None
        regions = ", ".join("{" + self.region(r, terminator) + "}" for r in op.regions)
        if op.name == "scf.if" and len(op.regions) == 1:
            regions += ", {}"
        clause = f" ({regions})" if op.regions else ""
        properties, attrs = self.attributes(op, groups)
        call = f'{results}"{op.name}"({self.names_of(operands)}){properties}{clause} {attrs}'
        return f"{call} : ({types}) -> ({result_types})"

    def attributes(self, op: Operation, groups: tuple[list[Value], ...]) -> tuple[str, str]:
        """Properties of the foreign operations, attributes of ours."""
        if op.name == "arith.constant":
            return f" <{{value = {_constant(op.attrs['value'], op.result.type)}}}>", "{}"
        if op.name in ("arith.cmpi", "arith.cmpf"):
            known = INT_PREDICATES if op.name == "arith.cmpi" else FLOAT_PREDICATES
            return f" <{{predicate = {known.index(op.attrs['predicate'])} : i64}}>", "{}"
        if op.name == "func.call":
            return f" <{{callee = @{op.attrs['callee']}}}>", "{}"
        if op.name == "scf.index_switch":
            cases = ", ".join(map(str, op.attrs["cases"]))
            return f" <{{cases = array<i64: {cases}>}}>", "{}"
        if not op.name.startswith("pto."):
            return "", "{}"
        sizes = ", ".join(str(len(group)) for group in groups)
        text = _dict(op.attrs)
        comma = ", " if text != "{}" else ""
        return "", f"{{operandSegmentSizes = array<i32: {sizes}>{comma}{text[1:]}"


def _constant(value: int | float | str, type_: Type) -> str:
    if isinstance(value, str):
        return f"{value} : {type_}"
    if type_ is I1:
        return "true" if value else "false"
    assert isinstance(type_, ScalarType)
    return f"{format_number(value, type_)} : {type_}"
