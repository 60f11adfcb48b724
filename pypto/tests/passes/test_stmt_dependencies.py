"""The dependency graph of a statement sequence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_programs import kernel, parse, run
from pypto.passes.stmt_dependency_analysis import build_stmt_dependency_graph, check_inout_use_discipline

import pypto

S = "pl.Scalar[pl.INDEX]"
T = "pl.Tensor[[16, 64], pl.FP32]"


def graph_of(*lines: str):
    program = run(kernel("\n".join(lines), f"n: {S}", returns=S), "convert_to_ssa")
    graph = build_stmt_dependency_graph(program.get_function("k").body, program)
    return [[graph.stmts.index(p) for p in graph.get_predecessors(s)] for s in graph.stmts]


def test_reads_follow_definitions_also_through_compound_statements():
    body = ["a = n + 1", "b = n + 2", "for i in pl.range(4):\n    b = b + a", "return b"]
    assert graph_of(*body) == [[], [], [0, 1], [2]]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_every_edge_points_backwards_to_the_definer(picks):
    names, lines, expected = ["n"], [], []
    for i, pick in enumerate(picks):
        source = pick % len(names)
        lines.append(f"v{i} = {names[source]} + {i + 1}")
        expected.append([source - 1] if source else [])
        names.append(f"v{i}")
    assert graph_of(*lines, f"return {names[-1]}") == [*expected, [len(picks) - 1]]


def test_reads_of_handed_over_tensors_are_refused():
    program = parse(f"""
@pl.function(type=pl.FunctionType.InCore)
def f(self, t: pl.InOut[{T}]) -> {T}:
    return t

@pl.function(type=pl.FunctionType.Orchestration)
def main(self, x: {T}):
    y = self.f(x)
    z = pl.add(x, y)
    return z
""")
    body = program.get_function("main").body
    with pytest.raises(pypto.Error, match="InOutUseDiscipline: 'x'"):
        check_inout_use_discipline(body, program)
    with pytest.raises(pypto.Error, match="InOutUseDiscipline"):
        build_stmt_dependency_graph(body, program)
    assert len(build_stmt_dependency_graph(body).stmts) == 3
