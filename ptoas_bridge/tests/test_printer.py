"""Printing and parsing back give the same program."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pto_text import ADD_KERNEL, PV, TB, VECTOR, VIEWS, kernel, tile
from ptoas_bridge.dialect.printer import print_module
from ptoas_bridge.parser import parse_module
from test_sync import allocations, programs

from ptoas_bridge import assemble

MULTI = f"!pto.multi_tile_buf<{TB}, count=2>"
LINES = [
    f"%t = pto.alloc_tile addr = %a0 valid_row = %c1 : {tile(valid='?x32')}",
    f"%m = pto.alloc_multi_tile addr = %a0 : {MULTI}\n%t = pto.multi_tile_get %m[%c1] : {MULTI} -> {TB}",
    f"%v = pto.subview %s[%c0, %c0] sizes [16, 32] valid [%c1, %c32] : {TB} -> {tile(16, valid='1x32')}",
    f"%v = pto.treshape %s : {TB} -> {tile(16, 64)}",
    f"%r, %c = pto.get_validshape %s : {TB}",
    "%b = pto.get_block_idx",
    f"pto.tcvt ins(%s {{rmode = #pto<round_mode ROUND>}} : {TB}) outs(%s : {TB})",
    f'pto.tgather ins(%s, {{maskPattern = #pto.mask_pattern<P0101>}} : {TB}, "row") outs(%s : {TB})',
    f"%e = pto.tgetval ins(%s, %c0 : {TB}, index) outs : f32",
    f"pto.tstore ins(%s : {TB}) outs(%xp : {PV}) {{atomicType = #pto<atomic_type atomic_add>}}",
    "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]",
    "pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %c1]",
    "pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
    "pto.barrier <PIPE_ALL>",
    "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<mix>",
    "pto.fence.barrier_all #pto.fence_scope<gm>",
    "pto.cmo.cacheinvalid all #pto.address_space<gm>",
    f"pto.cmo.cacheinvalid %xp single_cache_line : {PV}",
    "%q = pto.addptr %x, %c1 : !pto.ptr<f32> -> !pto.ptr<f32>\n%l = pto.load_scalar %q[%c1] : !pto.ptr<f32> -> f32",
    "%a = pto.declare_local_array -> !pto.local_array<4xindex>\n"
    "pto.local_array_set %a[%c1], %c1 : !pto.local_array<4xindex>, index",
    "%w = pto.declare_struct -> !pto.struct<i32, f32>\n%g = pto.struct_get %w[1] : !pto.struct<i32, f32> -> f32",
    "%f = arith.constant 0x7FC00000 : f32\n%g = arith.constant 1.5e-03 : f16\n%h = arith.negf %g : f16",
    "%s1 = arith.cmpi slt, %c0, %c1 : index\n%s2 = arith.select %s1, %c0, %c1 : index",
    "%i = arith.index_cast %c1 : index to i32\n%j, %k = arith.addui_extended %i, %i : i32, i1",
    "%r:2 = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %c0, %q = %c1) -> (index, index) {\n"
    "scf.yield %q, %p : index, index\n}",
    "%r = scf.while (%i = %c1) : (index) -> (index) {\n%ok = arith.cmpi slt, %i, %c32 : index\n"
    "scf.condition(%ok) %i : index\n} do {\n^bb0(%j : index):\nscf.yield %j : index\n}",
    "scf.index_switch %c1\ncase 2 {\n}\ndefault {\n}",
    "%r = scf.execute_region -> (index) {\nscf.yield %c1 : index\n}",
    "pto.section.vector {\n}",
    'pto.print ins("%d\\n", %c1 : index)',
    f"pto.comm.tput(%xp, %yp, buf(%s) : {PV}, {PV}, {TB}) {{atomicType = #pto<atomic_type atomic_none>}}",
    'pto.tabs ins(%s : TB) outs(%s : TB) loc("k.py":3:4)'.replace("TB", TB),
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_line_round_trip(line):
    text = kernel(VIEWS + f"%s = pto.alloc_tile addr = %a1 : {TB}\n" + line)
    printed = print_module(parse_module(text))
    assert print_module(parse_module(printed)) == printed
    for word in line.split("(")[0].split():
        if word.startswith(("pto.", "arith.", "scf.")):
            assert word.split("[")[0] in printed


def test_printed_program_assembles_to_the_same_text():
    assert assemble(print_module(parse_module(ADD_KERNEL))) == assemble(ADD_KERNEL)


def test_architecture_and_attributes_survive():
    text = 'module attributes {"pto.target_arch" = "a5"} {\nfunc.func private @f(i32) -> i32\n}'
    module = parse_module(print_module(parse_module(text)))
    assert module.arch == "a5"
    assert module.functions[0].private
    assert module.functions[0].body is None


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_programs_round_trip(body):
    text = kernel(
        "  %fl = arith.constant 1.0 : f32\n" + VIEWS + allocations(0, 2048, 4096) + body,
        args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %cond: i1, %n: index",
        attrs=VECTOR,
    )
    printed = print_module(parse_module(text))
    assert print_module(parse_module(printed)) == printed


def test_dump_dir_holds_the_program_after_each_step(tmp_path):
    assemble(ADD_KERNEL, dump_dir=tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[0] == "01_after_verify.pto"
    assert names[-1].endswith("_after_insert_sync.pto")
    assert "pto.set_flag" in (tmp_path / names[-1]).read_text()
    assert parse_module((tmp_path / names[-1]).read_text())
