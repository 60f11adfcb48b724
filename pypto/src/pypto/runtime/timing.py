"""Timing of compiled programs by the markers that the task runtime prints."""

from __future__ import annotations

import contextlib
import logging
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

_ROOT = "chip.run"
_DEVICE = f"{_ROOT}.runner_run.device_wall"
_TIMING = 25


class TraceSpan(msgspec.Struct, frozen=True):
    """One span of a run; ``ts`` and ``dur`` in nanoseconds."""

    pid: int
    tid: int
    inv: int
    hid: str
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, str] = {}

    @property
    def is_device(self) -> bool:
        """Whether the time was taken on the device."""
        return self.attrs.get("clk") == "dev"

    @property
    def dur_us(self) -> float:
        return self.dur / 1000


class TraceInvocation(msgspec.Struct, frozen=True):
    """The spans of one run of a chip, outer ones before what they contain."""

    pid: int
    inv: int
    hid: str
    spans: tuple[TraceSpan, ...]

    def root(self) -> TraceSpan | None:
        """The span of the whole run."""
        return self.by_name(_ROOT)

    def by_name(self, name: str) -> TraceSpan | None:
        """The first span of that dotted name."""
        return next((s for s in self.spans if s.name == name), None)

    @property
    def host_wall_us(self) -> float:
        """Microseconds of the whole run, 0 when it was not measured."""
        return _duration(self.root())

    @property
    def device_wall_us(self) -> float:
        """Microseconds from the start of the task graph until the last task has ended, 0 when not measured."""
        return _duration(self.by_name(_DEVICE))

    @property
    def effective_us(self) -> float:
        """Microseconds in which the graph was being built or tasks were running."""
        parts = [s for s in (self.by_name(f"{_DEVICE}.{p}") for p in ("orch", "sched")) if s is not None]
        end, total = 0, 0
        for span in sorted(parts, key=lambda s: s.ts):
            begin = max(span.ts, end)
            end = max(end, span.ts + span.dur)
            total += max(0, end - begin)
        return total / 1000

    def format_tree(self) -> str:
        """One line a span, indented by depth, with microseconds."""
        return "\n".join(f"{'  ' * s.depth}{s.name.rsplit('.', 1)[-1]:<20} {s.dur_us:12.1f} us" for s in self.spans)


_METRICS: dict[str, Callable[[TraceInvocation], float]] = {
    "device": lambda run: run.device_wall_us,
    "host": lambda run: run.host_wall_us,
    "effective": lambda run: run.effective_us,
    "union": lambda run: run.device_wall_us,
}


