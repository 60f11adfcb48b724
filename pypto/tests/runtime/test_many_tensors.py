"""Orchestration functions that create more tensors than one call of the task runtime allocates."""

from __future__ import annotations

import re
import runpy

import pytest
import torch

from pypto import ir

TOGETHER = 30  # outputs of one kernel
TENSOR = "pl.Tensor[[16, 16], pl.FP32]"


def program(folder, count: int):
    """``fill`` writes 1, 2, ... into its outputs; ``main`` creates ``count`` tensors and adds first and last."""
    names = [f"o{i}" for i in range(TOGETHER)]
    stores = "".join(f"        {n} = pl.store(pl.add(t, {float(i + 1)}), [0, 0], {n})\n" for i, n in enumerate(names))
    creates = "".join(f"        t{i} = pl.create_tensor([16, 16], dtype=pl.FP32)\n" for i in range(count))
    calls = ""
    for first in range(0, count, TOGETHER):
        outs = ", ".join(f"t{i}" for i in range(first, first + TOGETHER))
        calls += f"        {outs} = self.fill(x, {outs})\n"
    text = f"""import pypto.language as pl


@pl.program
class Many:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, a: {TENSOR}, {", ".join(f"{n}: pl.Out[{TENSOR}]" for n in names)}) -> tuple[{", ".join([TENSOR] * TOGETHER)}]:
        t = pl.load(a, [0, 0], [16, 16])
{stores}        return {", ".join(names)}

    @pl.function(type=pl.FunctionType.InCore)
    def add(self, a: {TENSOR}, b: {TENSOR}, y: pl.Out[{TENSOR}]) -> {TENSOR}:
        return pl.store(pl.add(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16])), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {TENSOR}, y: pl.Out[{TENSOR}]) -> {TENSOR}:
{creates}{calls}        y = self.add(t0, t{count - 1}, y)
        return y
"""  # noqa: E501
    path = folder / f"many_{count}.py"
    path.write_text(text)
    return runpy.run_path(str(path))["Many"]


@pytest.mark.parametrize("count", [240, 300, 1020])
def test_allocations_are_split_into_calls(tmp_path, count):
    compiled = ir.compile(program(tmp_path, count), output_dir=tmp_path / "out", skip_ptoas=True, dump_passes=False)
    (source,) = (tmp_path / "out" / "orchestration").glob("*.cpp")
    calls = [call.split(", ") for call in re.findall(r"= alloc_tensors\((.*)\);", source.read_text())]
    assert sum(map(len, calls)) == count and len(calls) == -(-count // 256) and max(map(len, calls)) <= 256
    assert compiled.program is not None


def test_three_hundred_tensors_run(tmp_path):
    compiled = ir.compile(program(tmp_path, 300), output_dir=tmp_path / "out", platform="a2a3sim", dump_passes=False)
    x, y = torch.zeros(16, 16), torch.zeros(16, 16)
    compiled(x, y)
    assert torch.equal(y, torch.full((16, 16), 1.0 + TOGETHER))
