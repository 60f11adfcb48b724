"""Task ids and the C++ scopes that declare them."""

from __future__ import annotations

import shutil

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType, use_backend
from pypto.codegen import generate_orchestration
from pypto.passes import PassManager

from pypto import ir, passes

HEAD = """
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        o = pl.store(pl.add(pl.load(a, [0, 0], [16, 16]), 1.0), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration{0})
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        c = pl.create_tensor([16, 16], dtype=pl.FP32)
"""


def program(body: str, options: str = ""):
    return pl.parse(HEAD.replace("{0}", options) + "".join(f"        {line}\n" for line in body.strip().splitlines()))


def text(lowered) -> list[str]:
    return [line.strip() for line in generate_orchestration(lowered, lowered.get_function("main")).code.splitlines()]


SCOPED = """
with pl.manual_scope():
    z, first = pl.submit(self.k, x, c)
y, last = pl.submit(self.k, x, y, deps=[first])
return y
"""


def test_a_dependency_on_an_id_of_a_closed_scope_is_refused():
    with (
        use_backend(BackendType.Ascend910B),
        pytest.raises(ValueError, match=r"'first.*' cannot be honored.*inside the scope that produces it"),
    ):
        text(PassManager.get_strategy().run_passes(program(SCOPED)))


def test_a_dependency_inside_the_scope_is_printed():
    body = SCOPED.replace("\ny, last", "\n    y, last")
    with use_backend(BackendType.Ascend910B):
        lines = text(PassManager.get_strategy().run_passes(program(body)))
    assert "params_t1_deps[params_t1_deps_count++] = first;" in lines


DERIVED = """
with pl.scope():
    c = self.k(x, c)
with pl.scope():
    y = self.k(c, y)
return y
"""


def test_an_id_that_a_derived_dependency_needs_is_declared_outside_its_scope():
    with use_backend(BackendType.Ascend910B):
        lowered = program(DERIVED, ", auto_scope=False")
        for step in (
            passes.convert_to_ssa,
            passes.normalize_stmt_structure,
            passes.flatten_call_expr,
            passes.normalize_return_order,
            passes.expand_mixed_kernel,
            passes.derive_call_directions,
        ):
            lowered = step()(lowered)
        lowered = passes.auto_derive_task_dependencies(analyze_auto_scopes=True)(lowered)
        lines = text(passes.classify_iter_arg_carry()(lowered))
    dependency = next(line for line in lines if "params_t1_deps_count++" in line)
    name = dependency.split(" = ")[1].rstrip(";")
    assert dependency.startswith(f"if ({name}.is_valid())")
    declared = lines.index(f"PTO2TaskId {name} = PTO2TaskId::invalid();")
    assigned = lines.index(f"{name} = task_0_outs.task_id();")
    assert declared < lines.index("PTO2_SCOPE() {") < assigned < lines.index(dependency)


@pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels")
def test_the_last_id_of_a_loop_orders_what_follows():
    body = """
prev = pl.system.task_invalid()
with pl.manual_scope():
    for i in pl.range(3):
        t = pl.create_tensor([16, 16], dtype=pl.FP32)
        z, prev = pl.submit(self.k, x, t, deps=[prev])
    y, last = pl.submit(self.k, x, y, deps=[prev])
return y
"""
    compiled = ir.compile(program(body), dump_passes=False)
    x, y = torch.randn(16, 16), torch.zeros(16, 16)
    compiled(x, 0, y)
    assert torch.equal(y, x + 1)
