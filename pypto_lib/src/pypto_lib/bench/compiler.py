"""Compile time by stage: parse, passes, code generation, assembler, C++ compiler."""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_lib.bench import synthetic
from pypto_lib.bench.figures import Figure
from pypto_lib.bench.measure import Effort

GROUP = "compiler"
#: Example -> milliseconds of parse + passes + code generation of the public tools (C++ passes) for its class.
PROGRAMS = {
    "vector.patch_sum": 6.0,
    "reductions.soft_rows": 8.4,
    "models.paged_attention": 26.0,
    "models.decoder_layer": 48.0,
}
ALLOWED_FACTOR = 3
UNIT_BAR_S = 0.25
WALL_PARTS = ("parse", "passes", "codegen")


@dataclass
class Stages:
    """Seconds of the stages of one compile, ``units`` C++ units included.

    ``front`` (parse + passes + code generation), ``assembler`` and ``cpp_cpu`` (the C++ compilers) are processor
    times: they hardly depend on what else the machine does. The others are wall times; that of code generation
    contains the assembler.
    """

    front: float
    parse: float
    passes: float
    codegen: float
    assembler: float
    cpp: float
    cpp_cpu: float
    units: int


def figures(effort: Effort) -> list[Figure]:
    """Four examples, and a program with many kernels whose size is doubled once."""
    repeat = 1 if effort.quick else effort.repeat
    found: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="pto-bench-") as name, _own_store(Path(name) / "store"):
        folder = Path(name)
        for example, public in list(PROGRAMS.items())[: 1 if effort.quick else None]:
            samples = [measure(_example(example), folder) for _ in range(repeat + 1)][1:]
            found += _figures(example, samples, public)
        small = 4 if effort.quick else 75
        fronts = []
        for kernels in (small, 2 * small):
            program = lambda kernels=kernels: synthetic.load(kernels, folder)  # noqa: E731
            samples = [measure(program, folder, binaries=False) for _ in range(max(1, repeat - 2))]
            fronts.append(statistics.median(s.front for s in samples))
            found += _figures(f"synthetic, {kernels} kernels", samples, None)
        growth = fronts[1] / fronts[0]
        found.append(Figure(GROUP, "synthetic: time for twice the kernels", growth, "x", 2.2, note="linear is 2"))
    return found


def measure(define: Callable[[], Any], folder: Path, binaries: bool = True) -> Stages:
    """One compile from the definition of a program; its output goes below ``folder``."""
    from pypto.compile_profiling import CompileProfiler

    import ptoas_bridge
    from pypto import ir

    assembler = 0.0
    plain = ptoas_bridge.assemble

    def timed(*args: Any, **kwargs: Any) -> str:
        nonlocal assembler
        start = time.thread_time()
        try:
            return plain(*args, **kwargs)
        finally:
            assembler += time.thread_time() - start

    start, cpu = time.perf_counter(), time.process_time()
    program = define()
    parse = time.perf_counter() - start
    output = Path(tempfile.mkdtemp(dir=folder))
    ptoas_bridge.assemble = timed
    try:
        with CompileProfiler() as profiler:
            compiled = ir.compile(program, output_dir=output, dump_passes=False, platform="a2a3sim")
    finally:
        ptoas_bridge.assemble = plain
    front = time.process_time() - cpu - assembler
    stages = {record.name: record.duration for record in profiler.stages}
    start, cpu_start = time.perf_counter(), _children_cpu()
    if binaries:
        _forget_units()
        compiled.load()
    cpp, cpp_cpu = time.perf_counter() - start, _children_cpu() - cpu_start
    units = len(list(output.glob("kernels/*/*.cpp"))) + len(list(output.glob("orchestration/*.cpp")))
    return Stages(front, parse, stages["passes"], stages["codegen"], assembler, cpp, cpp_cpu, units)


def _example(name: str) -> Callable[[], Any]:
    from pypto_lib.e2e.catalogue import load_example

    module = load_example(name)
    if hasattr(module.ENTRY, "specialize"):
        args = module.inputs()
        return lambda: module.ENTRY.specialize(*args)
    return lambda: importlib.reload(module).ENTRY  # its decorator parses


def _figures(name: str, samples: list[Stages], public: float | None) -> list[Figure]:
    def median(value: Callable[[Stages], float]) -> float:
        return statistics.median(value(s) for s in samples)

    wall = ", ".join(f"{part} {median(lambda s, part=part: getattr(s, part)) * 1e3:.3g}" for part in WALL_PARTS)
    note = f"wall ms: {wall}; assembler {median(lambda s: s.assembler) * 1e3:.3g} ms"
    units = samples[0].units
    found = [
        Figure(
            GROUP, f"{name}: parse + passes + codegen", median(lambda s: s.front) * 1e3, "ms",
            public and public * ALLOWED_FACTOR, reference=public, against="public tools, their machine",
            note=note,
        ),
    ]  # fmt: skip
    cpu = median(lambda s: s.cpp_cpu)
    if cpu:
        done = f"{units} units in {median(lambda s: s.cpp):.2f} s"
        found.append(Figure(GROUP, f"{name}: C++, processor time per unit", cpu / units, "s", UNIT_BAR_S, note=done))
    return found


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _own_store(path: Path) -> Iterator[None]:
    """Compile results of these measurements go to a store of their own."""
    before = os.environ.get("PTO_CACHE_DIR")
    os.environ["PTO_CACHE_DIR"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PTO_CACHE_DIR"]
        else:
            os.environ["PTO_CACHE_DIR"] = before


def _forget_units() -> None:
    """Make the next load compile again; the task runtime stays."""
    shutil.rmtree(Path(os.environ["PTO_CACHE_DIR"]) / "manifests", ignore_errors=True)
