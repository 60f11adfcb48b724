"""The pass framework: properties, contexts, instruments, automatic verification, diagnostics, the manager."""

from __future__ import annotations

import gc
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_programs import A2A3, kernel, parse
from pypto.backend import use_backend

import pypto
from pypto import ir, passes

P = passes.IRProperty
GOOD = kernel("y = pl.add(x, 1)\nreturn y", "x: pl.Scalar[pl.INT32]", returns="pl.Scalar[pl.INT32]")


def identity(name="Identity", **properties):
    return passes.create_program_pass(lambda p: p, name, passes.PassProperties(**properties))


def rebinding() -> ir.Program:
    """A function that assigns one variable twice."""
    x = ir.Var("x", ir.ScalarType(ir.DataType.INT32), ir.Span.unknown())
    body = [ir.AssignStmt(x, ir.ConstInt(i, ir.DataType.INT32, ir.Span.unknown()), ir.Span.unknown()) for i in (1, 2)]
    function = ir.Function("k", [], [], ir.SeqStmts(body, ir.Span.unknown()), ir.Span.unknown())
    return ir.Program([function], "Prog", ir.Span.unknown())


@given(st.sets(st.sampled_from(list(P))), st.sets(st.sampled_from(list(P))))
def test_property_sets_behave_like_sets(a, b):
    left, right = passes.IRPropertySet(a), passes.IRPropertySet(b)
    assert set(left.union_with(right)) == a | b
    assert set(left.intersection(right)) == a & b
    assert set(left.difference(right)) == a - b
    assert left.contains_all(right) == (b <= a)
    assert left.to_list() == sorted(a, key=lambda p: p.value)
    assert left.copy() == left


def test_property_sets_refuse_foreign_members_and_hashing():
    some = passes.IRPropertySet()
    with pytest.raises(TypeError, match="IRProperty"):
        some.insert("SSAForm")
    with pytest.raises(TypeError):
        hash(some)


def test_no_pass_declares_a_structural_property():
    structural = passes.get_structural_properties()
    with use_backend(A2A3):
        for pass_ in passes.PassManager().passes:
            for declared in (pass_.get_required_properties(), pass_.get_produced_properties()):
                assert structural.intersection(declared).empty(), pass_.get_name()


def test_contexts_nest_and_restore_even_after_errors():
    assert passes.PassContext.current() is None
    outer = passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS)
    with outer:
        with pytest.raises(KeyError), passes.PassContext([]):
            raise KeyError
        assert passes.PassContext.current() is outer
        seen = []
        thread = threading.Thread(target=lambda: seen.append(passes.PassContext.current()))
        thread.start()
        thread.join()
        assert seen == [None]
    assert passes.PassContext.current() is None


def test_callbacks_see_every_pass_in_order():
    events = []
    watch = passes.CallbackInstrument(
        before_pass=lambda p, _: events.append(f"<{p.get_name()}"), after_pass=lambda p, _: events.append(p.get_name())
    )
    pipeline = passes.PassPipeline()
    for name in ("A", "B"):
        pipeline.add_pass(identity(name))
    with passes.PassContext([watch]):
        pipeline.run(GOOD)
    assert events == ["<A", "A", "<B", "B"]


def test_a_pipeline_checks_what_its_passes_produce():
    pipeline = passes.PassPipeline()
    breaks = passes.create_program_pass(lambda p: rebinding(), "Breaks", passes.PassProperties(produced=[P.SSAForm]))
    pipeline.add_pass(breaks)
    with pytest.raises(pypto.Error, match="Breaks"):
        pipeline.run(GOOD)
    with passes.PassContext([], verification_level=passes.VerificationLevel.NONE):
        assert pipeline.run(GOOD) is not GOOD


@pytest.mark.parametrize(("mode", "raises"), [("NONE", False), ("BEFORE", True), ("AFTER", False)])
def test_the_verification_instrument_checks_requirements_before(mode, raises):
    watch = passes.VerificationInstrument(passes.VerificationMode[mode])
    needs_ssa = identity("NeedsSSA", required=[P.SSAForm])
    with passes.PassContext([watch], verification_level=passes.VerificationLevel.NONE):
        if raises:
            with pytest.raises(pypto.Error, match="NeedsSSA"):
                needs_ssa(rebinding())
        else:
            needs_ssa(rebinding())


