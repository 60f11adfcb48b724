"""Speed of the CPU tile instructions in cache, next to the multiply-add peak and to torch on one thread."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pypto_lib.bench.figures import Figure
from pypto_lib.bench.measure import Effort, run_python

GROUP = "instructions"
PEAK_SHARE = 0.6
BARS = {"add_f32": 200.0, "exp_f32": 3.0}
AT_LEAST_TORCH = ("load_add_store_f32", "softmax_f32", "rmsnorm_f32")
QUICK_ROWS = ["matmul_f32", "add_f32"]


def figures(effort: Effort) -> list[Figure]:
    """One figure per row of the instruction benchmark of the assembler package."""
    script = instruction_benchmark()
    with tempfile.TemporaryDirectory(prefix="pto-bench-") as name:
        folder = Path(name)
        target = folder / "instructions.json"
        run_python([str(script), *(QUICK_ROWS if effort.quick else []), "--json", str(target)], {}, folder)
        report = json.loads(target.read_text())
    peak = report["peak GFLOP/s"]
    found = [Figure(GROUP, "multiply-add peak of one core, fp32", peak, "GFLOP/s", higher=True)]
    for row in report["rows"]:
        name, rate, theirs = row["name"], row["rate"], row["torch_rate"]
        bar, note = BARS.get(name), ""
        if row["unit"] == "GFLOP/s":
            bar, note = PEAK_SHARE * peak, f"{rate / peak:.0%} of the fp32 peak"
        elif name in AT_LEAST_TORCH:
            bar = theirs
        found.append(Figure(GROUP, name, rate, row["unit"], bar, higher=True, reference=theirs, note=note))
    return found


def instruction_benchmark() -> Path:
    """The script in the checkout of the assembler package; ``FileNotFoundError`` for an installation without it."""
    import ptoas_bridge

    return checkout_file(ptoas_bridge.__file__, "bench/isa/bench_instructions.py")


def checkout_file(module_file: str | None, relative: str) -> Path:
    """A file beside ``src`` of an editable installation."""
    path = Path(module_file or "").resolve().parents[2] / relative
    if not path.exists():
        raise FileNotFoundError(f"{path} not found: this group needs the packages installed from a checkout (pip -e)")
    return path
