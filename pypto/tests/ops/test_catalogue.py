"""Every operator of the shared catalogue exists here with its operands, attributes, traits and signatures.

The catalogue lies beside the workspace in development and CI; a user's clone does not have it.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pypto.ops import find_op
from pypto.ops.queries import get_op_memory_spec
from pypto.ops.surface import ARRAY, PLD, PREFETCH, SYSTEM, TENSOR, TILE, UNIFIED

yaml = pytest.importorskip("yaml")
CATALOGUE = Path(__file__).resolve().parents[4] / "shared" / "spec" / "ops.yaml"
if not CATALOGUE.is_file():
    pytest.skip(f"the operator catalogue {CATALOGUE} is not here", allow_module_level=True)
ENTRIES = {e["name"]: e for e in yaml.safe_load(CATALOGUE.read_text()) if not e["name"].startswith("pl.")}
NAMESPACES = {
    "pl.tile": TILE, "pl.tensor": TENSOR, "pl.system": SYSTEM, "pl.array": ARRAY, "pl.prefetch": PREFETCH,
    "pld.system": PLD.system, "pld.tensor": PLD.tensor, "pld.tile": PLD.tile,
}  # fmt: skip

#: Operands that one list of parameters covers, or whose kind a rule checks itself (for a better message).
LOOSE_OPERANDS = {
    "tile.mgather", "tile.mrgsort_format2", "tensor.mrgsort_format2", "pld.tile.put", "pld.tile.get",
    "pld.tile.remote_store", "pld.tensor.remote_store", "test.op", "test.tensor_op_no_conv",
    "test.deduce_raises_type", "test.deduce_raises_internal",
}  # fmt: skip
#: (operator, trait) stated more precisely here than in the catalogue.
MORE_PRECISE = {
    ("tile.tquant_mx", "backends"), ("tile.tquant_mx_raw", "backends"), ("tile.tmov_x2zz", "backends"),
    ("tensor.img2col", "converts_to"), ("array.update_element", "result_is_arg"),
}  # fmt: skip
DEFAULTS = {
    "inplace_safe": True, "result_is_arg": None, "no_alias_args": (), "core_affinity": None, "cross_core_role": None,
    "no_duplicate": False, "internal_only": False, "converts_to": None, "orchestration": False, "backends": (),
    "retargetable": False,
}  # fmt: skip
every_operator = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())


def test_the_catalogue_is_complete():
    missing = [name for name in ENTRIES if find_op(name) is None]
    assert not missing


@every_operator
def test_operands_and_attributes(entry):
    definition = find_op(entry["name"])
    assert (definition.family, definition.level) == (entry["family"], entry["level"])
    assert set(definition.attrs) == {a["name"] for a in entry["attrs"] or []}
    if entry["name"] in LOOSE_OPERANDS:
        return
    wanted = [(a["kind"].replace("tuple", "shape"), a["optional"]) for a in entry["args"] or []]
    kinds = [p.kind.replace("tuple", "shape").replace("indices", "shape") for p in definition.params]
    assert list(zip(kinds, [p.optional for p in definition.params])) == wanted


@every_operator
def test_memory_spec(entry):
    wanted, spec = entry.get("memory"), get_op_memory_spec(entry["name"])
    if wanted is None or "unspecified" in wanted or "output" not in wanted:
        assert spec is None
        return
    assert str(getattr(spec["output_memory"], "name", spec["output_memory"] or "none")) == str(wanted["output"])
    assert [[s.name for s in i] for i in spec["input_constraints"]] == (wanted.get("inputs") or [])


@every_operator
def test_traits(entry):
    definition, traits = find_op(entry["name"]), entry.get("traits") or {}
    for name, default in DEFAULTS.items():
        if (entry["name"], name) in MORE_PRECISE:
            continue
        wanted: Any = traits.get(name, default)
        if name == "backends":
            wanted = tuple(str(b) for b in wanted)
        elif name == "no_alias_args":
            wanted = tuple(wanted)
        elif name == "core_affinity" and wanted:
            wanted = wanted.lower()
        assert getattr(definition, name) == wanted, name
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in definition.layouts.items()}
    assert listed == traits.get("layouts", {})


@every_operator
def test_effects(entry):
    definition, effects = find_op(entry["name"]), entry.get("effects") or {}
    assert definition.declares_effects == bool(effects.get("classified"))
    operands = [a["name"] for a in entry["args"] or []]
    for index, name in enumerate(operands):
        assert definition.arg_effect(index).name.lower() == effects.get(name, "read"), name
    channel = definition.write_channel
    assert (channel.name if channel else None) == effects.get("channel")


SIGNATURES = [(n, p) for n, e in ENTRIES.items() for p in e["python"]]


def _wanted(text: str) -> dict[str, str | None]:
    arguments = ast.parse(f"def f({text}): pass").body[0].args
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [ast.unparse(d) for d in arguments.defaults]
    found = {a.arg: d for a, d in zip(positional, defaults)}
    if arguments.vararg:
        found["*" + arguments.vararg.arg] = None
    for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults):
        found["kw " + a.arg] = None if d is None else ast.unparse(d)
    if arguments.kwarg:
        found["**" + arguments.kwarg.arg] = None
    return {n: d for n, d in found.items() if n.removeprefix("kw ") != "span"}


def _shown(value: Any) -> str:
    if hasattr(value, "name"):
        return f"{type(value).__name__}.{value.name}"
    if type(value).__name__ == "DataType":
        return f"DataType.{value.to_string().upper()}"
    return "AUTO" if value == -1 else repr(value)


def _actual(function: Any) -> dict[str, str | None]:
    prefix = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
        inspect.Parameter.KEYWORD_ONLY: "kw ",
    }
    return {
        prefix.get(p.kind, "") + p.name: None if p.default is p.empty else _shown(p.default)
        for p in inspect.signature(function).parameters.values()
        if p.name != "span"
    }


@pytest.mark.parametrize(("name", "text"), SIGNATURES, ids=[t.split("(")[0] + "/" + n for n, t in SIGNATURES])
def test_python_signature(name, text):
    match = re.match(r"([a-z.]+)\.([A-Za-z_0-9]+)\((.*)\)( ->.*)?$", text)
    namespace, leaf, parameters = match.group(1, 2, 3)
    if namespace in NAMESPACES:
        function = getattr(NAMESPACES[namespace], leaf)
    elif namespace == "pl" and leaf in UNIFIED:
        function = UNIFIED[leaf]
    else:
        pytest.skip("promoted by the language")
    wanted, actual = _wanted(parameters), _actual(function)
    assert list(actual) == list(wanted)
    for parameter, default in wanted.items():
        shown = actual[parameter]
        unsure = default == "..." or shown == "Ellipsis"
        assert unsure or shown == default or (shown and default and shown.endswith(f".{default}")), parameter
