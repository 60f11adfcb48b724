"""Dependencies that the compiler derives in place of the runtime's tracking."""

# ruff: noqa: RET504 - tile programs bind every value to a name

from __future__ import annotations

import pypto.language as pl
import pytest
import torch

from pypto import ir


@pl.program
class WrittenAgainInABranch:
    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        y = pl.store(pl.add(t, t), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[16, 64], pl.FP32],
        b: pl.Tensor[[16, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        t = pl.create_tensor([16, 64], dtype=pl.FP32)
        t = self.double(a, t)
        if n > 0:
            t = self.double(b, t)
        y = self.double(t, y)
        return y


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("derived")
    return ir.compile(
        WrittenAgainInABranch, output_dir=str(folder), platform="a2a3sim", analyze_auto_scopes_for_deps=True
    )


@pytest.mark.parametrize("n", [0, 1])
def test_a_reader_waits_for_the_writer_of_the_arm_that_ran(program, n):
    for _ in range(20):
        a, b, y = torch.randn(16, 64), torch.randn(16, 64), torch.zeros(16, 64)
        program(a, b, n, y)
        assert torch.equal(y, 4 * (b if n else a))


def test_both_arms_name_the_task_behind_the_tensor(program):
    (source,) = (program.output_dir / "orchestration").glob("*.cpp")
    lines = [line.strip() for line in source.read_text().splitlines()]
    start = lines.index("PTO2TaskId t__phi_v3_tid = PTO2TaskId::invalid();")
    arms = [line for line in lines[start + 1 :] if line.startswith("t__phi_v3_tid = ")]
    assert len(arms) == 2 and arms[0] != arms[1]
    assert any("t__phi_v3_tid.is_valid()" in line for line in lines)
