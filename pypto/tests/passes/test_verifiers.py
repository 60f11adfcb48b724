"""Verifiers: each finds its kind of damage in programs that are otherwise well formed."""

from __future__ import annotations

import pytest
from pass_programs import A2A3, kernel, parse, run
from pypto.backend import use_backend
from pypto.ir.pass_manager import OptimizationStrategy, PassManager

import pypto
from pypto import ir, passes

S = "pl.Scalar[pl.INDEX]"
T = "pl.Tensor[[16, 64], pl.FP32]"
P = passes.IRProperty
SPAN = ir.Span.unknown()


def findings(prop: passes.IRProperty, program: ir.Program) -> list[str]:
    with use_backend(A2A3):
        return [d.message for d in passes.PropertyVerifierRegistry.verify(passes.IRPropertySet([prop]), program)]


def index(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, ir.DataType.INDEX, SPAN)


def scalar(name: str) -> ir.Var:
    return ir.Var(name, ir.ScalarType(ir.DataType.INDEX), SPAN)


def of(*stmts, params=()) -> ir.Program:
    function = ir.Function("k", list(params), [], ir.SeqStmts(list(stmts), SPAN), SPAN)
    return ir.Program([function], "Prog", SPAN)


def test_a_read_before_any_definition():
    x, y = scalar("x"), scalar("y")
    broken = of(ir.AssignStmt(y, ir.Add(x, index(1), ir.DataType.INDEX, SPAN), SPAN))
    (message,) = findings(P.UseAfterDef, broken)
    assert "x" in message
    assert findings(P.UseAfterDef, of(ir.AssignStmt(y, x, SPAN), params=[x])) == []


def test_a_variable_assigned_twice():
    x = scalar("x")
    broken = of(ir.AssignStmt(x, index(1), SPAN), ir.AssignStmt(x, index(2), SPAN))
    assert len(findings(P.SSAForm, broken)) == 1


@pytest.mark.parametrize(
    ("prop", "loop"), [(P.UnrollResolved, "pl.unroll(4)"), (P.PipelineResolved, "pl.pipeline(4, stage=2)")]
)
def test_remaining_loop_kinds(prop, loop):
    body = f"for i in {loop}:\n    o = pl.write(o, [i, 0], 1.0)\nreturn o"
    broken = kernel(body, f"o: pl.Out[{T}]", returns=T)
    assert findings(prop, broken)
    assert findings(prop, kernel(body.replace(loop, "pl.range(4)"), f"o: pl.Out[{T}]", returns=T)) == []


def test_jumps_in_kernels_must_be_lowered():
    broken = kernel("for i in pl.range(4):\n    if i == n:\n        break\nreturn n", f"n: {S}", returns=S)
    assert findings(P.StructuredCtrlFlow, broken)
    assert findings(P.StructuredCtrlFlow, run(broken, "ctrl_flow_transform")) == []


def test_inline_functions_and_references_to_them():
    helper = f"@pl.function(type=pl.FunctionType.Inline)\ndef h(self, a: {T}) -> {T}:\n    return a\n"
    main = (
        f"@pl.function(type=pl.FunctionType.Orchestration)\ndef main(self, x: {T}):\n    y = self.h(x)\n    return y\n"
    )
    broken = parse(helper + "\n" + main)
    assert findings(P.InlineFunctionsEliminated, broken)
    assert findings(P.InlineFunctionsEliminated, run(broken, "inline_functions")) == []


def test_operands_outside_the_space_their_operator_wants():
    body = """
a = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
b = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
c = pl.tile.matmul(a, b)
r = pl.tile.store(c, [0, 0], o)
return r
"""
    out = "pl.Tensor[[64, 64], pl.FP32]"
    broken = kernel(body, f"x: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[{out}]", returns=out, kind="InCore")
    broken = run(broken, "convert_to_ssa")
    assert findings(P.TileMemoryInferred, broken)
    assert findings(P.TileMemoryInferred, run(broken, "infer_tile_memory_space")) == []


def test_an_output_parameter_that_is_hidden_by_a_fresh_tensor():
    body = "o = pl.create_tensor([16, 64], dtype=pl.FP32)\nreturn o"
    main = f"@pl.function(type=pl.FunctionType.Orchestration)\ndef main(self, o: pl.Out[{T}]):\n"
    broken = parse(main + "\n".join("    " + line for line in body.splitlines()))
    assert findings(P.OutParamNotShadowed, broken)


