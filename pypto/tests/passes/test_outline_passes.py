"""Outlining of regions into functions: names, directions, launches with task ids, cluster groups."""

from __future__ import annotations

import pytest
from pass_programs import calls, parse, run, text

from pypto import ir, passes

T = "pl.Tensor[[16, 64], pl.FP32]"
IN, OUT, INOUT = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
FRONT = ("convert_to_ssa", "simplify", "normalize_stmt_structure", "flatten_call_expr")
OUTLINE = (*FRONT, "outline_hierarchy_scopes", "outline_incore_scopes", "outline_cluster_scopes")


def opaque(body: str, params: str = f"x: {T}, o: pl.Out[{T}]") -> ir.Program:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse(f"@pl.function(type=pl.FunctionType.Opaque)\ndef main(self, {params}):\n{lines}\n")


REGION = """
with pl.at(level=pl.Level.CORE_GROUP{}):
    y = pl.add(x, x)
    o = pl.assemble(o, y, [0, 0])
"""


@pytest.mark.parametrize(("argument", "name"), [("", "main_incore_0"), (", name_hint='adder'", "adder")])
def test_a_region_becomes_a_kernel_and_its_function_orchestrates(argument, name):
    after = run(opaque(REGION.format(argument) + "return o"), *OUTLINE)
    kernel = after.get_function(name)
    assert kernel.func_type is ir.FunctionType.InCore
    assert kernel.param_directions == [IN, OUT]
    assert after.get_function("main").func_type is ir.FunctionType.Orchestration
    assert calls(after, "main") == [name]


def test_equal_name_hints_stay_distinct():
    after = run(opaque(REGION.format(", name_hint='adder'") * 2 + "return o"), *OUTLINE)
    names = calls(after, "main")
    assert len(names) == len(set(names)) == 2
    assert all(n.startswith("adder") for n in names)


def test_a_region_that_reads_and_writes_a_tensor_takes_it_inout():
    body = "with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.add(o, x)\n    o = pl.assemble(o, y, [0, 0])\nreturn o"
    after = run(opaque(body), *OUTLINE)
    kernel = after.get_function("main_incore_0")
    found = {p.name_hint.split("__")[0]: d for p, d in zip(kernel.params, kernel.param_directions, strict=True)}
    assert found == {"x": IN, "o": INOUT}


def test_a_named_task_is_submitted_and_orders_its_followers():
    body = """
with pl.at(level=pl.Level.CORE_GROUP) as tid:
    y = pl.add(x, x)
    o = pl.assemble(o, y, [0, 0])
with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
    z = pl.exp(x)
    o = pl.assemble(o, z, [0, 0])
return o
"""
    main = text(run(opaque(body), *OUTLINE))
    assert main.count("pl.submit(self.main_incore_") == 2
    assert "deps=[tid__ssa_v0]" in main


def test_values_that_leave_a_region_are_returned():
    body = "with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.add(x, x)\n    z = pl.exp(y)\nreturn y, z"
    after = run(opaque(body), *OUTLINE)
    kernel = after.get_function("main_incore_0")
    assert len(kernel.return_types) == 2 or isinstance(kernel.return_types[0], ir.TupleType)
    wanted = passes.IRPropertySet([passes.IRProperty.SSAForm, passes.IRProperty.SplitIncoreOrch])
    assert passes.PropertyVerifierRegistry.verify(wanted, after) == []


def test_a_region_inside_a_loop_takes_the_index():
    body = """
for i in pl.range(4):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.slice(x, [4, 64], [i * 4, 0])
        o = pl.assemble(o, t, [i * 4, 0])
return o
"""
    after = run(opaque(body), *OUTLINE)
    kernel = after.get_function("main_incore_0")
    assert [type(p.type) for p in kernel.params].count(ir.ScalarType) == 1


def test_remaining_regions_fail_verification():
    before = run(opaque(REGION.format("") + "return o"), *FRONT)
    found = passes.PropertyVerifierRegistry.verify(passes.IRPropertySet([passes.IRProperty.SplitIncoreOrch]), before)
    assert len(found) == 1 and "InCore" in found[0].message


@pytest.mark.parametrize("binding", ["", "o = "], ids=["bare", "bound"])
def test_a_store_inside_a_loop_of_regions_is_seen_after_the_loop(binding):
    body = f"""
for i in pl.range(4):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [i * 4, 0], [4, 64])
        {binding}pl.store(t, [i * 4, 0], o)
return o
"""
    after = run(opaque(body), *OUTLINE)
    loop, result = ir.flatten_to_stmts(after.get_function("main").body)
    inside = {id(v) for s in ir.flatten_to_stmts(loop.body) for v in ir.collect_def_vars(s)}
    assert id(result.value[0]) not in inside, text(after)
    assert calls(after, "main") == ["main_incore_0"]
