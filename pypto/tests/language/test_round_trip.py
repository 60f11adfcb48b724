"""Generated functions: parsing what the printer wrote gives the same function again."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language_support import body, round_trip

from pypto import ir

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

integers = st.integers(-5, 40).map(str)


def scalar_expressions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner)
        return st.one_of(
            binary.map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(st.sampled_from(("pl.min", "pl.max")), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
            inner.map(lambda e: f"(-{e})"),
        )

    return st.recursive(st.one_of(st.sampled_from(names), integers), combine, max_leaves=6)


def conditions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    scalars = scalar_expressions(names)
    compare = st.tuples(st.sampled_from(names), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), scalars).map(
        " ".join
    )
    return st.one_of(
        compare,
        st.tuples(compare, st.sampled_from(("and", "or")), compare).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        compare.map(lambda c: f"not ({c})"),
    )


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


@st.composite
def blocks(draw, names: tuple[str, ...] = ("n", "m"), depth: int = 2) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(("scalar", "tensor", "for", "if", "while", "at") if depth else ("scalar", "tensor"))
        )
        fresh = f"v{depth}{len(lines)}"
        if kind == "scalar":
            lines.append(f"{fresh} = {draw(scalar_expressions(names))} + n")
            names = (*names, fresh)
        elif kind == "tensor":
            lines.append(f"x = {draw(st.sampled_from(('pl.add(x, 1.0)', 'pl.mul(x, x)', 'pl.exp(x)')))}")
        elif kind == "for":
            loop = draw(st.sampled_from(("pl.range({0})", "pl.parallel({0}, n)", "pl.pipeline(0, {0}, 1, stage=2)")))
            inner = draw(blocks((*names, f"i{depth}"), depth - 1))
            lines.append(f"for i{depth} in {loop.format(draw(st.integers(1, 9)))}:\n{indent(inner)}")
        elif kind == "if":
            then, other = draw(blocks(names, depth - 1)), draw(st.one_of(st.none(), blocks(names, depth - 1)))
            text = f"if {draw(conditions(names))}:\n{indent(then)}"
            lines.append(text if other is None else f"{text}\nelse:\n{indent(other)}")
        elif kind == "while":
            lines.append(f"while {draw(conditions(names))}:\n{indent(draw(blocks(names, depth - 1)))}")
        else:
            hint = draw(st.sampled_from(("", ', name_hint="part"')))
            lines.append(f"with pl.at(pl.Level.CORE_GROUP{hint}):\n{indent(draw(blocks(names, 0)))}")
    return "\n".join(lines)


PARAMS = "x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX]"


@SETTINGS
@given(blocks())
def test_statements(text):
    f = body(text + "\nreturn x", params=PARAMS)
    round_trip(f)
    round_trip(ir.Program([f], "P", f.span))


@SETTINGS
@given(scalar_expressions(("n", "m")))
def test_scalar_expressions(text):
    round_trip(body(f"a = ({text}) + n", params=PARAMS))


@SETTINGS
@given(conditions(("n", "m")))
def test_conditions(text):
    round_trip(body(f"if {text}:\n    x = pl.add(x, 1.0)\nreturn x", params=PARAMS))
