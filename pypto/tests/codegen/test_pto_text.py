"""Kernel text: module frame, constants, views, allocations, control flow."""

from __future__ import annotations

import pytest

X = "x: pl.Tensor[[16, 64], pl.FP32]"
Y = "y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
TILE = 'pl.Tile[[16, 64], pl.FP32, pl.MemRef("m{0}", pl.const({1}, pl.INT64), 4096), pl.Mem.Vec]'
LOAD = f"t: {TILE.format(0, 0)} = pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)"
STORE = "r: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store({}, [0, 0], y)"

DOUBLE = f"""
{LOAD}
d: {TILE.format(1, 4096)} = pl.tile.muls(t, 2.0)
{STORE.format("d")}
return y
"""


def position(lines: list[str], fragment: str) -> int:
    found = [i for i, line in enumerate(lines) if fragment in line]
    assert found, f"no line contains {fragment!r}"
    return found[0]


@pytest.mark.parametrize(("arch", "word"), [("910B", "a2a3"), ("950", "a5")])
def test_module_frame_names_the_architecture_and_the_core(pto, arch, word):
    lines = pto(DOUBLE, f"{X}, {Y}", arch=arch)
    assert lines[0] == f'module attributes {{pto.target_arch = "{word}"}} {{'
    assert "#pto.kernel_kind<vector>" in lines[1]
    assert [line.strip() for line in lines[-3:]] == ["return", "}", "}"]


def test_a_load_is_allocation_partition_and_instruction(pto):
    lines = pto(DOUBLE, f"{X}, {Y}")
    load = position(lines, "pto.tload")
    assert "pto.partition_view %x_view" in lines[load - 1]
    assert "pto.alloc_tile addr = %c0_i64" in lines[load - 2]


def test_constants_precede_every_use_and_are_declared_once(pto):
    lines = pto(DOUBLE, f"{X}, {Y}")
    declared = [line.split()[0] for line in lines if "arith.constant" in line]
    assert len(declared) == len(set(declared))
    last = max(i for i, line in enumerate(lines) if "arith.constant" in line)
    assert last < position(lines, "make_tensor_view")
    assert any(line.strip() == "%c4096_i64 = arith.constant 4096 : i64" for line in lines)


def test_equal_input_gives_equal_text(pto):
    assert pto(DOUBLE, f"{X}, {Y}") == pto(DOUBLE, f"{X}, {Y}")


def test_addresses_are_left_out_when_the_assembler_plans_memory(pto):
    lines = pto(DOUBLE, f"{X}, {Y}", addresses=False)
    assert not any("alloc_tile addr" in line for line in lines)


def test_float_constants_carry_the_scalar_type_of_the_operand(pto):
    lines = pto(DOUBLE, f"{X}, {Y}")
    assert any("2.00000000000000000e+00 : f32" in line for line in lines)
    assert ", f32) outs(" in lines[position(lines, "pto.tmuls")]


def test_a_column_tensor_gets_the_column_layout(pto):
    column = 'pl.Tile[[24, 1], pl.FP32, pl.MemRef("m", pl.const(0, pl.INT64), 96), pl.Mem.Vec]'
    body = f"t: {column} = pl.tile.load(x, [0, 0], [24, 1], [24, 1], target_memory=pl.Mem.Vec)\nreturn y"
    lines = pto(body, "x: pl.Tensor[[24, 1], pl.FP32], y: pl.Out[pl.Tensor[[24, 1], pl.FP32]]")
    view = lines[position(lines, "make_tensor_view")]
    assert "shape = [%c24_index, %c1_index], strides = [%c1_index, %c24_index] {layout = #pto.layout<dn>}" in view


