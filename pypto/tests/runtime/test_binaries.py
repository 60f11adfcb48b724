"""What makes a simulator ready before the program is compiled."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig

import simpler_runtime


@pytest.mark.parametrize(("platform", "loads"), [("a2a3sim", 1), ("a5sim", 1), ("torch", 0)])
def test_the_first_call_loads_the_task_runtime_only_for_a_simulator(monkeypatch, tmp_path, platform, loads):
    @pl.jit
    def twice(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [16, 16])
            pl.store(pl.add(x, x), [0, 0], out)
        return out

    calls = []
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(simpler_runtime, "load_in_background", lambda: calls.append(1))
    a, out = torch.ones(16, 16), torch.zeros(16, 16)
    for _ in range(2):
        twice(a, out, config=RunConfig(platform=platform))
    assert len(calls) == loads
    assert torch.equal(out, a + a)
