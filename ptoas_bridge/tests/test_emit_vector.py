"""Vector kernels: text in, C++ out."""

from __future__ import annotations

import re

from pto_text import ADD_KERNEL, PV, TB, VECTOR, VIEWS, kernel, tile

import ptoas_bridge

PV1 = "!pto.partition_tensor_view<1x32xf32>"


def emit(text: str, **options) -> str:
    options.setdefault("enable_insert_sync", False)
    return ptoas_bridge.assemble(text, **options)


def calls(cpp: str) -> list[str]:
    """Names of the tile instructions in order."""
    names = [line.split("(")[0].split("<")[0].strip() for line in cpp.splitlines()]
    return [n for n in names if n.isupper() and n.startswith("T") and n != "TASSIGN"]


def test_add_kernel_calls_in_program_order():
    assert calls(emit(ADD_KERNEL)) == ["TLOAD", "TLOAD", "TADD", "TSTORE"]


def test_prologue_guard_and_signature():
    cpp = emit(ADD_KERNEL)
    assert cpp.startswith('#include "pto/pto-inst.hpp"\nusing namespace pto;\n')
    assert "AICORE void k(__gm__ float* v1, __gm__ float* v2) {" in cpp
    assert "#if defined(__DAV_VEC__)\n  set_mask_norm();\n  set_vector_mask(-1, -1);" in cpp
    assert "#endif // __DAV_VEC__" in cpp
    assert "__global__" not in cpp
    assert not cpp.endswith("\n")


def test_entry_attribute_makes_a_global_function():
    for attr in ("pto.entry", "pto.kernel", "pto.aicore"):
        assert 'extern "C" __global__ AICORE void k(' in emit(kernel("", attrs=attr))


def test_static_view_spelling():
    cpp = emit(ADD_KERNEL)
    assert "pto::Stride<1024, 1024, 1024, 32, 1> v" in cpp
    assert (
        "GlobalTensor<float, pto::Shape<1, 1, 1, 32, 32>, pto::Stride<1024, 1024, 1024, 32, 1>, pto::Layout::ND>" in cpp
    )
    assert "((__gm__ float*) v1, v" in cpp


