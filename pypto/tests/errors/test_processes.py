"""Forks, threads and a compile cache that disappears, each in a process of its own with a time limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPECTED = {"fork": ["child 0", "child 0", "done"], "removed": ["done"], "threads": ["done"]}


@pytest.mark.parametrize("case", EXPECTED)
def test_programs_still_run(case, tmp_path):
    environment = dict(os.environ)
    if case == "removed":
        environment["PTO_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, str(Path(__file__).with_name("other_process.py")), case]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert result.stdout.splitlines() == EXPECTED[case], result.stderr
