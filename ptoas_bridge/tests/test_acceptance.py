"""The acceptance examples of the format chapter (section 12), by their numbers. Numeric ones are tests of the ISA."""

from __future__ import annotations

import pytest
from pto_text import ADD_KERNEL, PV, TB, VECTOR, VIEWS, kernel, tile

from ptoas_bridge import AssemblerError, assemble

KEYS = "blayout=row_major, slayout=none_box, fractal=512, pad=0"
LONG = f"!pto.tile_buf<loc=vec, dtype=f16, rows=16, cols=16, v_row=16, v_col=16, {KEYS}>"
CUBE = "pto.kernel_kind = #pto.kernel_kind<cube>"
ACC = tile(32, 32, "f32", "acc", blayout="col_major", slayout="row_major", fractal=1024)


def accepted(text: str, **options) -> str:
    return assemble(text, **options)


def rejected(text: str, fragment: str, **options) -> None:
    with pytest.raises(AssemblerError) as info:
        assemble(text, **options)
    assert fragment in info.value.message


def alloc(type_: str, address: str = "addr = %a0") -> str:
    return kernel(f"  %t = pto.alloc_tile {address} : {type_}")


def test_01_function_that_returns():
    cpp = accepted("module {\nfunc.func @NAME() {\nreturn\n}\n}")
    assert "AICORE void NAME(" in cpp
    assert "__global__" not in cpp


@pytest.mark.parametrize("attrs", ["pto.entry", "pto.kernel", "pto.aicore", f"pto.entry, {VECTOR}"])
def test_02_entry_attributes(attrs):
    assert 'extern "C" __global__ AICORE void k(' in accepted(kernel("", attrs=attrs))


def test_03_entry_with_a_result():
    text = "func.func @k() -> i32 attributes {pto.entry} {\n%c = arith.constant 0 : i32\nreturn %c : i32\n}"
    rejected(text, "PTO entry functions must return void")


def test_04_two_spellings_of_one_type():
    compact = "!pto.tile_buf<vec, 16x16xf16>"
    body = f"  %t = pto.alloc_tile addr = %a0 : {LONG}\n  pto.tabs ins(%t : {compact}) outs(%t : {LONG})"
    assert "TABS(" in accepted(kernel(body))


def test_05_06_type_errors():
    bad = f"!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=20, v_col=16, {KEYS}>"
    rejected(alloc(bad), "tile_buf valid_row (20) exceeds row (16)")
    bad = LONG.replace("fractal=512", "fractal=16")
    rejected(alloc(bad), "unsupported s_fractal_size: 16, must be one of {32, 512, 1024}")


def test_07_08_alignment():
    rejected(alloc(tile(4, 7)), "32-byte aligned, but got 28 bytes")
    nz = tile(8, 32, "f16", "mat", blayout="col_major", slayout="row_major")
    rejected(alloc(nz), "multiple of innerRows (16), but got 8")


def test_09_10_addresses_and_levels():
    rejected(alloc(TB, ""), "requires 'addr' operand when --pto-level=level3", level="level3")
    rejected(alloc(TB), "unexpected 'addr' operand", level="level2")


@pytest.mark.parametrize(("arch", "layout"), [("a3", "RowMajor"), ("a5", "ColMajor")])
def test_11_left_layout(arch, layout):
    for written in ("row_major", "col_major"):
        left = tile(32, 32, "f16", "left", blayout=written, slayout="row_major")
        cpp = accepted(kernel(f"  %t = pto.alloc_tile addr = %a0 : {left}\n  pto.tprint ins(%t : {left})"), arch=arch)
        assert f"TileType::Left, half, 32, 32, BLayout::{layout}" in cpp


def test_12_13_14_sync():
    cpp = accepted(ADD_KERNEL)
    at = 0
    for word in (
        "TLOAD(", "TLOAD(", "set_flag(PIPE_MTE2, PIPE_V", "wait_flag(PIPE_MTE2, PIPE_V", "TADD(",
        "set_flag(PIPE_V, PIPE_MTE3", "wait_flag(PIPE_V, PIPE_MTE3", "TSTORE(",
        "ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);",
    ):  # fmt: skip
        at = cpp.index(word, at) + 1
    plain = accepted(ADD_KERNEL, enable_insert_sync=False)
    body = plain[plain.index("AICORE void k(") :]
    assert "set_flag(" not in body
    assert "ptoas_auto_sync_tail(" not in body
    assert "void ptoas_auto_sync_tail(" in plain
    manual = ADD_KERNEL.replace("  pto.tadd", "  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n  pto.tadd")
    body = accepted(manual).split("AICORE void k(")[1]
    assert body.count("set_flag(") == 1
    assert "ptoas_auto_sync_tail(" not in body


def pipe(body: str, init: str = "dir_mask = 1, slot_size = 4096") -> str:
    head = f"  %z = arith.constant 0 : i32\n  pto.aic_initialize_pipe {{{init}}} "
    head += "(gm_slot_buffer = %x : !pto.ptr<f32>, c2v_consumer_buf = %z : i32, v2c_consumer_buf = %z : i32)\n"
    return kernel(head + f"  %t = pto.alloc_tile addr = %a0 : {ACC}\n" + body, attrs=CUBE)


