"""Allocations of several slots: one region under the PTOAS planner, plain tiles at addresses under PYPTO."""

from __future__ import annotations

import shutil

import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType, use_backend
from pypto.codegen import PTOCodegen
from pypto.passes import MemoryPlanner, PassContext, PassManager

from pypto import ir

RING = """
import pypto.language as pl


@pl.program
class Ring:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[128, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
        for i in pl.range(8):
            t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("ring", slots={slots}){slot}, {space}] = pl.load(
                x, [i * 16, 0], [16, 64]{valid}
            )
            d: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.mul(t, 2.0)
            {second}
            y = pl.store(d, [i * 16, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[128, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
        y = self.kernel(x, n, y)
        return y
"""  # noqa: E501


def ring(slots: int = 2, slot: str = "[i % 2]", space: str = "pl.Mem.Vec", valid: str = "", second: str = "pass"):
    text = RING.format(slots=slots, slot=slot, space=space, valid=valid, second=second)
    return pl.parse("\n".join(line for line in text.splitlines() if line.strip() != "pass"))


def kernel_text(program, planner: MemoryPlanner) -> list[str]:
    with use_backend(BackendType.Ascend910B), PassContext([], memory_planner=planner):
        lowered = PassManager.get_strategy().run_passes(program)
        kernel = next(f for f in lowered.functions.values() if ir.is_incore_type(f.func_type))
        single = ir.Program([kernel], kernel.name, lowered.span)
        text = PTOCodegen().generate(single, planner is not MemoryPlanner.PTOAS, emit_source_loc=False)
    return text.splitlines()


def test_the_assembler_gets_one_region_and_the_slot_of_each_tile():
    lines = [line.strip() for line in kernel_text(ring(), MemoryPlanner.PTOAS)]
    declared = [line for line in lines if "alloc_multi_tile" in line]
    assert len(declared) == 1 and "count=2>" in declared[0] and "addr" not in declared[0]
    assert lines.index(declared[0]) < next(i for i, line in enumerate(lines) if line.startswith("scf.for"))
    taken = next(line for line in lines if "multi_tile_get" in line)
    index = taken.split("[")[1].split("]")[0]
    assert any(line.startswith(f"{index} = arith.remsi %i__idx_v0, %c2_index") for line in lines)
    name = taken.split(" = ")[0]
    assert any("pto.tload" in line and f"outs({name} :" in line for line in lines)


def test_the_compiler_computes_the_address_of_a_slot():
    lines = [line.strip() for line in kernel_text(ring(), MemoryPlanner.PYPTO)]
    assert not any("multi_tile" in line for line in lines)
    tile = next(line for line in lines if line.startswith("%t__ssa_v0 = pto.alloc_tile"))
    address = tile.split("addr = ")[1].split()[0]
    assert not address.startswith("%c") and any(line.startswith(f"{address} = arith.") for line in lines)


OTHER = (
    'e: pl.Tile[[{0}], pl.FP32, pl.MemRef("ring", slots=2)[(i + 1) % 2], pl.Mem.Vec] = pl.load({1}, [0, 0], [{0}]{2})'
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 17, "slot": "[i % 17]"}, "17 slots; the assembler takes 2 to 16"),
        ({"slots": 1, "slot": ""}, "single-slot declared allocation"),
        ({"slot": ""}, "without selecting a slot"),
        ({"valid": ", valid_shape=[n, 64]"}, "runtime valid shape"),
        ({"second": OTHER.format("32, 32", "x", "")}, "differently shaped tiles"),
        ({"second": OTHER.format("16, 64", "x", ", valid_shape=[8, 64]")}, "different valid shapes"),
    ],
)
def test_what_the_assembler_cannot_place_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        kernel_text(ring(**changes), MemoryPlanner.PTOAS)


@pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels")
@pytest.mark.parametrize("planner", [MemoryPlanner.PTOAS, MemoryPlanner.PYPTO])
def test_slots_hold_their_tiles(planner):
    compiled = ir.compile(ring(), memory_planner=planner, dump_passes=False)
    x, y = torch.randn(128, 64), torch.zeros(128, 64)
    compiled(x, 0, y)
    assert torch.equal(y, x * 2)
