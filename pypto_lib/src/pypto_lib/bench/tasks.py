"""The task runtime alone: tasks per second, latency of a dependent link, memory of a live task, cost of a run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pypto_lib.bench.figures import Figure
from pypto_lib.bench.instructions import checkout_file
from pypto_lib.bench.measure import Effort, run_python

GROUP = "tasks"


def figures(effort: Effort) -> list[Figure]:
    """The figures of the benchmark of the runtime package; live tasks are counted in a process of their own."""
    import simpler_runtime

    script = checkout_file(simpler_runtime.__file__, "bench/bench_tasks.py")
    size = ["--tasks", "3000" if effort.quick else "240000", "--repeat", "1" if effort.quick else str(effort.repeat)]
    rates = _run(script, [*size])
    live = _run(script, ["live", "--tasks", "16000", "--repeat", "1"])
    links = 1e6 / rates["chain (tasks/s)"]
    names = {"independent": 1e6, "diamond": None, "pieces": None, "blocks": None, "mixed": None}
    found = [
        Figure(GROUP, f"{name} tasks, whole run", rates[f"{name} (tasks/s)"] / 1e6, "M/s", bar and bar / 1e6, True)
        for name, bar in names.items()
    ]
    return [
        *found,
        Figure(GROUP, "dependent chain, per link", links, "us", 3.0),
        Figure(GROUP, "resident memory per live task", live["live (bytes per task)"], "B", note="bounded by the rings"),
        Figure(GROUP, "fixed cost of one run, runtime alone", rates["fixed cost of one run (us)"], "us", 1000),
    ]


def _run(script: Path, arguments: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="pto-bench-") as name:
        target = Path(name) / "tasks.json"
        run_python([str(script), *arguments, "--json", str(target)], {}, Path(name))
        return json.loads(target.read_text())