def test_outer_strides_of_a_rank_three_tensor_are_computed(pto):
    tile = 'pl.Tile[[16, 128], pl.FP32, pl.MemRef("m", pl.const(0, pl.INT64), 8192), pl.Mem.Vec]'
    body = f"""
    v: pl.Tensor[[64, 128], pl.FP32, pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)] = pl.tensor.view(x, [64, 128])
    t: {tile} = pl.tile.load(v, [16, 0], [16, 128], [16, 128], target_memory=pl.Mem.Vec)
    u: {tile} = pl.tile.load(v, [0, 0], [16, 128], [16, 128], target_memory=pl.Mem.Vec)
    s: pl.Scalar[pl.FP32] = pl.tensor.read(x, [1, 2, 3])
    return y
    """  # noqa: E501
    lines = pto(body, "x: pl.Tensor[[4, 16, 128], pl.FP32], y: pl.Out[pl.Tensor[[4, 16, 128], pl.FP32]]")
    assert any("%x_s0 = arith.muli %c128_index, %c16_index : index" in line for line in lines)
    assert any("strides = [%x_s0, %c128_index, %c1_index]" in line for line in lines)


def test_dynamic_extents_become_index_parameters(pto):
    body = "s: pl.Scalar[pl.FP32] = pl.tensor.read(x, [0, 0])\nreturn y"
    program = "x: pl.Tensor[[M, N], pl.FP32], y: pl.Out[pl.Tensor[[M, N], pl.FP32]]"
    lines = _with_symbols(body, program)
    assert "%arg2: index, %arg3: index" in lines[1]
    assert "shape = [%arg2, %arg3], strides = [%arg3, %c1_index]" in lines[position(lines, "make_tensor_view")]


def _with_symbols(body: str, params: str) -> list[str]:
    import textwrap

    import pypto.language as pl
    from pypto.backend import BackendType, use_backend
    from pypto.codegen.pto import generate_module

    text = (
        'import pypto.language as pl\n\nM = pl.dynamic("M")\nN = pl.dynamic("N")\n\n@pl.program\nclass P:\n'
        f"    @pl.function(type=pl.FunctionType.AIV)\n    def k({params}):\n"
        + textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    )
    with use_backend(BackendType.Ascend910B):
        return generate_module(list(pl.parse(text).functions.values()), emit_source_loc=False).splitlines()


def test_runtime_offsets_are_clamped_and_constant_ones_are_not(pto):
    tile = TILE.format(0, 0)
    body = f"""
    t: {tile} = pl.tile.load(x, [row, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
    {STORE.format("t")}
    return y
    """
    lines = pto(body, f"x: pl.Tensor[[64, 64], pl.FP32], row: pl.Scalar[pl.INDEX], {Y}")
    clamps = [line for line in lines if "arith.maxsi" in line]
    assert len(clamps) == 1
    assert "%arg2, %c0_index : index" in clamps[0]
    name = clamps[0].split()[0]
    assert f"offsets = [{name}, %c0_index]" in lines[position(lines, "partition_view")]


def test_runtime_valid_extents_travel_as_operands(pto):
    tile = (
        'pl.Tile[[16, 64], pl.FP32, pl.MemRef("m", pl.const(0, pl.INT64), 4096), pl.Mem.Vec, '
        "pl.TileView(valid_shape=[m, n])]"
    )
    body = f"""
    t: {tile} = pl.tile.load(x, [0, 0], [16, 64], [m, n], target_memory=pl.Mem.Vec)
    {STORE.format("t")}
    return y
    """
    lines = pto(body, f"{X}, {Y}, m: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX]")
    assert "valid_row = %arg2 valid_col = %arg3" in lines[position(lines, "alloc_tile")]
    assert "!pto.partition_tensor_view<?x?xf32>" in lines[position(lines, "pto.tload")]
    assert not any("set_validshape" in line for line in lines)


def test_a_loop_without_scalar_carries_has_no_iter_args(pto):
    tile = TILE.format(0, 0)
    body = f"""
    {LOAD}
    for i, (a,) in pl.range(4, init_values=(t,)):
        b: {tile} = pl.tile.adds(a, 1.0)
        z: {tile} = pl.yield_(b)
    {STORE.format("z")}
    return y
    """
    lines = pto(body, f"{X}, {Y}")
    loop = position(lines, "scf.for")
    assert lines[loop].strip() == "scf.for %i = %c0_index to %c4_index step %c1_index {"
    assert not any("scf.yield" in line for line in lines)
    assert "pto.tstore ins(%t :" in lines[position(lines, "pto.tstore")]


