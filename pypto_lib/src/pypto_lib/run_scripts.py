"""Runs every Python script of a folder in its own process and prints a table.

    python -m pypto_lib.run_scripts PATH ... [--timeout S] [--jobs N] [--platform P] [--root DIR]

A script succeeds when it ends with status 0. ``--platform`` is passed on to scripts that know the option; ``--root``
is a folder that scripts import from (the top of their checkout).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass
class ScriptResult:
    """How one script ended; ``detail`` is its last line of output."""

    path: Path
    ok: bool
    seconds: float
    detail: str


def find_scripts(paths: Iterable[Path]) -> list[Path]:
    """The scripts and those below the folders, without private files; ``ValueError`` for a missing path."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*.py") if not p.name.startswith("_"))
        elif path.exists():
            found.append(path)
        else:
            raise ValueError(f"no such file or folder: {path}")
    return found


def run_script(path: Path, timeout: float, platform: str | None, root: Path | None = None) -> ScriptResult:
    """One script in a process of its own, in a scratch folder."""
    command = [sys.executable, str(path.resolve())]
    if platform is not None and "--platform" in path.read_text(encoding="utf-8"):
        command += ["--platform", platform]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [str(_package_root(path))] + ([str(root.resolve())] if root else [])
        environment = dict(os.environ, PYPTO_PROG_BUILD_DIR=scratch, PYTHONPATH=os.pathsep.join(folders))
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout, cwd=scratch, env=environment, check=False
            )
            ok, output = done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr or done.stdout
        except subprocess.TimeoutExpired:
            ok, output = False, f"no end after {timeout:g} s"
    lines = [line for line in output.strip().splitlines() if line.strip()]
    return ScriptResult(path, ok, time.perf_counter() - start, lines[-1][:120] if lines else "")


def _package_root(path: Path) -> Path:
    """The folder from which the script's own package can be imported."""
    root = path.resolve().parent
    while (root / "__init__.py").exists():
        root = root.parent
    return root


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pypto_lib.run_scripts", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one script")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--platform")
    parser.add_argument("--root", type=Path)
    options = parser.parse_args()
    try:
        scripts = find_scripts(options.paths)
    except ValueError as error:
        parser.error(str(error))
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda p: run_script(p, options.timeout, options.platform, options.root), scripts):
            results.append(result)
            state = "ok  " if result.ok else "FAIL"
            name = "/".join(result.path.parts[-2:])
            print(f"{state} {result.seconds:6.1f} s  {name:48} {result.detail}", flush=True)
    failed = sum(not r.ok for r in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
