"""What a page says about one operator, in words that both languages share."""

from __future__ import annotations

from typing import Any

import msgspec
from ptoas_bridge.dialect.table import REGISTRY

from ptoas_bridge import isa_include_dir
from pypto.codegen.pto import operators
from pypto.ir.enums import ArgEffect
from pypto.ops.registry import FAMILIES, OpDef, all_ops
from pypto.tools.opdocs.names import function_of, python_names
from pypto.tools.opdocs.results import result_kind
from pypto.tools.opdocs.signatures import call_text, default_text


class Operand(msgspec.Struct, frozen=True):
    """One row of the operand table; ``effect`` is empty for operands that are only read."""

    name: str
    kind: str
    count: str  # "", "optional" or "variadic"
    spaces: str
    effect: str


class Facts(msgspec.Struct, frozen=True):
    """One operator as its page and the status matrix show it."""

    name: str
    page: str
    level: str
    status: str
    doc: str
    calls: tuple[str, ...]
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str, str], ...]  # name, type, default; "" when required, "-" when absent
    result: str
    space: str
    traits: tuple[tuple[str, str], ...]
    mnemonics: tuple[str, ...]
    emission: str  # "mnemonic", "own", "lowered" or ""
    instructions: tuple[str, ...]
    missing_instructions: tuple[str, ...]
    torch: bool
    orchestration: bool
    backends: tuple[str, ...]
    converts_to: str


def page_of(definition: OpDef) -> str:
    """The page of an operator: the module of ``pypto.ops`` that defines it."""
    return definition.rule.__module__.rpartition(".")[2]


def all_facts() -> tuple[Facts, ...]:
    """Facts of every operator but those of tests, page by page in reference order."""
    operators.load_emissions()
    offered = _instruction_names()
    found = [_facts(d, offered) for d in all_ops() if not d.name.startswith("test.")]
    return tuple(sorted(found, key=lambda f: FAMILIES.index(f.page)))


def _facts(definition: OpDef, offered: set[str]) -> Facts:
    function = function_of(definition)
    names = python_names(definition)
    mnemonics, emission = _emission(definition)
    calls = [REGISTRY[m].call for m in mnemonics if m in REGISTRY and REGISTRY[m].form == "dps"]
    return Facts(
        name=definition.name,
        page=page_of(definition),
        level=definition.level,
        status=definition.status,
        doc=definition.doc,
        calls=tuple(call_text(name, function) for name in names) if function else (),
        operands=tuple(_operand(definition, index) for index in range(len(definition.params))),
        attributes=tuple(_attribute(spec) for spec in definition.attrs.values()),
        result=result_kind(definition),
        space=_space(definition),
        traits=_traits(definition),
        mnemonics=mnemonics,
        emission=emission,
        instructions=tuple(c for c in calls if c in offered),
        missing_instructions=tuple(c for c in calls if c not in offered),
        torch=definition.torch is not None,
        orchestration=definition.orchestration,
        backends=definition.backends,
        converts_to=definition.converts_to or "",
    )


def _operand(definition: OpDef, index: int) -> Operand:
    param, memory = definition.params[index], definition.memory
    spaces = memory.inputs[index] if memory and index < len(memory.inputs) else ()
    effects = definition.effects or {}
    effect = effects.get(index, ArgEffect.Read)
    # An effect that depends on the attributes (an atomic store) is shown with its default and a star.
    text = effect.name if isinstance(effect, ArgEffect) else f"{effect({}).name}*"
    count = "variadic" if param.variadic else "optional" if param.optional else ""
    where = ", ".join(s.name for s in spaces)
    return Operand(param.name, param.kind.replace("|", ", "), count, where, "" if text == "Read" else text)


def _attribute(spec: Any) -> tuple[str, str, str]:
    default = "" if spec.required else "-" if spec.default is None else default_text(spec.default)
    return spec.name, ", ".join(t.__name__ for t in spec.type), default


def _space(definition: OpDef) -> str:
    """Where a tile result lies: the name of a space, ``deferred``, ``inherited`` or nothing."""
    output = definition.memory.output if definition.memory else None
    if output is None or "Tile" not in result_kind(definition):
        return ""
    return {"inherit_from_input": "inherited"}.get(output, output) if isinstance(output, str) else output.name


def _traits(definition: OpDef) -> tuple[tuple[str, str], ...]:
    """Pairs of a key of the labels and what stands in it."""
    found = []
    if definition.result_is_arg is not None:
        found.append(("result_is", f"`{definition.params[definition.result_is_arg].name}`"))
    if not definition.inplace_safe:
        found.append(("not_in_place", ""))
    if definition.no_alias_args:
        found.append(("no_alias", ", ".join(f"`{definition.params[i].name}`" for i in definition.no_alias_args)))
    if definition.core_affinity:
        found.append(("core", definition.core_affinity))
    if definition.no_duplicate:
        found.append(("no_duplicate", ""))
    if definition.write_channel is not None:
        found.append(("channel", definition.write_channel.name))
    inputs = [str(x) for x in definition.layouts.get("in") or () if x]
    if inputs:
        found.append(("operand_layouts", ", ".join(inputs)))
    if definition.layouts.get("out"):
        found.append(("result_layout", str(definition.layouts["out"])))
    return tuple(found)


def _emission(definition: OpDef) -> tuple[tuple[str, ...], str]:
    """Operations of the PTO dialect that an operator prints as, and how."""
    name = definition.name
    own = operators.EMISSIONS.get(name) or operators.SCALAR_EMISSIONS.get(name)
    if definition.pto is not None:
        return (definition.pto,), "own" if own else "mnemonic"
    if own is not None:
        return tuple(m for m in dict.fromkeys(_operations_named_in(own.__code__)) if m in REGISTRY), "own"
    return (), "lowered" if definition.converts_to else ""


def _operations_named_in(code: Any) -> list[str]:
    """``pto.*`` texts among the constants of a function, those of nested functions included."""
    found: list[str] = []
    for constant in code.co_consts:
        if isinstance(constant, str):
            found += [w.rstrip("(") for w in constant.split() if w.startswith("pto.")]
        elif hasattr(constant, "co_consts"):
            found += _operations_named_in(constant)
    return found


def _instruction_names() -> set[str]:
    """Words in capitals in the headers of the CPU instruction set."""
    words: set[str] = set()
    for header in isa_include_dir().rglob("*.hpp"):
        text = header.read_text(encoding="utf-8")
        words.update(w for w in "".join(c if c.isalnum() or c == "_" else " " for c in text).split() if w.isupper())
    return words
