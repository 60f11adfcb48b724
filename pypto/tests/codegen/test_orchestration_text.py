"""Orchestration C++: views of tensors are tensors that tasks can take."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.backend import BackendType, use_backend
from pypto.passes import PassManager

from pypto import codegen, ir


def orchestration_text(program: ir.Program) -> str:
    with use_backend(BackendType.Ascend910B):
        lowered = PassManager.get_strategy().run_passes(program)
        kinds = (ir.FunctionType.Orchestration,)
        function = next(f for f in lowered.functions.values() if f.func_type in kinds)
        return codegen.generate_orchestration(lowered, function).code


@pytest.mark.parametrize(
    ("view", "text"),
    [("pl.reshape(x, [32, 16])", ".reshape("), ("pl.transpose(x, axis1=0, axis2=1)", ".transpose(")],
)
def test_views_are_arguments_of_tasks(view, text):
    program = pl.parse(f"""
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[32, 16], pl.FP32], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        o = pl.store(pl.load(a, [0, 0], [32, 16]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        v = {view}
        o = self.kernel(v, o)
        return o
""")
    lines = orchestration_text(program).splitlines()
    declared = next(line for line in lines if text in line)
    name = declared.split("=")[0].split()[-1]
    assert any(f"({name})" in line for line in lines), "the view is handed to the task"


def test_an_atomic_assemble_outside_a_kernel_is_refused():
    program = pl.parse("""
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        o = pl.store(pl.load(a, [0, 0], [16, 16]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        t = pl.create_tensor([16, 16], dtype=pl.FP32)
        t = self.kernel(x, t)
        o = pl.assemble(o, t, [0, 0], atomic=pl.AtomicType.Add)
        return o
""")
    with pytest.raises(ValueError, match=r"pl\.at\(level=pl\.Level\.CORE_GROUP"):
        orchestration_text(program)
