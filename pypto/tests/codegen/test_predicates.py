"""A predicate decides at run time whether a task does its work; it is read by the scheduler, not computed before."""

from __future__ import annotations

import shutil

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType, use_backend
from pypto.codegen import generate_orchestration
from pypto.passes import PassManager

from pypto import ir

TEXT = """
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        flags: pl.Tensor[[2, 4], pl.INT32],
        y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]],
    ):
        y, t = pl.submit(self.double, x, y, predicate=({0}))
        return y
"""


def program(predicate: str):
    return pl.parse(TEXT.replace("{0}", predicate))


@pytest.mark.parametrize(
    ("predicate", "op", "target"),
    [
        ("flags[1, 2] == 3", "EQ", "3"),
        ("flags[1, 2] != 3", "NE", "3"),
        ("flags[1, 2] > -2", "GT", "-2"),
        ("3 < flags[1, 2]", "GT", "3"),
        ("3 >= flags[1, 2]", "LE", "3"),
    ],
)
def test_the_text_names_the_element_and_the_comparison(predicate, op, target):
    with use_backend(BackendType.Ascend910B):
        lowered = PassManager.get_strategy().run_passes(program(predicate))
        code = generate_orchestration(lowered, lowered.get_function("main")).code
    lines = [line.strip() for line in code.splitlines()]
    assert "get_tensor_data" not in code
    for wanted in (
        "params_t0_pred.operand.tensor = &ext_flags;",
        "params_t0_pred.operand.indices[0] = 1;",
        "params_t0_pred.operand.indices[1] = 2;",
        f"params_t0_pred.op = PredicateOp::{op};",
        f"params_t0_pred.target = {target};",
    ):
        assert lines.count(wanted) == 1
    submit = next(i for i, line in enumerate(lines) if "rt_submit_aiv_task" in line)
    assert lines.index("params_t0.set_predicate(params_t0_pred);") < submit


@pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels")
def test_a_task_whose_predicate_is_false_does_nothing():
    compiled = ir.compile(program("flags[1, 2] > 3"), dump_passes=False)
    x = torch.arange(256, dtype=torch.float32).reshape(16, 16)
    for value, factor in ((4, 2.0), (3, None)):
        flags, y = torch.zeros(2, 4, dtype=torch.int32), torch.full((16, 16), -1.0)
        flags[1, 2] = value
        compiled(x, flags, y)
        assert torch.equal(y, x * factor if factor else torch.full((16, 16), -1.0))
