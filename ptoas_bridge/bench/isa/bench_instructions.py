"""Print the speed of the CPU tile instructions next to the machine's multiply-add peak and to torch on one thread.

    python bench_instructions.py [name ...] [--json FILE]

Tiles are 32 x 128 in cache (matrix products 128 x 128 x 128). GB/s counts every byte that is read or written.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "src" / "ptoas_bridge" / "isa" / "include"
CELLS = 32 * 128
REPEAT = 2000

# name: (kind, amount): bytes moved, elements produced or floating-point operations of one run.
ROWS = {
    "matmul_f32": ("flop", 2 * 128**3),
    "matmul_f16": ("flop", 2 * 128**3),
    "matmul_bf16": ("flop", 2 * 128**3),
    "matmul_i8": ("flop", 2 * 128**3),
    "add_f32": ("byte", 12 * CELLS),
    "add_f16": ("byte", 6 * CELLS),
    "add_bf16": ("byte", 6 * CELLS),
    "add_i32": ("byte", 12 * CELLS),
    "ragged_add_f32": ("byte", 12 * 32 * 100),
    "muls_f32": ("byte", 8 * CELLS),
    "div_f32": ("element", CELLS),
    "max_f32": ("byte", 12 * CELLS),
    "exp_f32": ("element", CELLS),
    "exp_f16": ("element", CELLS),
    "log_f32": ("element", CELLS),
    "rsqrt_f32": ("element", CELLS),
    "fmod_f32": ("element", CELLS),
    "rowsum_f32": ("element", CELLS),
    "rowmax_f32": ("element", CELLS),
    "colsum_f32": ("element", CELLS),
    "argmax_f32": ("element", CELLS),
    "cvt_f32_f16": ("element", CELLS),
    "cvt_f32_i32": ("element", CELLS),
    "cmp_sel_f32": ("element", CELLS),
    "trans_f32": ("element", CELLS),
    "load_add_store_f32": ("byte", 12 * CELLS),
    "softmax_f32": ("element", CELLS),
    "rmsnorm_f32": ("element", CELLS),
    "load_nz_f16": ("byte", 4 * 128 * 128),
    "mov_left_f16": ("byte", 4 * 128 * 128),
    "mov_right_f16": ("byte", 4 * 128 * 128),
    "store_acc_f32": ("byte", 8 * 128 * 128),
}
UNITS = {"flop": "GFLOP/s", "byte": "GB/s", "element": "Gelem/s"}


def build(folder: Path) -> ctypes.CDLL:
    """Compile the kernels with the flags that the runtime uses for kernels."""
    target = folder / "kernels.so"
    command = ["g++", "-O3", "-std=gnu++17", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", f"-I{INCLUDE}"]
    subprocess.run([*command, str(HERE / "kernels.cpp"), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def torch_times() -> dict[str, float]:
    """Seconds per run of the nearest torch expression on one thread, for the rows that have one."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    a, b = torch.rand(32, 128) + 0.5, torch.rand(32, 128) + 0.5
    out = torch.empty_like(a)
    gain = torch.rand(128)
    runs = {
        "add_f32": lambda: torch.add(a, b, out=out),
        "load_add_store_f32": lambda: torch.add(a, b, out=out),
        "muls_f32": lambda: torch.mul(a, 1.5, out=out),
        "div_f32": lambda: torch.div(a, b, out=out),
        "max_f32": lambda: torch.maximum(a, b, out=out),
        "exp_f32": lambda: torch.exp(a, out=out),
        "log_f32": lambda: torch.log(a, out=out),
        "rsqrt_f32": lambda: torch.rsqrt(a, out=out),
        "fmod_f32": lambda: torch.fmod(a, b, out=out),
        "rowsum_f32": lambda: a.sum(1),
        "rowmax_f32": lambda: a.amax(1),
        "colsum_f32": lambda: a.sum(0),
        "argmax_f32": lambda: a.argmax(1),
        "cvt_f32_f16": lambda: a.to(torch.float16),
        "cvt_f32_i32": lambda: a.to(torch.int32),
        "cmp_sel_f32": lambda: torch.where(a > b, a, b),
        "trans_f32": lambda: a.t().contiguous(),
        "softmax_f32": lambda: torch.softmax(a, 1),
        "rmsnorm_f32": lambda: torch.nn.functional.rms_norm(a, (128,), gain),
    }
    for name, kind in kinds.items():
        x, y = torch.rand(128, 128).to(kind), torch.rand(128, 128).to(kind)
        runs[f"matmul_{name}"] = lambda x=x, y=y: x @ y
    times = {}
    for name, run in runs.items():
        run()
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(200):
                run()
            best = min(best, (time.perf_counter() - start) / 200)
        times[name] = best
    return times


def measurements(names: list[str]) -> dict[str, float]:
    """Seconds per run by row, and ``peak_fma``: seconds per floating-point operation of the multiply-add peak."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
    arrays = [np.ones(128 * 128, np.float32) for _ in range(3)]
    memory = (ctypes.c_void_p * 3)(*(array.ctypes.data for array in arrays))

    def measure(name: str, repeat: int) -> float:
        function = getattr(library, name)
        function.restype = ctypes.c_double
        return function(ctypes.c_int64(repeat), memory)

    times = {"peak_fma": measure("peak_fma", 200)}
    for name in names:
        times[name] = measure(name, 200 if ROWS[name][0] == "flop" else REPEAT)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=f"all by default; of {', '.join(ROWS)}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(ROWS))
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}")
    times, other = measurements(options.names or list(ROWS)), torch_times()
    peak = 1 / times.pop("peak_fma")
    print(f"multiply-add peak {peak / 1e9:.0f} GFLOP/s")
    print(f"{'instruction':20} {'us':>8} {'rate':>10} {'':8} {'of peak':>8} {'torch us':>9} {'ratio':>6}")
    figures = []
    for name, seconds in times.items():
        kind, amount = ROWS[name]
        share = f"{amount / seconds / peak:8.0%}" if kind == "flop" else " " * 8
        theirs = f"{other[name] * 1e6:9.2f} {other[name] / seconds:5.1f}x" if name in other else ""
        print(f"{name:20} {seconds * 1e6:8.2f} {amount / seconds / 1e9:10.1f} {UNITS[kind]:8} {share} {theirs}")
        torch_rate = amount / other[name] / 1e9 if name in other else None
        figures.append({"name": name, "rate": amount / seconds / 1e9, "unit": UNITS[kind], "torch_rate": torch_rate})
    if options.json:
        options.json.write_text(json.dumps({"peak GFLOP/s": peak / 1e9, "rows": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