def test_scalar_carries_are_yielded(pto):
    body = """
    for i, (acc,) in pl.range(8, init_values=(base,)):
        nxt: pl.Scalar[pl.INDEX] = acc + i
        last: pl.Scalar[pl.INDEX] = pl.yield_(nxt)
    s: pl.Scalar[pl.FP32] = pl.tensor.read(x, [last, 0])
    return y
    """
    lines = pto(body, f"{X}, {Y}, base: pl.Scalar[pl.INDEX]")
    assert "%last = scf.for %i" in lines[position(lines, "scf.for")]
    assert "iter_args(%acc = %arg2) -> (index) {" in lines[position(lines, "scf.for")]
    assert sum("scf.yield" in line for line in lines) == 1


def test_a_tile_carried_by_a_while_loop_is_copied_back(pto):
    start, other = TILE.format(0, 0), TILE.format(1, 4096)
    body = f"""
    {LOAD}
    for n, a in pl.while_(init_values=(0, t)):
        pl.cond(n < 3)
        b: {other} = pl.tile.adds(a, 1.0)
        m: pl.Scalar[pl.INDEX] = n + 1
        n_out, a_out = pl.yield_(m, b)
    {STORE.format("a_out")}
    return y
    """
    lines = pto(body, f"{X}, {Y}")
    assert position(lines, "pto.tadds") < position(lines, "pto.tmov ins(%b") < position(lines, "scf.yield")
    assert start


def test_a_branch_result_is_declared_in_the_head(pto):
    tile = TILE.format(1, 4096)
    body = f"""
    {LOAD}
    if flag < 3:
        a: {tile} = pl.tile.adds(t, 1.0)
        z: {tile} = pl.yield_(a)
    else:
        b: {tile} = pl.tile.muls(t, 2.0)
        z: {tile} = pl.yield_(b)
    {STORE.format("z")}
    return y
    """
    lines = pto(body, f"{X}, {Y}, flag: pl.Scalar[pl.INDEX]")
    assert position(lines, "%z = pto.alloc_tile addr = %c4096_i64") < position(lines, "pto.tload")
    assert position(lines, "scf.if") < position(lines, "} else {") < position(lines, "pto.tstore")
    assert not any("pto.tmov" in line for line in lines)


def test_locations_can_be_switched_off_and_change_nothing_else(monkeypatch):
    import re

    import pypto.language as pl
    from pypto.backend import BackendType, use_backend
    from pypto.codegen import PTOCodegen

    text = (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.AIV)\n"
        f"    def k({X}, {Y}):\n" + "".join(f"        {line}\n" for line in DOUBLE.strip().splitlines())
    )
    program = pl.parse(text, filename="kernels.py")
    with use_backend(BackendType.Ascend910B):
        located = PTOCodegen().generate(program)
        monkeypatch.setenv("PYPTO_EMIT_PTO_LOC", "No")
        plain = PTOCodegen().generate(program)
    assert " loc(" not in plain
    assert ' loc("kernels.py":' in located
    assert re.sub(r' loc\("[^"]*":\d+:\d+\)', "", located) == plain


def test_locations_escape_what_a_string_literal_cannot_hold():
    from pypto.codegen.pto.kernel import KernelEmitter
    from pypto.ir import Span

    emitter = KernelEmitter(None, None, emit_tile_addr=True, emit_source_loc=True)
    assert emitter._location(Span("plain dir/k.py", 3, 4, 3, 5)) == ' loc("plain dir/k.py":3:4)'
    assert emitter._location(Span('q"d\\t\t.py', 3, 4, 3, 5)) == ' loc("q\\"d\\\\t\\t.py":3:4)'
