"""Damaged text is answered with an AssemblerError (or named as unsupported), never with an internal exception."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pto_text import ADD_KERNEL, PV, TB, VIEWS, kernel, tile
from ptoas_bridge.dialect.table import REGISTRY
from test_printer import LINES

from ptoas_bridge import AssemblerError, UnsupportedFeatureError, assemble

SOURCES = [ADD_KERNEL, *(kernel(VIEWS + f"%s = pto.alloc_tile addr = %a1 : {TB}\n" + line) for line in LINES)]
TYPES = [TB, PV, tile(16, 16), tile(dtype="i32"), "f32", "i32", "index", "!pto.ptr<f32>", "!pto.tensor_view<?x?xf32>"]
NAMES = sorted(REGISTRY)


def damage(text: str, kind: int, where: int, what: int) -> str:
    """One change: a type everywhere, an operation name, a number, an attribute, a value, or a line."""
    if kind == 0:
        found = re.findall(r"![\w.]+<[^<>]*>", text)
        return text.replace(found[where % len(found)], TYPES[what % len(TYPES)]) if found else text
    pattern = {
        1: r"(?:pto|arith|scf)\.\w+",
        2: r"(?<=[ =,\[<x])-?\d+\b",
        3: r"\{[^{}\n]*\}",
        4: r"%[\w.]+",
        5: r"\S+",
    }.get(kind)
    if pattern is None:
        lines = text.split("\n")
        lines.insert(where % len(lines), lines.pop(what % len(lines)))
        return "\n".join(lines)
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    chosen = found[where % len(found)]
    values = {1: NAMES, 2: ["0", "-1", "7", "33", "4294967296"], 3: ["", "{}"], 5: ["", "{", "}", "(", ":", "loc"]}
    options = values.get(kind) or re.findall(r"%[\w.]+", text)
    return text[: chosen.start()] + options[what % len(options)] + text[chosen.end() :]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SOURCES),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=3),
    st.sampled_from(["a3", "a5"]),
    st.sampled_from(["level2", "level3"]),
)
@example(SOURCES[0], [(5, 3, 0)], "a3", "level3")
def test_damaged_text(text, changes, arch, level):
    for change in changes:
        text = damage(text, *change)
    try:
        assemble(text, arch=arch, level=level)
    except AssemblerError as problem:
        assert problem.message
    except UnsupportedFeatureError as problem:
        assert re.match(r"<pto>:\d+:\d+: '", str(problem))


def test_unsupported_parts_are_named_with_their_place():
    text = kernel("  pto.tprint ins(%v : !pto.tensor_view<?x?xf32>)", args="%v: !pto.tensor_view<?x?xf32>")
    with pytest.raises(UnsupportedFeatureError, match=r"^k\.pto:2:2: 'func\.func' needs a C\+\+ variable"):
        assemble(text, filename="k.pto")
    text = kernel("  pto.set_quant_scalar(%f : f32) {id = 0}", args="%f: f32")
    assert "SET_QUANT_SCALAR(" in assemble(text)


def test_deep_nesting_is_no_internal_fault():
    depth = 100
    tabs = f"pto.tabs ins(%t : {TB}) outs(%t : {TB})\n"
    body = f"%t = pto.alloc_tile addr = %a0 : {TB}\n"
    body += "".join(f"scf.for %i{n} = %c0 to %c1 step %c1 {{\n{tabs}" for n in range(depth)) + "}\n" * depth
    assert assemble(kernel(body)).count("for (int64_t") == depth
