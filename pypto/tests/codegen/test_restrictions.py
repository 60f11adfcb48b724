"""Kernels that an architecture cannot run are refused with the reason; others are not."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.backend import BackendType, use_backend
from pypto.codegen import PTOCodegen
from pypto.errors import InternalError

OUT = "y: pl.Out[pl.Tensor[[{0}], pl.{1}]]"


def vec(shape: str, dtype: str, name: str, address: int, size: int = 4096, view: str = "") -> str:
    return (
        f'pl.Tile[[{shape}], pl.{dtype}, pl.MemRef("{name}", pl.const({address}, pl.INT64), {size}), pl.Mem.Vec{view}]'
    )


def load(var: str, shape: str, dtype: str, address: int, source: str = "x", valid: str = "", view: str = "") -> str:
    kind = vec(shape, dtype, f"m_{var}", address, view=view)
    return f"{var}: {kind} = pl.tile.load({source}, [0, 0], [{shape}], [{valid or shape}], target_memory=pl.Mem.Vec)\n"


@pytest.mark.parametrize(
    ("arch", "dtype", "message"),
    [
        ("910B", "FP4", r"4-bit dtype fp4 is not supported on a2a3"),
        ("910B", "INT4", r"4-bit dtype int4 is not supported on a2a3: its load/store ABI"),
        ("950", "INT4", r"only FP4"),
        ("950", "HF4", r"only FP4"),
    ],
)
def test_four_bit_parameters(pto, arch, dtype, message):
    with pytest.raises(ValueError, match=message):
        pto("return y", f"x: pl.Tensor[[16, 64], pl.{dtype}], " + OUT.format("16, 64", dtype), arch=arch)


def test_fp4_parameters_are_accepted_on_a5(pto):
    params = "x: pl.Tensor[[16, 64], pl.FP4], " + OUT.format("16, 64", "FP4")
    assert any("%arg1" in line for line in pto("return y", params, arch="950"))


@pytest.mark.parametrize("address", [0, 4096])
def test_a_move_needs_two_places(pto, address):
    body = load("t", "16, 64", "FP32", 0) + (
        f"d: {vec('16, 64', 'FP32', 'm_d', address)} = pl.tile.move(t, target_memory=pl.Mem.Vec)\nreturn y"
    )
    params = "x: pl.Tensor[[16, 64], pl.FP32], " + OUT.format("16, 64", "FP32")
    if address:
        assert any("pto.tmov" in line for line in pto(body, params))
    else:
        with pytest.raises(ValueError, match=r"tile\.move requires distinct source and destination addresses"):
            pto(body, params)


SELECT = "x: pl.Tensor[[16, 64], pl.INT32], m: pl.Tensor[[16, 64], pl.INT32], " + OUT.format("16, 64", "INT32")


@pytest.mark.parametrize(("arch", "scratch", "ok"), [("910B", 8192, True), ("910B", 64, False), ("950", 64, True)])
def test_scratch_of_a_selection_must_not_overlap_on_a2a3(pto, arch, scratch, ok):
    body = load("t", "16, 64", "INT32", 0) + load("k", "16, 64", "INT32", 4096, "m")
    body += load("s", "16, 64", "INT32", scratch)
    body += f"d: {vec('16, 64', 'INT32', 'm_d', 12288)} = pl.tile.sels(k, t, s, 3)\nreturn y"
    if ok:
        assert any("pto.tsels" in line for line in pto(body, SELECT, arch=arch))
    else:
        with pytest.raises(ValueError, match="tmp overlaps src"):
            pto(body, SELECT, arch=arch)


def test_a_selection_of_bytes_is_for_a5(pto):
    params = "x: pl.Tensor[[16, 64], pl.INT8], m: pl.Tensor[[16, 64], pl.INT32], " + OUT.format("16, 64", "INT8")
    body = load("t", "16, 64", "INT8", 0) + load("k", "16, 64", "INT32", 4096, "m") + load("s", "16, 64", "INT8", 8192)
    body += f"d: {vec('16, 64', 'INT8', 'm_d', 12288)} = pl.tile.sels(k, t, s, 3)\nreturn y"
    assert any("pto.tsels" in line for line in pto(body, params, arch="950"))
    with pytest.raises(ValueError, match="only supported on the 'a5' backend"):
        pto(body, params)


PRELU = "x: pl.Tensor[[16, 64], pl.FP32], s: pl.Tensor[[17, 64], pl.UINT8], " + OUT.format("16, 64", "FP32")


@pytest.mark.parametrize(
    ("rows", "valid", "message"), [(17, "17, 64", ""), (16, "16, 64", "physical rows"), (17, "17, 2", "valid columns")]
)
def test_scratch_of_a_parametric_relu_on_a2a3(pto, rows, valid, message):
    view = f", pl.TileView(valid_shape=[{valid}])" if message == "valid columns" else ""
    body = load("t", "16, 64", "FP32", 0) + load("w", "16, 64", "FP32", 4096)
    body += load("u", f"{rows}, 64", "UINT8", 8192, "s", valid, view)
    body += f"d: {vec('16, 64', 'FP32', 'm_d', 16384)} = pl.tile.prelu(t, w, u)\nreturn y"
    assert any("pto.tprelu" in line for line in pto(body, PRELU, arch="950"))
    if not message:
        assert any("pto.tprelu" in line for line in pto(body, PRELU))
        return
    with pytest.raises(ValueError, match=message):
        pto(body, PRELU)


ARRAYS = """
a: pl.Array[4, pl.INT32] = pl.array.create(4, pl.INT32)
b: pl.Array[4, pl.INT32] = pl.array.create(4, pl.INT32)
if n < 3:
    a1: pl.Array[4, pl.INT32] = pl.array.update_element(a, 0, 7)
    c: pl.Array[4, pl.INT32] = pl.yield_(a1)
else:
    a2: pl.Array[4, pl.INT32] = pl.array.update_element({0}, 0, 8)
    c: pl.Array[4, pl.INT32] = pl.yield_(a2)
v: pl.Scalar[pl.INT32] = pl.array.get_element(c, 0)
return y
"""


def test_branches_write_one_stack_array_in_place(pto):
    params = "n: pl.Scalar[pl.INT32], " + OUT.format("16, 64", "FP32")
    lines = pto(ARRAYS.format("a"), params)
    names = {line.split("pto.local_array_")[1].split("[")[0].split()[1] for line in lines if "local_array_" in line
             and "declare" not in line}  # fmt: skip
    assert len(names) == 1 and any(line.strip().startswith("scf.if") for line in lines)
    with pytest.raises(ValueError, match="must not be the result of an if whose branches end with different arrays"):
        pto(ARRAYS.format("b"), params)


def test_offsets_of_constant_elements_are_one_constant(pto):
    body = load("t", "16, 64", "FP32", 0) + "v: pl.Scalar[pl.FP32] = pl.tile.read(t, [1, 3])\nreturn y"
    lines = pto(body, "x: pl.Tensor[[16, 64], pl.FP32], " + OUT.format("16, 64", "FP32"))
    assert any("pto.tgetval" in line and "%c67_index" in line for line in lines)
    assert not any("arith.muli" in line for line in lines)


def test_only_kernels_become_text():
    @pl.program
    class Plain:
        @pl.function
        def main(self, x: pl.Tensor[[16], pl.FP32]) -> pl.Tensor[[16], pl.FP32]:
            return x

    with use_backend(BackendType.Ascend910B), pytest.raises(InternalError, match="InCore-variant"):
        PTOCodegen().generate(Plain)
