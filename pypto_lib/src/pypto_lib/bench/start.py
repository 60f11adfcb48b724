"""Cold and warm start: from the decorator of a first program to its result, in a new process and in this one."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from pypto_lib.bench.figures import Figure
from pypto_lib.bench.measure import Effort, run_json

GROUP = "start"
_CHILD = "pypto_lib.bench.start_child"


def figures(effort: Effort) -> list[Figure]:
    """First use on a machine, cold program, warm program, and the fixed cost of a further call."""
    repeat = 1 if effort.quick else effort.repeat
    with tempfile.TemporaryDirectory(prefix="pto-bench-") as name:
        folder = Path(name)
        store = folder / "store"
        first = _start(folder, store)  # also writes the byte code, so it is no measurement of Python's part
        first_use = [first]
        if not effort.quick:
            first_use = [_start(folder, folder / f"empty{n}") for n in range(3)]
        cold = []
        for n in range(repeat):
            copy = folder / f"cold{n}"
            shutil.copytree(store, copy)
            _forget_programs(copy)
            cold.append(_start(folder, copy))
        warm = [_start(folder, store) for _ in range(repeat)]

    def median(samples: list[dict[str, float]], key: str, scale: float) -> float:
        return statistics.median(sample[key] for sample in samples) * scale

    result = median(warm, "result", 1e3)
    import_torch, import_language = median(warm, "torch", 1e3), median(warm, "language", 1e3)

    def used(samples: list[dict[str, float]]) -> str:
        return f"processor time {median(samples, 'cpu', 1e3):.0f} ms"

    return [
        Figure(GROUP, "import pypto.language, without torch", median(warm, "language", 1e3), "ms", 300),
        Figure(GROUP, "cold hello: runtime built, empty program store", median(cold, "result", 1.0), "s", 1.0,
               note=used(cold)),
        Figure(GROUP, "cold hello: nothing built yet on the machine", median(first_use, "result", 1.0), "s", 1.0,
               note=f"builds the task runtime once, {used(first_use)}"),
        Figure(GROUP, "warm hello: new process, filled store", result, "ms", 50, note=used(warm)),
        Figure(GROUP, "warm hello with the imports of torch and pypto", result + import_torch + import_language, "ms",
               note=f"torch alone {import_torch:.0f} ms"),
        Figure(GROUP, "warm hello in process: a further call", median(warm, "again", 1e6), "us", 1000),
    ]  # fmt: skip


def _start(folder: Path, store: Path) -> dict[str, float]:
    return run_json(["-m", _CHILD], {"PTO_CACHE_DIR": str(store)}, folder)


def _forget_programs(store: Path) -> None:
    """Leave what does not depend on a program: the task runtime and what is known about the compiler."""
    shutil.rmtree(store / "programs", ignore_errors=True)
    shutil.rmtree(store / "manifests", ignore_errors=True)