MUTATE = f"@pl.function(type=pl.FunctionType.InCore)\ndef f(self, t: pl.InOut[{T}]) -> {T}:\n    return t\n"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("y = self.f(x)\nz = pl.add(y, y)\nreturn z", 0),
        ("y = self.f(x)\nz = pl.add(x, y)\nreturn z", 1),
        ("y = self.f(x)\nreturn x", 0),
        ("for i in pl.range(4):\n    z = pl.add(x, x)\n    y = self.f(x)\nreturn x", 1),
        ("for i, (c,) in pl.range(4, init_values=(x,)):\n    y = self.f(c)\n    r = pl.yield_(y)\nreturn r", 0),
    ],
)
def test_tensors_handed_over_are_not_read_again(body, count):
    lines = "\n".join("    " + line for line in body.splitlines())
    main = f"@pl.function(type=pl.FunctionType.Orchestration)\ndef main(self, x: {T}):\n{lines}\n"
    assert len(findings(P.InOutUseValid, parse(MUTATE + "\n" + main))) == count


def test_views_have_strides_that_cover_their_rows():
    def with_strides(*stride, layout=ir.TensorLayout.ND):
        view = ir.TensorView([index(s) for s in stride], layout)
        kind = ir.TensorType([index(4), index(8)], ir.DataType.FP32, None, view)
        return of(params=[ir.Var("t", kind, SPAN)])

    assert findings(P.TensorViewCanonical, with_strides(8, 1)) == []
    assert findings(P.TensorViewCanonical, with_strides(16, 1)) == []
    assert "smaller than packed" in findings(P.TensorViewCanonical, with_strides(4, 1))[0]
    assert "innermost" in findings(P.TensorViewCanonical, with_strides(1, 4))[0]
    assert "stride is empty" in findings(P.TensorViewCanonical, with_strides(layout=ir.TensorLayout.DN))[0]


def barrier_launch(width: str, options: str = ", sync_start=True", core_type: str = "aiv_only"):
    """A vector kernel with a hard barrier, launched on ``width`` blocks."""
    shape = "pl.Tensor[[6144, 128], pl.FP32]"
    return parse(
        f"""
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: {shape}, o: pl.Out[{shape}]) -> {shape}:
            i = pl.tile.get_block_idx()
            t = pl.tile.load(x, [i * 128, 0], [128, 128])
            pl.system.syncall(core_type="{core_type}")
            o = pl.tile.store(t, [i * 128, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: {shape}, o: pl.Out[{shape}]) -> {shape}:
            with pl.spmd({width}{options}):
                o = self.k(x, o)
            return o
        """
    )


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (barrier_launch("48"), None),
        (barrier_launch("pl.system.available_aiv_count()"), None),
        (barrier_launch("8"), "fill all 48 AIV cores, got 8"),
        (barrier_launch("48", ""), "sync_start=True"),
        (barrier_launch("pl.system.available_cluster_count()"), "available_aiv_count"),
        (barrier_launch("48", core_type="mix"), "can never complete"),
    ],
)
def test_hard_barriers_need_every_core_at_once(program, problem):
    def compile_it():
        with use_backend(A2A3):
            return PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)

    if problem is None:
        assert compile_it() is not None
        return
    with pytest.raises(pypto.Error, match=problem):
        compile_it()


N = ir.Var("n", ir.ScalarType(ir.DataType.INDEX), ir.Span.unknown())


@pytest.mark.parametrize(
    ("extents", "message"),
    [
        ([-1, 64], "dimension 0 negative extent -1"),
        ([16, 65], "dimension 1 extent 65 exceeds the physical shape extent 64"),
        ([16], "rank mismatch: got rank 1, physical shape has rank 2"),
        ([N - N - 1, 64], "dimension 0 provably negative extent"),
        ([N + 17 - N, 64], "exceeds the physical shape extent 16"),
        ([N + 16 - N, 64], None),
        ([N, 64], None),
        ([N - 1, N], None),
        ([16, 64], None),
    ],
)
def test_valid_regions_lie_inside_their_shapes(extents, message):
    view = ir.TensorView(layout=ir.TensorLayout.ND, valid_shape=extents)
    kind = ir.TensorType([16, 64], ir.DataType.FP32, None, view)
    span = ir.Span.unknown()
    function = ir.Function("k", [ir.Var("x", kind, span)], [], ir.ReturnStmt([], span), span)
    found = passes.PropertyVerifierRegistry.verify(
        passes.IRPropertySet([passes.IRProperty.TypeChecked]), ir.Program([function], "p", span)
    )
    assert [message in d.message for d in found] == ([] if message is None else [True])
