"""A compile that is killed at any moment leaves nothing behind that a later one would stumble over.

``PYPTO_KILL_RUNS`` sets the number of kills (30 by default).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNS = int(os.environ.get("PYPTO_KILL_RUNS", "30"))

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux process descriptors")


class Server:
    """The process that compiles on request."""

    def __init__(self, cache: Path, build: Path):
        self._log = (build.parent / "server.log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "killed_compile_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "PTO_CACHE_DIR": str(cache), "PYPTO_PROG_BUILD_DIR": str(build)},
        )

    def ask(self, factor: float, seconds: float = 0.0, stored: bool = False) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{factor} {seconds} {int(stored)}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._log.close()


@pytest.fixture
def server(tmp_path):
    (tmp_path / "build").mkdir()
    server = Server(tmp_path / "cache", tmp_path / "build")
    yield server
    server.close()


def test_the_next_compile_works(server, tmp_path):
    assert server.ask(0.5) == "done", server.log()
    start = time.perf_counter()
    assert server.ask(0.75) == "done", server.log()
    usual = time.perf_counter() - start
    moment = random.Random(RUNS)
    answers = []
    for run in range(RUNS):
        factor, stored = 1.0 + run / 1024, run % 2 == 1
        answers.append(server.ask(factor, moment.uniform(0.02, 1.1) * usual, stored))
        for _ in range(1 + stored):  # the second call finds what the first one stored
            assert server.ask(factor, stored=stored) == "done", f"after run {run}:\n{server.log()}"
    assert set(answers) <= {"killed", "done"} and "killed" in answers
    # Kills leave scratch folders, nothing else; the next build removes them when they are old.
    for kind in ("libraries", "manifests"):
        names = [p.name for p in (tmp_path / "cache" / kind).rglob("*") if p.is_file()]
        assert all(name.endswith((".so", ".sha256", ".json")) for name in names if not name.startswith(".new-"))


def test_the_first_build_of_the_runtime_may_be_killed(server):
    for seconds in (0.2, 1.5):
        assert server.ask(2.0, seconds) in ("killed", "done")
    assert server.ask(2.0) == "done", server.log()
