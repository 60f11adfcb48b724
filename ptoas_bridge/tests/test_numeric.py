"""Assembled kernels compiled with the CPU instruction set and compared with numpy."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest
from pto_text import tile

import ptoas_bridge

COMPILER = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler"),
    pytest.mark.skipif(
        not (ptoas_bridge.isa_include_dir() / "pto" / "pto-inst.hpp").exists(), reason="no instruction-set headers"
    ),
]

T = tile()
DYN = tile(valid="?x32")
RESIZABLE = tile(valid="?x?")
COL = tile(32, 1, blayout="col_major")
MAT = tile(32, 32, "f16", "mat", blayout="col_major", slayout="row_major")
LEFT = tile(32, 32, "f16", "left", slayout="row_major")
RIGHT = tile(32, 32, "f16", "right", slayout="col_major")
ACC = tile(32, 32, "f32", "acc", blayout="col_major", slayout="row_major", fractal=1024)

CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
"""


def view(name: str, pointer: str, rows: str = "%c32", elem: str = "f32") -> str:
    return (f"  %{name} = pto.make_tensor_view {pointer}, shape = [{rows}, %c32], strides = [%c32, %c1] : "
            f"!pto.tensor_view<?x?x{elem}>\n")  # fmt: skip


def window(name: str, source: str, row: str = "%c0", size: str = "%c32", dim: str = "32", elem: str = "f32") -> str:
    return (f"  %{name} = pto.partition_view %{source}, offsets = [{row}, %c0], sizes = [{size}, %c32] : "
            f"!pto.tensor_view<?x?x{elem}> -> !pto.partition_tensor_view<{dim}x32x{elem}>\n")  # fmt: skip


PV, PVD, PVH, PVROW = (
    f"!pto.partition_tensor_view<{shape}>" for shape in ("32x32xf32", "?x32xf32", "32x32xf16", "1x32xf32")
)

SOFTMAX = view("xv", "%x") + view("yv", "%y") + window("xp", "xv") + window("yp", "yv") + f"""
  %a = pto.alloc_tile : {T}
  %tmp = pto.alloc_tile : {T}
  %m = pto.alloc_tile : {COL}
  %s = pto.alloc_tile : {COL}
  pto.tload ins(%xp : {PV}) outs(%a : {T})
  pto.trowmax ins(%a, %tmp : {T}, {T}) outs(%m : {COL})
  pto.trowexpandsub ins(%a, %m : {T}, {COL}) outs(%a : {T})
  pto.texp ins(%a : {T}) outs(%a : {T})
  pto.trowsum ins(%a, %tmp : {T}, {T}) outs(%s : {COL})
  pto.trowexpanddiv ins(%a, %s : {T}, {COL}) outs(%a : {T})
  pto.tstore ins(%a : {T}) outs(%yp : {PV})
"""  # fmt: skip

STRIPS = view("xv", "%x", "%n") + view("yv", "%y", "%n") + f"""
  scf.for %i = %c0 to %n step %c32 {{
    %left = arith.subi %n, %i : index
    %rows = arith.minsi %left, %c32 : index
    %a = pto.alloc_tile valid_row = %rows : {DYN}
  {window("xp", "xv", "%i", "%rows", "?")}
    pto.tload ins(%xp : {PVD}) outs(%a : {DYN})
    pto.tmul ins(%a, %a : {DYN}, {DYN}) outs(%a : {DYN})
  {window("yp", "yv", "%i", "%rows", "?")}
    pto.tstore ins(%a : {DYN}) outs(%yp : {PVD})
  }}
"""  # fmt: skip

FIBONACCI = """
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %zero, %q = %one) -> (i64, i64) {
    %s = arith.addi %p, %q : i64
    scf.yield %q, %s : i64, i64
  }
  pto.store_scalar %r#0, %o[%c0] : !pto.ptr<i64>, i64
  %w = scf.while (%k = %c1) : (index) -> (index) {
    %sq = arith.muli %k, %k : index
    %ok = arith.cmpi slt, %sq, %n : index
    scf.condition(%ok) %k : index
  } do {
  ^bb0(%k : index):
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }
  %w64 = arith.index_cast %w : index to i64
  pto.store_scalar %w64, %o[%c1] : !pto.ptr<i64>, i64
"""

