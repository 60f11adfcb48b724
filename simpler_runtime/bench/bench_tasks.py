"""Task rate, latency per link of a dependent chain, bytes per live task, and the fixed cost of one run.

    python simpler_runtime/bench/bench_tasks.py [SHAPE ...] [--tasks N] [--repeat R] [--json FILE]

Figures are the best of R repeats; the kernels do nothing, so they measure the runtime alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from simpler_runtime import CallConfig, ChipStorageTaskArgs, KernelSource, Worker, build_callable

SOURCE = """
#include "pto_orchestration_api.h"
extern "C" {{
__attribute__((visibility("default")))
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &) {{ return {{.expected_arg_count = 2}}; }}
__attribute__((visibility("default")))
void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{
    const ChipTensor &x = orch_args.tensor(0).ref();
    const int64_t tasks = from_u64<int64_t>(orch_args.scalar(0));
    {body}
}}
}}
"""

BODIES = {
    # Many short-lived scopes of independent tasks with one output each.
    "independent": """
    uint32_t shape[1] = {256};
    for (int64_t i = 0; i < tasks; i += 64) PTO2_SCOPE() {
        for (int64_t k = 0; k < 64; ++k) {
            TensorCreateInfo ci(shape, 1);
            CoreTaskArgs a; a.add_input(x); a.add_output(ci); a.add_scalar(k);
            rt_submit_aiv_task(0, a);
        }
    }""",
    # Every task reads and writes the same tensor.
    "chain": """
    for (int64_t i = 0; i < tasks; i += 64) PTO2_SCOPE() {
        for (int64_t k = 0; k < 64; ++k) { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }
    }""",
    # Producer, two readers, join: the shape of real programs.
    "diamond": """
    uint32_t shape[1] = {256};
    for (int64_t i = 0; i < tasks; i += 64) PTO2_SCOPE() {
        for (int64_t k = 0; k < 16; ++k) {
            TensorCreateInfo ci(shape, 1);
            CoreTaskArgs a; a.add_input(x); a.add_output(ci); TaskOutputTensors t = rt_submit_aiv_task(0, a);
            const ChipTensor &root = t.get_ref(0);
            CoreTaskArgs b; b.add_input(root); b.add_output(ci); TaskOutputTensors l = rt_submit_aiv_task(0, b);
            CoreTaskArgs c; c.add_input(root); c.add_output(ci); TaskOutputTensors r = rt_submit_aiv_task(0, c);
            const ChipTensor &left = l.get_ref(0), &right = r.get_ref(0);
            CoreTaskArgs d; d.add_input(left, right); d.add_output(ci); rt_submit_aiv_task(0, d);
        }
    }""",
    # Disjoint pieces of one tensor, written in one scope: stresses the table of writers.
    "pieces": """
    uint32_t shape[1] = {1};
    for (int64_t i = 0; i < tasks; i += 10000) PTO2_SCOPE() {
        for (int64_t k = 0; k < 10000; ++k) {
            uint32_t offset[1] = {static_cast<uint32_t>(k)};
            ChipTensor piece = x.view(shape, offset);
            CoreTaskArgs a; a.add_inout(piece); rt_submit_aiv_task(0, a);
        }
    }""",
    # One wide task: blocks per second.
    "blocks": """
    for (int64_t i = 0; i < tasks; i += 1000) {
        CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(1000); rt_submit_aiv_task(0, a);
    }""",
    # As many tasks alive at once as the window allows, three tensors each: memory per live task.
    "live": """
    for (int64_t i = 0; i < tasks; i += 16000) PTO2_SCOPE() {
        uint32_t shape[1] = {16};
        for (int64_t k = 0; k < 16000; ++k) {
            TensorCreateInfo ci(shape, 1, DataType::INT8);
            CoreTaskArgs a; a.add_input(x, x); a.add_output(ci); a.add_scalar(k);
            rt_submit_aiv_task(0, a);
        }
    }""",
    # A mixed block whose cores hand over twice each.
    "mixed": """
    for (int64_t i = 0; i < tasks; i += 3) PTO2_SCOPE() {
        MixedKernels m = {1, 2, 2}; CoreTaskArgs a; a.add_input(x); rt_submit_task(m, a);
    }""",
    "empty run": "(void)x; (void)tasks;",
}

LIVE_TASKS = 16000

KERNELS = {
    0: ("aiv", ""),
    1: (
        "aic",
        """auto *c = simpler_current_core();
        for (int lane = 1; lane < 3; ++lane) simpler_counter_add(c->peers[lane], 0, 1);
        simpler_counter_take(1, 2);""",
    ),
    2: ("aiv", "simpler_counter_take(0, 1); simpler_counter_add(simpler_current_core()->peers[0], 1, 1);"),
}


def build(folder: Path, body: str):
    (folder / "orchestration.cpp").write_text(SOURCE.format(body=body))
    kernels = []
    for func_id, (core_type, code) in KERNELS.items():
        path = folder / f"kernel_{func_id}.cpp"
        path.write_text(f'#include "simulated_core.h"\nextern "C" void kernel_entry(int64_t *) {{ {code} }}\n')
        kernels.append(KernelSource(func_id, path, core_type))
    return build_callable(folder / "orchestration.cpp", kernels, platform="a2a3sim")


def resident_bytes() -> int:
    """Memory of this process that is in RAM now; the rings keep what a run touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def best_seconds(worker: Worker, handle, args, repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        worker.run(handle, args, CallConfig())
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"of {', '.join(BODIES)}; all by default")
    parser.add_argument("--tasks", type=int, default=240_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    unknown = sorted(set(options.shapes) - set(BODIES))
    if unknown:
        parser.error(f"no such shape: {', '.join(unknown)}")
    x = np.zeros(10000, np.float32)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, Worker(level=2, platform="a2a3sim") as worker:
        for name in options.shapes or BODIES:
            handle = worker.register(build(Path(folder), BODIES[name]))
            args = ChipStorageTaskArgs()
            args.add_tensor(x)
            args.add_scalar(options.tasks)
            before = resident_bytes()
            seconds = best_seconds(worker, handle, args, options.repeat if name != "empty run" else 200)
            grown = resident_bytes() - before
            if name == "empty run":
                figures["fixed cost of one run (us)"] = seconds * 1e6
                print(f"{name:12} {seconds * 1e6:10.1f} us per run")
                continue
            figures[f"{name} (tasks/s)"] = options.tasks / seconds
            if name == "live":
                figures["live (bytes per task)"] = grown / min(options.tasks, LIVE_TASKS)
            print(
                f"{name:12} {options.tasks / seconds / 1e6:10.2f} M/s {seconds / options.tasks * 1e9:10.0f} ns each"
                f" {grown // 1024:8} KiB more resident"
            )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
