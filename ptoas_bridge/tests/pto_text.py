"""Small `.pto` programs shared by the tests of the assembler."""

from __future__ import annotations


def tile(rows: int = 32, cols: int = 32, dtype: str = "f32", loc: str = "vec", **fields) -> str:
    """A compact tile type."""
    extra = "".join(f", {k}={v}" for k, v in fields.items())
    return f"!pto.tile_buf<{loc}, {rows}x{cols}x{dtype}{extra}>"


HEADER = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %a2 = arith.constant 8192 : i64
"""


def kernel(body: str, args: str = "%x: !pto.ptr<f32>, %y: !pto.ptr<f32>", attrs: str = "", name: str = "k") -> str:
    """A module with one function around `body`; usual constants are %c0 %c1 %c32 (index) and %a0 %a1 %a2 (i64)."""
    suffix = f" attributes {{{attrs}}}" if attrs else ""
    return f"module {{\n func.func @{name}({args}){suffix} {{\n{HEADER}{body}\n  return\n }}\n}}\n"


VIEWS = """\
  %xv = pto.make_tensor_view %x, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
  %yv = pto.make_tensor_view %y, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c32, %c32] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<32x32xf32>
  %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c32, %c32] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<32x32xf32>
"""  # noqa: E501

TB = tile()
PV = "!pto.partition_tensor_view<32x32xf32>"
VECTOR = "pto.kernel_kind = #pto.kernel_kind<vector>"

ADD_KERNEL = kernel(
    VIEWS
    + f"""\
  %p = pto.alloc_tile addr = %a0 : {TB}
  %q = pto.alloc_tile addr = %a1 : {TB}
  %r = pto.alloc_tile addr = %a2 : {TB}
  pto.tload ins(%xp : {PV}) outs(%p : {TB})
  pto.tload ins(%xp : {PV}) outs(%q : {TB})
  pto.tadd ins(%p, %q : {TB}, {TB}) outs(%r : {TB})
  pto.tstore ins(%r : {TB}) outs(%yp : {PV})""",
    attrs=VECTOR,
)
