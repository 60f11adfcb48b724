"""What makes a simulator ready before the program is compiled."""

from __future__ import annotations

import pytest
from pypto.jit.lowering import prepare_run
from pypto.runtime import RunConfig

import simpler_runtime


@pytest.mark.parametrize(("platform", "loads"), [("a2a3sim", 1), ("a5sim", 1), ("torch", 0)])
def test_a_call_loads_the_task_runtime_only_for_a_simulator(monkeypatch, platform, loads):
    calls = []
    monkeypatch.setattr(simpler_runtime, "load_in_background", lambda: calls.append(1))
    prepare_run(RunConfig(platform=platform))
    assert len(calls) == loads
