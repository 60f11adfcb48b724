"""Timing of compiled programs."""

from __future__ import annotations

import logging
import os
import sys

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig, benchmark
from pypto.runtime.timing import BenchmarkStats, invocations

LINE = "[STRACE] v=1 pid=1 tid=2 inv={inv} hid=ab depth={depth} name=chip.run{name} ts={ts} dur={dur}{attrs}\n"


def log(*runs):
    """Markers of runs given as (host, device, (orch start, orch), (sched start, sched)), nanoseconds."""
    text = "something else\n"
    for inv, (host, device, orch, sched) in enumerate(runs):
        rows = [(0, "", 0, host, ""), (2, ".runner_run.device_wall", 10, device, " clk=dev")]
        rows += [(3, ".runner_run.device_wall.orch", *orch, " clk=dev")]
        rows += [(3, ".runner_run.device_wall.sched", *sched, " clk=dev")]
        for depth, name, ts, dur, attrs in rows:
            text += LINE.format(inv=inv, depth=depth, name=name, ts=ts, dur=dur, attrs=attrs)
    return text


@pytest.fixture(scope="module")
def program():
    @pl.jit
    def double(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [32, 64])
            pl.store(pl.add(t, t), [0, 0], y)
        return y

    return double.compile(torch.zeros(32, 64), torch.zeros(32, 64), config=RunConfig(platform="a2a3sim"))


def test_every_measured_round_has_a_sample_and_runs_the_program(program, capfd):
    x, y = torch.randn(32, 64), torch.zeros(32, 64)
    level = logging.getLogger("simpler").level
    stats = benchmark(program, (x, y), rounds=4, warmup=2)
    assert torch.equal(y, x + x)
    assert (stats.rounds, stats.warmup, len(stats.invocations)) == (4, 2, 4)
    for metric in ("device", "host", "effective", "union"):
        samples = stats.per_round(metric)
        assert len(samples) == 4 and all(s > 0 for s in samples)
    assert all(device <= host for device, host in zip(stats.device_wall_us, stats.host_wall_us))
    assert stats.device_us_min <= stats.device_us_median <= stats.device_us_max and not stats.all_zero_device
    assert str(stats).startswith("BenchmarkStats(rounds=4, warmup=2): device_wall_us min=")
    assert logging.getLogger("simpler").level == level
    os.write(2, b"still here\n")
    printed = capfd.readouterr().err
    assert "still here" in printed and "[STRACE]" not in printed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"warmup": -1}, "warmup must not be negative"),
        ({"config": RunConfig(), "platform": "a5sim"}, "either config or platform"),
        ({"config": RunConfig(), "device_id": 0}, "either config or platform"),
    ],
)
def test_wrong_requests_are_refused(program, options, error):
    with pytest.raises(ValueError, match=error):
        benchmark(program, (), **options)


def test_a_failing_run_leaves_stderr_as_it_was(program, capfd):
    with pytest.raises(ValueError, match="shape"):
        benchmark(program, (torch.zeros(3, 3), torch.zeros(32, 64)), rounds=1, warmup=0)
    print("after", file=sys.stderr)
    assert "after" in capfd.readouterr().err


def test_durations_are_in_microseconds():
    stats = BenchmarkStats(
        2, 0, invocations(log((9000, 6000, (10, 2000), (1010, 5000)), (7000, 4000, (10, 500), (2000, 1000))))
    )
    assert stats.host_wall_us == [9.0, 7.0] and stats.samples == [6.0, 4.0]
    assert stats.per_round("effective") == [6.0, 1.5], "overlapping windows count once, the gap between them not at all"
    assert (stats.device_us_mean, stats.device_wall_us_max) == (5.0, 6.0)
    assert stats.device_us_stdev == pytest.approx(2**0.5)
    assert stats.mean_invocation().host_wall_us == 8.0
    assert "device_wall" in stats.format_mean_tree() and stats.format_tree().startswith("round 0\n")
    with pytest.raises(ValueError, match="unknown metric 'gpu'; known: device, host, effective, union"):
        stats.per_round("gpu")
    assert stats.invocations[0].by_name("chip.run.runner_run.device_wall").is_device
    assert not stats.invocations[0].root().is_device
