"""How things are timed: medians of repeated runs, child processes, the machine and its load."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Effort:
    """How much to measure; ``quick`` shrinks every size to a trial run."""

    repeat: int = 5
    quick: bool = False


def seconds_per_call(call: Callable[[], Any], repeat: int, budget: float = 0.3) -> float:
    """Median over ``repeat`` batches of the time of one call; a batch takes about ``budget / repeat`` seconds."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, int(budget / repeat / once))
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch)
    return statistics.median(times)


def paired_seconds(ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Medians of two calls whose batches alternate, so that load on the machine hits both alike."""
    pairs = [(seconds_per_call(ours, 1, 0.1), seconds_per_call(theirs, 1, 0.1)) for _ in range(max(repeat, 3))]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def run_python(arguments: list[str], environment: dict[str, str], folder: Path, timeout: float = 600.0) -> str:
    """Standard output of a Python process; ``RuntimeError`` with its last error lines when it fails.

    The process may keep byte code below ``folder``: a user's second start does not compile Python either.
    """
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settings.update({"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), **environment})
    result = subprocess.run(
        [sys.executable, *arguments], env=settings, cwd=folder, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def run_json(arguments: list[str], environment: dict[str, str], folder: Path) -> Any:
    """The JSON object on the last line of a process's output."""
    return json.loads(run_python(arguments, environment, folder).splitlines()[-1])


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import torch

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