def test_28_hardware_flags():
    init = "(c2v_consumer_buf = %z : i32, v2c_consumer_buf = %z : i32)"
    masks = [3] + [1] * 8
    body = "".join(f"pto.aic_initialize_pipe {{id = {i}, dir_mask = {m}, slot_size = 64}} {init}\n"
                   for i, m in enumerate(masks))  # fmt: skip
    rejected(kernel("%z = arith.constant 0 : i32\n" + body, attrs=CUBE), "16 hardware flag ids")


def test_29_30_pipe_conflicts():
    rejected(
        pipe(f"  pto.tpush_to_aiv(%t : {ACC}) {{split = 0}}\n  pto.tpush_to_aiv(%t : {ACC}) {{split = 1}}"),
        "cannot mix 'split = 0'",
    )
    local = pipe("", "dir_mask = 1, slot_size = 4096, local_slot_num = 2")
    rejected(local, "'local_slot_num' is only supported for a2/a3 frontend pipe lowering", arch="a5")
    assert accepted(local, arch="a3")


def test_31_33_views():
    body = "  %v = pto.make_tensor_view %x, shape = [%c32], strides = [%c1] : !pto.tensor_view<32xf32>\n"
    body += "  %w = pto.partition_view %v, offsets = [%c1], sizes = [%c32] : !pto.tensor_view<32xf32> -> "
    rejected(kernel(body + "!pto.partition_tensor_view<32xf32>"), "exceeds static source dim (32)")
    view = "  %v = pto.make_tensor_view %x, shape = [%c32], strides = [%c1] : !pto.tensor_view<?xf32>"
    rejected(kernel(view, args="%x: !pto.ptr<f16>"), "expects different type than prior uses")


def test_36_37_sequence_and_push_spelling():
    seq = tile(1, 32, "i32")
    body = f"  %z = arith.constant 0 : i32\n  %y0 = pto.alloc_tile addr = %a0 : {seq}\n"
    body += f"  pto.tci ins(%z : i32) outs(%y0 : {seq}) {{descending = false}}"
    assert "TCI<" in accepted(kernel(body), arch="a5")
    rejected(kernel(body), "requires explicit tmp when PlanMemory is skipped", arch="a3")
    for spelling in ("(%t : {})", " ins(%t : {})"):
        cpp = accepted(pipe(f"  pto.tpush_to_aiv{spelling.format(ACC)} {{split = 0}}"))
        assert "TPUSH<TPipe<0, Direction::DIR_C2V, 4096, 8, 8, true>" in cpp


def test_39_fillpad_modes():
    def fill(source: str, target: str, second: str) -> str:
        return accepted(
            kernel(f"""\
  %s = pto.alloc_tile addr = %a0 : {source}
  %d = pto.alloc_tile addr = {second} : {target}
  pto.tfillpad ins(%s : {source}) outs(%d : {target})""")
        )

    padded = tile(pad=1)
    assert "TFILLPAD<pto::TFillPadMode::Expand>(" in fill(tile(16), padded, "%a1")
    assert "TFILLPAD<pto::TFillPadMode::InPlace>(" in fill(tile(valid="16x16"), padded, "%a0")
    assert "TFILLPAD(" in fill(tile(valid="16x16"), padded, "%a1")


def test_40_42_scalar_stores_and_fences():
    cpp = accepted(
        kernel("  %f = arith.constant 1.0 : f32\n  pto.store_scalar %f, %x[%c0] : !pto.ptr<f32>, f32", attrs=VECTOR)
    )
    drain = cpp.index("dcci((__gm__ void*)0, cache_line_t::ENTIRE_DATA_CACHE);")
    assert drain < cpp.index("#endif // __DAV_VEC__")
    cpp = accepted(kernel("  pto.fence.barrier_all #pto.fence_scope<gm>"))
    assert "  pipe_barrier(PIPE_ALL);\n  dsb(DSB_DDR);" in cpp


def test_41_loop_carried_flags():
    body = f"""\
  %t = pto.alloc_tile addr = %a0 : {TB}
  scf.for %i = %c0 to %c32 step %c1 {{
    pto.tload ins(%xp : {PV}) outs(%t : {TB})
    pto.tabs ins(%t : {TB}) outs(%t : {TB})
    pto.tstore ins(%t : {TB}) outs(%yp : {PV})
  }}"""
    cpp = accepted(kernel(VIEWS + body, attrs=VECTOR)).split("AICORE void k(")[1]
    before, rest = cpp.split("for (", 1)
    inside, after = rest.rsplit("\n  }\n", 1)
    assert "set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);" in before
    lines = [line.strip() for line in inside.splitlines()[1:]]
    assert lines[0] == "wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);"
    assert lines[-1] == "set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);"
    assert "wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);" in after