QUARTERS = view("xv", "%x") + view("yv", "%y") + window("xp", "xv") + window("yp", "yv") + f"""
  %a = pto.alloc_tile : {T}
  %b = pto.alloc_tile : {T}
  %q = pto.alloc_tile : {tile(16, 16)}
  %two = arith.constant 2.0 : f32
  pto.tload ins(%xp : {PV}) outs(%a : {T})
  pto.tabs ins(%a : {T}) outs(%b : {T})
  %v = pto.subview %b[%c16, %c16] sizes [16, 16] : {T} -> {tile(16, 16)}
  pto.tmuls ins(%v, %two : {tile(16, 16)}, f32) outs(%q : {tile(16, 16)})
  pto.tmov ins(%q : {tile(16, 16)}) outs(%v : {tile(16, 16)})
  pto.tstore ins(%b : {T}) outs(%yp : {PV})
"""  # fmt: skip

NARROWED = view("xv", "%x") + view("yv", "%y") + window("xp", "xv") + window("yp", "yv", "%c16", "%c1", "1") + f"""
  %a = pto.alloc_tile valid_row = %c32 valid_col = %c32 : {RESIZABLE}
  pto.tload ins(%xp : {PV}) outs(%a : {RESIZABLE})
  pto.set_validshape %a, %c1, %c16 : {RESIZABLE}
  pto.tstore ins(%a : {RESIZABLE}) outs(%yp : {PVROW})
"""  # fmt: skip

MATMUL = (
    view("av", "%a", elem="f16") + view("bv", "%b", elem="f16") + view("cv", "%c") + window("ap", "av", elem="f16")
    + window("bp", "bv", elem="f16") + window("cp", "cv") + f"""
  %am = pto.alloc_tile : {MAT}
  %bm = pto.alloc_tile : {MAT}
  %l = pto.alloc_tile : {LEFT}
  %r = pto.alloc_tile : {RIGHT}
  %o = pto.alloc_tile : {ACC}
  pto.tload ins(%ap : {PVH}) outs(%am : {MAT})
  pto.tload ins(%bp : {PVH}) outs(%bm : {MAT})
  pto.tmov ins(%am : {MAT}) outs(%l : {LEFT})
  pto.tmov ins(%bm : {MAT}) outs(%r : {RIGHT})
  pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%o : {ACC})
  pto.tstore ins(%o : {ACC}) outs(%cp : {PV})
"""
)  # fmt: skip

BRANCHES = view("xv", "%x") + view("yv", "%y") + f"""
  %flag = arith.cmpi sgt, %n, %c1 : index
  %v = scf.if %flag -> (!pto.tensor_view<?x?xf32>) {{
    scf.yield %xv : !pto.tensor_view<?x?xf32>
  }} else {{
    scf.yield %yv : !pto.tensor_view<?x?xf32>
  }}
{window("vp", "v")}
{window("zp", "zv").replace("%zv", "%zview")}
  %a = pto.alloc_tile : {T}
  pto.tload ins(%vp : {PV}) outs(%a : {T})
  pto.tneg ins(%a : {T}) outs(%a : {T})
  pto.tstore ins(%a : {T}) outs(%zp : {PV})
"""  # fmt: skip


def function(name: str, args: str, body: str, kind: str) -> str:
    return (f" func.func @{name}({args}) attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}} {{"
            f"{CONSTANTS}{body}  return\n }}\n")  # fmt: skip


