"""Frontend passes: inlining, unrolling, jumps, SSA, simplification, statement form, flat calls."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_programs import calls, kernel, parse, run, text

from pypto import ir, passes

S = "pl.Scalar[pl.INDEX]"
T = "pl.Tensor[[16, 64], pl.FP32]"


def orchestration(body: str, params: str = f"x: {T}, o: pl.Out[{T}]", *, before: str = "") -> ir.Program:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse(f"{before}\n@pl.function(type=pl.FunctionType.Orchestration)\ndef main(self, {params}):\n{lines}\n")


HELPER = f"""
@pl.function(type=pl.FunctionType.Inline)
def twice(self, a: {T}) -> {T}:
    b = pl.add(a, a)
    return b
"""


def test_inlined_bodies_get_names_of_their_own():
    before = orchestration("u = self.twice(x)\nv = self.twice(u)\nreturn v", before=HELPER)
    after = run(before, "inline_functions")
    assert list(after.functions) == [after.get_function("main").name] or "twice" not in text(after)
    assert calls(after, "main") == ["tensor.add", "tensor.add"]
    run(after, "convert_to_ssa")


def test_dump_requests_follow_an_expanded_call_to_the_kernels_that_use_the_tensor():
    helpers = f"""
@pl.function(type=pl.FunctionType.Inline)
def inner(self, a: {T}, b: {T}) -> {T}:
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.add(a, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        d = pl.add(b, c)
    return d

@pl.function(type=pl.FunctionType.Inline)
def outer(self, a: {T}, b: {T}) -> {T}:
    e = self.inner(a, b)
    return e
"""
    before = orchestration("pl.dump_tag(x)\nv = self.outer(x, o)\nreturn v", before=helpers)
    body = ir.flatten_to_stmts(run(before, "inline_functions").get_function("main").body)
    dumped = [[v.name_hint for v in s.attrs.get("dump_vars", [])] for s in body if isinstance(s, ir.InCoreScopeStmt)]
    assert dumped == [["x"], []]


def test_recursive_inlining_is_one_error():
    loop = f"""
@pl.function(type=pl.FunctionType.Inline)
def a(self, v: {T}) -> {T}:
    w = self.b(v)
    return w

@pl.function(type=pl.FunctionType.Inline)
def b(self, v: {T}) -> {T}:
    w = self.a(v)
    return w
"""
    with pytest.raises(ValueError, match="a -> b -> a"):
        run(orchestration("u = self.a(x)\nreturn u", before=loop), "inline_functions")


def test_unrolled_bodies_see_constants():
    before = orchestration("for i in pl.unroll(3):\n    o = pl.write(o, [i, 0], 1.0)\nreturn o")
    after = text(run(before, "unroll_loops"), "main")
    assert "unroll" not in after
    assert after.count("pl.tensor.write") == 3


BREAK = """
acc = pl.add(n, 0)
for i in pl.range(8):
    if i == n:
        break
    acc = acc + i
return acc
"""


def test_a_break_becomes_a_flag_that_the_loop_carries():
    before = kernel(BREAK, f"n: {S}", returns=S)
    lowered = run(before, "ctrl_flow_transform")
    assert "break\n" not in text(lowered)
    ssa = run(lowered, "convert_to_ssa")
    found = passes.PropertyVerifierRegistry.verify(
        passes.IRPropertySet([passes.IRProperty.SSAForm, passes.IRProperty.StructuredCtrlFlow]), ssa
    )
    assert found == []


def test_a_continue_skips_the_rest_of_the_body():
    body = "acc = n + 0\nfor i in pl.range(8):\n    if i == n:\n        continue\n    acc = acc + i\nreturn acc"
    after = text(run(kernel(body, f"n: {S}", returns=S), "ctrl_flow_transform"))
    assert "continue" not in after and "while" not in after


def test_versions_count_assignments_in_order():
    after = text(run(kernel("y = n + 1\ny = y * 2\ny = y + n\nreturn y", f"n: {S}", returns=S), "convert_to_ssa"))
    first, second, third = (after.index(f"y__ssa_v{i}") for i in range(3))
    assert first < second < third


def test_loops_carry_what_they_rebind_in_order_of_first_assignment():
    body = "a = n + 1\nb = n + 2\nfor i in pl.range(4):\n    b = b + i\n    a = a + b\nreturn a + b"
    after = run(kernel(body, f"n: {S}", returns=S), "convert_to_ssa")
    (loop,) = [s for s in after.get_function("k").body if isinstance(s, ir.ForStmt)]
    assert len(loop.iter_args) == 2
    assert {v.name_hint.split("__")[0] for v in loop.iter_args} == {"a", "b"}
    assert [v.name_hint.split("__")[0] for v in loop.return_vars] == [
        v.name_hint.split("__")[0] for v in loop.iter_args
    ]


def test_branches_merge_through_yields():
    body = "y = n + 1\nif n > 3:\n    y = y + 1\nelse:\n    y = y + 2\nreturn y"
    after = run(kernel(body, f"n: {S}", returns=S), "convert_to_ssa")
    (branch,) = [s for s in after.get_function("k").body if isinstance(s, ir.IfStmt)]
    assert len(branch.return_vars) == 1


STEPS = st.sampled_from(
    ["a = a + n", "b = a * 2", "a = b + 1", "if n > 2:\n    a = b + n", "for i in pl.range(3):\n    b = b + a"]
)


@settings(max_examples=25)
@given(st.lists(STEPS, min_size=1, max_size=6))
def test_conversion_to_ssa_yields_ssa_and_is_idempotent(steps):
    before = kernel("\n".join(["a = n + 1", "b = n + 2", *steps, "return a + b"]), f"n: {S}", returns=S)
    once = run(before, "convert_to_ssa")
    wanted = passes.IRPropertySet([passes.IRProperty.SSAForm, passes.IRProperty.UseAfterDef])
    assert passes.PropertyVerifierRegistry.verify(wanted, once) == []
    assert ir.structural_equal(run(once, "convert_to_ssa"), once)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n + 0", "n"),
        ("(n * 4 + 8) // 4", "n + 2"),
        ("n * 8 % 8 + n", "n"),
        ("pl.min(n, n)", "n"),
        ("3 * 4 + n - 12", "n"),
    ],
)
def test_scalar_arithmetic_simplifies(expression, expected):
    before = kernel(f"y: {S} = {expression}\nreturn y", f"n: {S}", returns=S)
    assert f"y: {S} = {expected}\n" in text(run(before, "simplify"))


def test_loops_that_run_once_or_never_disappear():
    body = "a = n + 1\nfor i in pl.range({}):\n    a = a + i + 5\nreturn a"
    once = text(run(kernel(body.format(1), f"n: {S}", returns=S), "convert_to_ssa", "simplify"))
    never = text(run(kernel(body.format(0), f"n: {S}", returns=S), "convert_to_ssa", "simplify"))
    assert "pl.range" not in once and "pl.range" not in never


def test_effects_survive_simplification():
    body = "for i in pl.range(4):\n    o = pl.write(o, [i, 0], 1.0)\nreturn o"
    after = run(orchestration(body), "convert_to_ssa", "simplify")
    assert "tensor.write" in calls(after, "main")


def test_nested_calls_become_assignments():
    before = orchestration("y = pl.add(pl.mul(x, x), pl.exp(x))\nreturn y")
    after = run(before, "convert_to_ssa", "flatten_call_expr")
    assert calls(after, "main") == ["tensor.mul", "tensor.exp", "tensor.add"]
    wanted = passes.IRPropertySet([passes.IRProperty.NoNestedCalls])
    assert passes.PropertyVerifierRegistry.verify(wanted, after) == []
    assert passes.PropertyVerifierRegistry.verify(wanted, before) != []


def test_statement_form_is_flat_and_idempotent():
    before = orchestration("y = pl.add(x, x)\nif 1 > 0:\n    y = pl.mul(y, x)\nreturn y")
    once = run(before, "convert_to_ssa", "normalize_stmt_structure")
    assert ir.structural_equal(run(once, "normalize_stmt_structure"), once)


def test_a_body_that_both_skips_and_leaves_keeps_its_carried_value():
    body = """
for i, (a,) in pl.range(8, init_values=(n,)):
    if i < 2:
        continue
    if i > 5:
        break
    b = a + i
    r = pl.yield_(b)
return r
"""
    after = run(kernel(body, f"n: {S}", returns=S), "ctrl_flow_transform")
    wanted = passes.IRPropertySet([passes.IRProperty.StructuredCtrlFlow, passes.IRProperty.TypeChecked])
    assert passes.PropertyVerifierRegistry.verify(wanted, after) == []