def test_offsets_become_pointer_arithmetic_and_zero_offsets_vanish():
    body = (
        VIEWS
        + f"""\
  %w = pto.partition_view %xv, offsets = [%n, %c0], sizes = [%c1, %c32] : !pto.tensor_view<?x?xf32> -> {PV1}
  %t = pto.alloc_tile addr = %a0 : {tile(1)}
  pto.tload ins(%w : {PV1}) outs(%t : {tile(1)})"""
    )
    cpp = emit(kernel(body, args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index"))
    assert "(__gm__ float*) v1 + (v3 * v" in cpp


def test_runtime_extent_makes_dynamic_shape_and_strides():
    body = f"""\
  %xv = pto.make_tensor_view %x, shape = [%n, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
  %w = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%n, %c32] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x32xf32>
  %t = pto.alloc_tile addr = %a0 valid_row = %n : {tile(valid="?x32")}
  pto.tload ins(%w : !pto.partition_tensor_view<?x32xf32>) outs(%t : {tile(valid="?x32")})"""  # noqa: E501
    cpp = emit(kernel(body, args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index"))
    assert "pto::Shape<1, 1, 1, -1, 32>(1, 1, 1, v3, 32)" in cpp
    assert "pto::Stride<-1, -1, -1, -1, -1>(" in cpp
    assert "BLayout::RowMajor, -1, 32, SLayout::NoneBox, 512, PadValue::Null, CompactMode::Null>(v3);" in cpp


def test_windows_that_only_run_time_values_place_are_checked():
    body = (
        VIEWS
        + f"""\
  %w = pto.partition_view %xv, offsets = [%n, %c0], sizes = [%c1, %c32] : !pto.tensor_view<?x?xf32> -> {PV1} loc("k.py":6:3)
  %t = pto.alloc_tile addr = %a0 : {tile(1)}
  pto.tload ins(%w : {PV1}) outs(%t : {tile(1)})"""  # noqa: E501
    )
    cpp = emit(kernel(body, args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index"))
    checks = [line.strip() for line in cpp.split("\n") if line.strip().startswith("PTOAS_CHECK_WINDOW(")]
    assert len(checks) == 1
    assert re.fullmatch(r'PTOAS_CHECK_WINDOW\("xv", 0, v3, v\d, v\d, "k.py:6:3"\);', checks[0])
    assert "#if defined(PTO_CHECK_WINDOW)" in cpp
    assert "PTOAS_CHECK_WINDOW" not in emit(ADD_KERNEL)


def test_elements_of_described_tensors_are_checked():
    body = (
        VIEWS
        + """\
  %v = pto.load_scalar %x[%n] : !pto.ptr<f32> -> f32
  pto.store_scalar %v, %y[%c0] : !pto.ptr<f32>, f32"""
    )
    cpp = emit(kernel(body, args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index"))
    checks = [line.strip() for line in cpp.split("\n") if line.strip().startswith("PTOAS_CHECK_WINDOW(")]
    assert checks == ['PTOAS_CHECK_WINDOW("xv", -1, v3, 1, 1024, "");']


def test_elements_before_the_extents_are_known_are_not_checked():
    view = "%xv = pto.make_tensor_view %x, shape = [%m, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>"
    load = "%v = pto.load_scalar %x[%n] : !pto.ptr<f32> -> f32\n  %m = arith.addi %n, %c1 : index"
    store = "pto.store_scalar %v, %x[%n] : !pto.ptr<f32>, f32"
    cpp = emit(kernel(f"{load}\n{view}\n{store}", args="%x: !pto.ptr<f32>, %n: index"))
    checks = [line.strip() for line in cpp.split("\n") if line.strip().startswith("PTOAS_CHECK_WINDOW(")]
    assert len(checks) == 1
    assert re.fullmatch(
        r'PTOAS_CHECK_WINDOW\("xv", -1, v2, 1, 1 \+ \(.+ - 1\) \* 32 \+ \(32 - 1\) \* 1, ""\);', checks[0]
    )
    twice = view.replace("%m", "%n") + "\n" + view.replace("%xv", "%again").replace("%m", "%c1")
    assert "PTOAS_CHECK_WINDOW" not in emit(kernel(f"{twice}\n{load}\n{store}", args="%x: !pto.ptr<f32>, %n: index"))


def test_scalar_constant_and_scalar_operand():
    body = f"""\
  %s = arith.constant -6.25e-02 : f32
  %t = pto.alloc_tile addr = %a0 : {TB}
  pto.tmuls ins(%t, %s : {TB}, f32) outs(%t : {TB})"""
    cpp = emit(kernel(body))
    assert "= -0.0625f;" in cpp
    assert "TMULS(v" in cpp


def test_divs_keeps_text_order():
    tail = f"outs(%t : {TB})"
    head = f"%s = arith.constant 2.0 : f32\n %t = pto.alloc_tile addr = %a0 : {TB}\n"
    forward = emit(kernel(head + f"pto.tdivs ins(%t, %s : {TB}, f32) {tail}"))
    reverse = emit(kernel(head + f"pto.tdivs ins(%s, %t : f32, {TB}) {tail}"))
    assert "TDIVS(v3, v3, v6)" in forward
    assert "TDIVS(v3, v6, v3)" in reverse


def test_modes_are_named_variables():
    half = tile(dtype="f16")
    mask = tile(dtype="ui8")
    body = f"""\
  %t = pto.alloc_tile addr = %a0 : {TB}
  %h = pto.alloc_tile addr = %a1 : {half}
  %m = pto.alloc_tile addr = %a2 : {mask}
  pto.tcvt ins(%t {{rmode = #pto<round_mode ROUND>}} : {TB}) outs(%h : {half})
  pto.tcmp ins(%t, %t {{cmpMode = #pto.cmp<lt>}} : {TB}, {TB}) outs(%m : {mask})"""
    cpp = emit(kernel(body))
    assert "RoundMode v12 = RoundMode::CAST_ROUND;" in cpp
    assert "SaturationMode v13 = SaturationMode::OFF;" in cpp
    assert "TCVT(v6, v3, v12, v13);" in cpp
    assert "= CmpMode::LT;" in cpp


def test_loop_with_carried_scalar_and_branch():
    body = """\
  %r = scf.for %i = %c0 to %c32 step %c1 iter_args(%acc = %c0) -> (index) {
    %big = arith.cmpi sgt, %i, %c1 : index
    %n = scf.if %big -> (index) {
      %s = arith.addi %acc, %i : index
      scf.yield %s : index
    } else {
      scf.yield %acc : index
    }
    scf.yield %n : index
  }
  %q = arith.index_cast %r : index to i64
  pto.store_scalar %q, %z[%r] : !pto.ptr<i64>, i64"""
    cpp = emit(kernel(body, args="%z: !pto.ptr<i64>"))
    assert "for (int64_t" in cpp
    assert "if ((" in cpp
    assert "} else {" in cpp
    assert "dcci((__gm__ void*)0, cache_line_t::ENTIRE_DATA_CACHE);" in cpp


def test_while_loop_breaks_on_the_negated_condition():
    body = """\
  %r = scf.while (%i = %c1) : (index) -> (index) {
    %ok = arith.cmpi slt, %i, %c32 : index
    scf.condition(%ok) %i : index
  } do {
  ^bb0(%j : index):
    %n = arith.addi %j, %c1 : index
    scf.yield %n : index
  }"""
    cpp = emit(kernel(body))
    assert "while (true) {" in cpp
    assert "break;" in cpp


def test_carried_values_that_swap_use_temporaries():
    body = """\
  %r:2 = scf.for %i = %c0 to %c32 step %c1 iter_args(%p = %c0, %q = %c1) -> (index, index) {
    scf.yield %q, %p : index, index
  }"""
    cpp = emit(kernel(body))
    loop = cpp[cpp.index("for (") :]
    assert loop.count("int64_t v") >= 2 + 1  # two staged values and the loop variable


def test_left_tile_layout_follows_the_architecture():
    body = "%t = pto.alloc_tile addr = %a0 : " + tile(32, 32, "f16", "left", blayout="{}", slayout="row_major")
    use = "\n%u = pto.get_validshape %t : " + tile(32, 32, "f16", "left", slayout="row_major")
    body += use.replace("%u", "%u, %w")
    assert "BLayout::RowMajor" in emit(kernel(body.format("col_major")), arch="a3")
    assert "BLayout::ColMajor" in emit(kernel(body.format("row_major")), arch="a5")


def test_subview_keeps_the_parent_pitch_only_when_narrower():
    def window(rows: int, cols: int) -> str:
        view = tile(rows, cols)
        return emit(
            kernel(f"""\
  %t = pto.alloc_tile addr = %a0 : {TB}
  %v = pto.subview %t[%c0, %c0] sizes [{rows}, {cols}] : {TB} -> {view}
  pto.tabs ins(%v : {view}) outs(%v : {view})""")
        )

    assert "Tile<TileType::Vec, float, 32, 32, BLayout::RowMajor, 16, 16," in window(16, 16)
    assert "float, 16, 32, BLayout::RowMajor, 16, 32," in window(16, 32)


def test_module_without_wrapper_and_comments():
    text = "// a file of bare functions\nfunc.func @f() { // body\n  return\n}\n// end"
    assert "AICORE void f() {" in emit(text)


def test_generic_form_of_a_tile_operation():
    body = f"""\
  %t = pto.alloc_tile addr = %a0 : {TB}
  "pto.tadd"(%t, %t, %t) : ({TB}, {TB}, {TB}) -> ()
  "pto.ttri"(%d, %t) {{upperOrLower = 1 : i32}} : (i32, {TB}) -> ()"""
    cpp = emit(kernel("%d = arith.constant 0 : i32\n" + body))
    assert "TADD(v3, v3, v3);" in cpp
    assert "1>(v3, v" in cpp


def test_vector_attribute_spellings_agree():
    long_form = ADD_KERNEL.replace("#pto.kernel_kind<vector>", "#pto<kernel_kind vector>")
    assert emit(long_form) == emit(ADD_KERNEL)
    assert PV in ADD_KERNEL and VECTOR in ADD_KERNEL
