"""InferTileMemorySpace keeps matmul operands that no iteration changes on the chip."""

from __future__ import annotations

import pytest
import torch
from pass_programs import A2A3, calls, parse, run, text
from pypto.backend import use_backend
from pypto.debug import run_as_torch

from pypto import ir, passes

STEPS = (
    "convert_to_ssa", "convert_tensor_to_tile_ops", "flatten_tile_nd_to_2d", "auto_tile_matmul_l0",
    "canonicalize_tile_slice", "infer_tile_memory_space",
)  # fmt: skip
BODY = """
for n in pl.range(0, 256, 128):
    b = pl.slice(rhs, [128, 128], [0, n])
    c = pl.matmul(lhs, b, out_dtype=pl.FP32)
    out = pl.assemble(out, c, [0, n])
"""
LHS = "pl.Tensor[[16, 128], pl.BF16]"
PARAMS = (
    "lhs: pl.Tensor[[16, 128], pl.BF16], rhs: pl.Tensor[[128, 256], pl.BF16], "
    "seed: pl.Tensor[[16, 128], pl.BF16], out: pl.Out[pl.Tensor[[16, 256], pl.FP32]]"
)
LAUNCH = "w = pl.create_tensor([16, 128], dtype=pl.BF16)\nw = self.fill(seed, w)\nout = self.k(w, rhs, seed, out)"


def program(body: str = BODY, launch: str = LAUNCH, *, more: str = "") -> ir.Program:
    def block(lines: str) -> str:
        return "\n".join("    " + line for line in lines.strip().splitlines())

    return parse(f"""
@pl.function(type=pl.FunctionType.InCore)
def fill(self, s: {LHS}, w: pl.Out[{LHS}]) -> {LHS}:
    t = pl.load(s, [0, 0], [16, 128])
    w = pl.store(t, [0, 0], w)
    return w

@pl.function(type=pl.FunctionType.InCore)
def k(self, {PARAMS}) -> pl.Tensor[[16, 256], pl.FP32]:
{block(body)}
    return out
{more}
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, seed: pl.Tensor[[16, 128], pl.BF16], rhs: pl.Tensor[[128, 256], pl.BF16],
         out: pl.Out[pl.Tensor[[16, 256], pl.FP32]]) -> pl.Tensor[[16, 256], pl.FP32]:
{block(launch)}
    return out
""")


def resident(after: ir.Program, name: str = "lhs") -> bool:
    """Whether the operand is loaded in front of the loop."""
    lines = text(after, "k").splitlines()
    load = next(i for i, line in enumerate(lines) if "tile.load" in line and f"({name}__" in line)
    return load < next(i for i, line in enumerate(lines) if " for n" in line)


def test_an_operand_that_every_iteration_reads_is_loaded_once():
    after = run(program(), *STEPS)
    assert resident(after) and not resident(after, "rhs")
    assert "mat_bridge" not in text(after)
    args = [torch.randn(16, 128).bfloat16(), torch.randn(128, 256).bfloat16()]
    results = []
    for each in (program(), after):
        results.append(torch.zeros(16, 256))
        run_as_torch(each, [*args, results[-1]])
    assert torch.equal(*results)


def test_staging_for_one_matmul_moves_along():
    lines = text(run(program(), *STEPS), "k").splitlines()
    loop = next(i for i, line in enumerate(lines) if " for n" in line)
    assert [i < loop for i, line in enumerate(lines) if "tile.move" in line] == [True, False]


KEPT = {
    "the caller's own parameter": (BODY, "out = self.k(seed, rhs, seed, out)"),
    "a written tensor": (BODY.replace("    b =", "    lhs = pl.assemble(lhs, pl.full([16, 128], dtype=pl.BF16, "
                                      "value=0.0), [0, 0])\n    b ="), LAUNCH),
    "synchronisation": (BODY + "    pl.system.fence()\n", LAUNCH),
    "runtime bounds": (BODY.replace("0, 256, 128", "0, pl.tensor.dim(seed, 0), 128"), LAUNCH),
    "a pipelined loop": (BODY.replace("pl.range(0, 256, 128)", "pl.pipeline(0, 256, 128, stage=2)"), LAUNCH),
    "a launch with a task id": (BODY, LAUNCH.replace("out = self.k(", "out, task = pl.submit(self.k, ")),
    "one launch of two": (BODY, LAUNCH + "\nout = self.k(seed, rhs, seed, out)"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "launch"), KEPT.values(), ids=KEPT)
def test_the_load_stays_where_it_may_read_something_else_or_never_run(body, launch):
    if "submit" in launch:
        launch = "with pl.manual_scope():\n" + "\n".join("    " + line for line in launch.splitlines())
    after = run(program(body, launch), *STEPS)
    assert not resident(after)
    assert "mat_bridge" not in text(after)


def test_nothing_moves_without_a_backend():
    after = run(program(), *STEPS, backend=None)
    assert not resident(after)


def test_the_whole_pipeline_takes_resident_operands():
    with use_backend(A2A3), passes.PassContext([]):
        after = ir.PassManager.get_strategy().run_passes(program())
    assert "tile.matmul" in calls(after, "k")
    assert resident(after)