class BenchmarkStats:
    """Samples of the measured rounds, in microseconds; ``invocations`` holds their spans."""

    def __init__(self, rounds: int, warmup: int, invocations: Sequence[TraceInvocation]) -> None:
        self.rounds, self.warmup = rounds, warmup
        self.invocations = tuple(invocations)

    def per_round(self, metric: str = "device") -> list[float]:
        """One sample a round. ``metric``: ``device``, ``host``, ``effective`` or ``union``; ``ValueError`` else."""
        if metric not in _METRICS:
            raise ValueError(f"unknown metric {metric!r}; known: {', '.join(_METRICS)}")
        return [_METRICS[metric](run) for run in self.invocations]

    @cached_property
    def device_wall_us(self) -> list[float]:
        return self.per_round("device")

    @cached_property
    def host_wall_us(self) -> list[float]:
        return self.per_round("host")

    @property
    def samples(self) -> list[float]:
        return self.device_wall_us

    @property
    def all_zero_device(self) -> bool:
        """Whether no round has a device time: only host times say something then."""
        return not any(self.device_wall_us)

    @property
    def device_us_min(self) -> float:
        return min(self.device_wall_us)

    @property
    def device_us_median(self) -> float:
        return statistics.median(self.device_wall_us)

    @property
    def device_us_mean(self) -> float:
        return statistics.fmean(self.device_wall_us)

    @property
    def device_us_max(self) -> float:
        return max(self.device_wall_us)

    @property
    def device_us_stdev(self) -> float:
        """Of the sample; 0 for one round."""
        return statistics.stdev(self.device_wall_us) if len(self.device_wall_us) > 1 else 0.0

    device_wall_us_min, device_wall_us_median, device_wall_us_mean = device_us_min, device_us_median, device_us_mean
    device_wall_us_max, device_wall_us_stdev = device_us_max, device_us_stdev

    def mean_invocation(self) -> TraceInvocation:
        """The spans that every round has, each as long as on average; times are those of the first round."""
        first = self.invocations[0]
        mean = []
        for span in first.spans:
            same = [other for run in self.invocations if (other := run.by_name(span.name)) is not None]
            if len(same) == len(self.invocations):
                mean.append(msgspec.structs.replace(span, dur=round(statistics.fmean(s.dur for s in same))))
        return msgspec.structs.replace(first, spans=tuple(mean))

    def format_tree(self) -> str:
        """The spans of every round."""
        return "\n".join(f"round {i}\n{run.format_tree()}" for i, run in enumerate(self.invocations))

    def print_tree(self) -> None:
        print(self.format_tree())

    def format_mean_tree(self) -> str:
        """The spans of the mean round."""
        return self.mean_invocation().format_tree()

    def print_mean_tree(self) -> None:
        print(self.format_mean_tree())

    def __str__(self) -> str:
        names = ("min", "median", "mean", "max", "stdev")
        figures = " ".join(f"{n}={getattr(self, f'device_us_{n}'):.1f}" for n in names)
        return f"BenchmarkStats(rounds={self.rounds}, warmup={self.warmup}): device_wall_us {figures}"

    __repr__ = __str__


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: Any = None,
) -> BenchmarkStats:
    """Run a compiled program ``warmup + rounds`` times with the same arguments and time the last ``rounds``.

    The program is registered once. On a simulator the device time is that of the simulated schedule on this machine.

    Raises:
        ValueError: ``rounds`` below 1, ``warmup`` below 0, or ``config`` together with ``platform``/``device_id``.
        RuntimeError: the runtime printed no timing markers.
    """
    from pypto.runtime.compiled_program import run_platform
    from pypto.runtime.run_config import RunConfig
    from pypto.runtime.worker import one_shot_worker

    if rounds <= 0:
        raise ValueError(f"rounds must be at least 1, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("give either config or platform and device_id, not both")
    if config is None:
        options = {"platform": platform or compiled.platform, "device_id": device_id}
        config = RunConfig(**{k: v for k, v in options.items() if v is not None})
    with one_shot_worker(run_platform(config.platform), compiled, config) as worker:
        for _ in range(warmup):
            worker.run(compiled, *args, config=config)
        with _marked_runs() as printed:
            for _ in range(rounds):
                worker.run(compiled, *args, config=config)
    runs = invocations(printed())
    if not runs:
        raise RuntimeError("the task runtime printed no [STRACE] timing markers; nothing was measured")
    return BenchmarkStats(rounds, warmup, runs)


def invocations(log: str) -> list[TraceInvocation]:
    """The chip runs of a log with ``[STRACE]`` markers, in the order in which they ended."""
    from simpler_setup.tools.strace_timing import group_invocations, invocation_spans, parse_spans

    runs = []
    for (pid, inv), spans in group_invocations(invocation_spans(parse_spans(log))).items():
        members = [TraceSpan(s.pid, s.tid, s.inv, s.hid, s.depth, s.name, s.ts, s.dur, s.attrs) for s in spans]
        runs.append(TraceInvocation(pid, inv, members[0].hid, tuple(members)))
    return runs


@contextlib.contextmanager
def _marked_runs() -> Iterator[Callable[[], str]]:
    """Have timing markers printed, and keep what the process writes to stderr: the function returns it afterwards.

    Lines without markers go on to stderr.
    """
    logger = logging.getLogger("simpler")
    level = logger.level
    text = ""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        logger.setLevel(_TIMING)
        try:
            yield lambda: text
        finally:
            logger.setLevel(level)
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            text = file.read().decode(errors="replace")
            other = [line for line in text.splitlines(keepends=True) if "[STRACE]" not in line]
            sys.stderr.write("".join(other))


def _duration(span: TraceSpan | None) -> float:
    return 0.0 if span is None else span.dur_us
