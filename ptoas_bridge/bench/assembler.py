"""CPU time of `assemble` for programs of 23 to 5,400 lines, parse to C++, in this process."""

from __future__ import annotations

import time

from ptoas_bridge import assemble

TILE = "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=256, v_row=?, v_col=?, blayout=row_major, slayout=none_box, fractal=512, pad=0>"  # noqa: E501
TENSOR = "!pto.tensor_view<?x?xf32>"
VIEW = "!pto.partition_tensor_view<16x256xf32>"
HEAD = """\
module attributes {pto.target_arch = "a2a3"} {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 16384 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %xv = pto.make_tensor_view %x, shape = [%c256, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf32>
  %yv = pto.make_tensor_view %y, shape = [%c256, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf32>
"""
TARGETS_MS = {23: 24, 200: 30, 2000: 100, 5400: 485}


def strip(number: int) -> str:
    """One loop over row strips: load, two vector operations, store (11 lines)."""
    n = number
    loc = f' loc("bench.py":{n}:1)'
    return f"""\
  scf.for %i{n} = %c0 to %c8 step %c1 {{
    %t{n} = pto.alloc_tile addr = %a0 valid_row = %c16 valid_col = %c256 : {TILE}{loc}
    %r{n} = arith.muli %i{n}, %c16 : index{loc}
    %p{n} = pto.partition_view %xv, offsets = [%r{n}, %c0], sizes = [%c16, %c256] : {TENSOR} -> {VIEW}{loc}
    pto.tload ins(%p{n} : {VIEW}) outs(%t{n} : {TILE}){loc}
    %u{n} = pto.alloc_tile addr = %a1 valid_row = %c16 valid_col = %c256 : {TILE}{loc}
    pto.tabs ins(%t{n} : {TILE}) outs(%u{n} : {TILE}){loc}
    pto.tmul ins(%u{n}, %t{n} : {TILE}, {TILE}) outs(%u{n} : {TILE}){loc}
    %q{n} = pto.partition_view %yv, offsets = [%r{n}, %c0], sizes = [%c16, %c256] : {TENSOR} -> {VIEW}{loc}
    pto.tstore ins(%u{n} : {TILE}) outs(%q{n} : {VIEW}){loc}
  }}
"""


def program(lines: int) -> str:
    """A kernel of about `lines` lines."""
    count = max(1, (lines - HEAD.count("\n")) // 11)
    return HEAD + "".join(strip(n) for n in range(count)) + "  return\n  }\n}\n"


def main() -> None:
    print(f"{'lines':>6} {'KB':>6} {'ms':>8} {'bar':>6}")
    for lines, target in TARGETS_MS.items():
        text = program(lines)
        times = []
        for _ in range(5):
            start = time.process_time()
            assemble(text)
            times.append(time.process_time() - start)
        print(f"{text.count(chr(10)):>6} {len(text) / 1024:>6.0f} {min(times) * 1e3:>8.1f} {target:>6}")


if __name__ == "__main__":
    main()