F32 = "!pto.ptr<f32>"
PROGRAM = (
    "module {\n"
    + function("softmax", f"%x: {F32}, %y: {F32}", SOFTMAX, "vector")
    + function("strips", f"%x: {F32}, %y: {F32}, %n: index", STRIPS, "vector")
    + function("fibonacci", "%o: !pto.ptr<i64>, %n: index", FIBONACCI, "vector")
    + function("quarters", f"%x: {F32}, %y: {F32}", QUARTERS, "vector")
    + function("narrowed", f"%x: {F32}, %y: {F32}", NARROWED, "vector")
    + function("matmul", f"%a: !pto.ptr<f16>, %b: !pto.ptr<f16>, %c: {F32}", MATMUL, "cube")
    + function("branches", f"%x: {F32}, %y: {F32}, %z: {F32}, %n: index", view("zview", "%z") + BRANCHES, "vector")
    + "}\n"
)
ENTRIES = {
    "softmax": "(float*)a[0], (float*)a[1]",
    "strips": "(float*)a[0], (float*)a[1], n",
    "fibonacci": "(int64_t*)a[0], n",
    "quarters": "(float*)a[0], (float*)a[1]",
    "narrowed": "(float*)a[0], (float*)a[1]",
    "matmul": "(half*)a[0], (half*)a[1], (float*)a[2]",
    "branches": "(float*)a[0], (float*)a[1], (float*)a[2], n",
}


@pytest.fixture(scope="module", params=["a3", "a5"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("numeric")
    cpp = ptoas_bridge.assemble(PROGRAM, arch=request.param, level="level2")
    entries = "".join(
        f'\nextern "C" void run_{name}(void** a, int64_t n) {{ (void)n; {name}({arguments}); }}'
        for name, arguments in ENTRIES.items()
    )
    source, library = folder / "k.cpp", folder / "k.so"
    source.write_text(cpp + entries + "\n")
    macro = "PTO_ARCH_A5" if request.param == "a5" else "PTO_ARCH_A2A3"
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", f"-D{macro}", "-D__CPU_SIM", "-D__DAV_VEC__", "-D__DAV_CUBE__"]
    command = [COMPILER, *flags, f"-I{ptoas_bridge.isa_include_dir()}", str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    loaded = ctypes.CDLL(str(library))

    def call(name: str, *arrays: np.ndarray, n: int = 0) -> None:
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        getattr(loaded, f"run_{name}")(pointers, ctypes.c_int64(n))

    return call


def random(rows: int = 32, dtype=np.float32) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((rows, 32)).astype(dtype)


def test_softmax(run):
    x, y = random(), np.zeros((32, 32), np.float32)
    run("softmax", x, y)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 70])
def test_strips_with_a_partial_tail(run, rows):
    x, y = random(rows), np.full((rows + 1, 32), 5, np.float32)
    run("strips", x, y, n=rows)
    np.testing.assert_array_equal(y[:rows], x * x)
    assert (y[rows] == 5).all()


def test_loop_carried_scalars_and_while(run):
    out = np.zeros(2, np.int64)
    run("fibonacci", out, n=50)
    assert out.tolist() == [12586269025, 8]


def test_subview_window(run):
    x, y = random(), np.zeros((32, 32), np.float32)
    run("quarters", x, y)
    want = np.abs(x)
    want[16:, 16:] *= 2
    np.testing.assert_array_equal(y, want)


def test_a_tile_narrowed_after_its_allocation_is_stored_into_a_smaller_window(run):
    x, y = random(), np.zeros((32, 32), np.float32)
    run("narrowed", x, y)
    want = np.zeros((32, 32), np.float32)
    want[16, :16] = x[0, :16]
    np.testing.assert_array_equal(y, want)


def test_matmul(run):
    a, b, c = random(dtype=np.float16), random(dtype=np.float16)[::-1].copy(), np.zeros((32, 32), np.float32)
    run("matmul", a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 2])
def test_view_chosen_by_a_branch(run, n):
    x, y, z = random(), random() + 1, np.zeros((32, 32), np.float32)
    run("branches", x, y, z, n=n)
    np.testing.assert_array_equal(z, -(x if n > 1 else y))