def test_the_report_lists_each_finding():
    found = passes.PropertyVerifierRegistry.verify(passes.IRPropertySet([P.SSAForm]), rebinding())
    assert [d.severity for d in found] == [passes.DiagnosticSeverity.Error]
    assert "x" in found[0].message
    assert found[0].message in passes.PropertyVerifierRegistry.generate_report(found)


def test_function_passes_reach_every_function_and_keep_an_unchanged_program():
    names = []

    def visit(function):
        names.append(function.name)
        return function

    after = passes.create_function_pass(visit, "Visit")(GOOD)
    assert names == ["k"] and after is GOOD


def test_the_roundtrip_instrument_accepts_printable_programs():
    with passes.PassContext([passes.make_roundtrip_instrument()]):
        passes.convert_to_ssa()(GOOD)


def test_unused_variables_are_reported():
    program = kernel("y = pl.add(x, 1)\nreturn x", "x: pl.Scalar[pl.INT32]", returns="pl.Scalar[pl.INT32]")
    found = passes.DiagnosticCheckRegistry.run_checks(
        passes.DiagnosticCheckRegistry.get_warning_checks(), passes.DiagnosticPhase.PRE_PIPELINE, program
    )
    assert any("y" in d.message for d in found)


ADD = """
@pl.function(type=pl.FunctionType.Opaque)
def main(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.add(x, x)
        o = pl.assemble(o, y, [0, 0])
    return o
"""


def test_the_manager_compiles_and_dumps_every_pass(tmp_path):
    with use_backend(A2A3):
        manager = passes.PassManager()
        after = manager.run_passes(parse(ADD), dump_ir=True, output_dir=str(tmp_path))
    kinds = {f.func_type for f in after.functions.values()}
    assert kinds == {ir.FunctionType.AIV, ir.FunctionType.Orchestration}
    dumped = sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".py")
    assert dumped[0].startswith("00_")
    for index, name in enumerate(manager.pass_names, 1):
        assert dumped[index].startswith(f"{index:02d}_after_{name}")


def test_the_manager_refuses_wrong_use(tmp_path):
    with use_backend(A2A3):
        manager = passes.PassManager()
        with pytest.raises(ValueError, match="output_dir"):
            manager.run_passes(GOOD, dump_ir=True)
        with pytest.raises(ValueError, match=r"ir\.Program"):
            manager.run_passes("text")
        other = passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS)
        with other, pytest.raises(RuntimeError, match="memory_planner"):
            manager.run_passes(GOOD)
        with pytest.raises(ValueError, match="Default"):
            passes.PassManager("Fast")


def test_the_strategy_follows_the_planner():
    with use_backend(A2A3):
        ours = passes.PassManager().pass_names
        with passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS):
            theirs = passes.PassManager().pass_names
    assert "AllocateMemoryAddr" in ours and "AllocateMemoryAddr" not in theirs
    assert len(set(ours)) > 40


@pytest.mark.parametrize(("declared", "warned"), [("{}", True), ("pl.Out[{}]", False), ("pl.InOut[{}]", False)])
def test_writes_to_declared_inputs_are_warned_about(declared, warned):
    shape = "pl.Tensor[[16, 64], pl.FP32]"
    body = "t = pl.tile.load(x, [0, 0], [16, 64])\nr = pl.tile.store(t, [0, 0], o)\nreturn r"
    program = kernel(body, f"x: {shape}, o: {declared.format(shape)}", returns=shape, kind="InCore")
    found = passes.DiagnosticCheckRegistry.run_checks(
        passes.DiagnosticCheckRegistry.get_warning_checks(), passes.DiagnosticPhase.POST_PIPELINE, program
    )
    assert [d.rule_name for d in found] == (["InParamWritten"] if warned else [])
    assert all("'o' of function 'k'" in d.message for d in found)


def test_the_pipeline_leaves_cycle_collection_as_it_found_it():
    pipeline = passes.PassPipeline()
    states = []

    def look(program):
        states.append(gc.isenabled())
        return program

    pipeline.add_pass(passes.create_program_pass(look, "Look"))
    pipeline.run(kernel("return", kind="InCore"))
    assert states == [False] and gc.isenabled()
