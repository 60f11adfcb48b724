"""Ctrl-C ends a run that would not end, and leaves the process as it was.

Every run has a process of its own, with a time limit: test runners have their own ideas of what an interrupt means.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("interrupted_run.py")


def lines(folder: Path, case: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), str(folder), case]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    return [line.strip() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    "case",
    ["kernel", "kernels", "blocks", "gang", "mixed", "value", "submitting", "logging", "spinning", "submit", "chips"],
)
def test_the_first_interrupt_ends_a_run(tmp_path, case):
    assert lines(tmp_path, case) == ["KeyboardInterrupt", "alive"]


def test_a_handler_of_the_program_may_finish_the_run_first(tmp_path):
    # The second interrupt insists. Python calls the handler when the run returns, once for both.
    assert lines(tmp_path, "own handler") == ["told", "RuntimeError run failed with code -107", "told"]
