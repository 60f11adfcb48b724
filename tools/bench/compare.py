"""Times ptows, west and plain git on the same local repositories, in one run, and prints one table.

    python tools/bench/compare.py [--entries 50] [--files 30] [--repeat 3] [--json FILE]

``west`` is left out, visibly, when it is not installed (``pip install west``). Every figure is the best of the runs:
on a shared machine the best one is the least disturbed. Nothing outside this machine is contacted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "NO_COLOR": "1",
}
FIRST, AGAIN, STATUS, HELP = "first sync", "nothing to do", "status", "--help"


def call(*words: str | Path, cwd: Path) -> None:
    """Runs a command and fails loudly."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


@dataclass
class Repositories:
    """Bare repositories and the commit of each that is pinned."""

    folder: Path
    pins: dict[str, str] = field(default_factory=dict)

    def url(self, name: str) -> str:
        return f"file://{self.folder}/{name}"

    def make(self, count: int, files: int) -> None:
        """Each with two commits; the pin is the first."""
        noise = random.Random(0)
        for index in range(count):
            name, work = f"r{index:03}", self.folder / "work"
            call("git", "init", "-q", "-b", "main", work, cwd=self.folder)
            for commit in ("one", "two"):
                for number in range(files):
                    path = work / f"d{number % 5}" / f"f{number}.txt"
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(f"{commit} {noise.randbytes(600).hex()}\n")
                call("git", "add", "-A", cwd=work)
                call("git", "commit", "-qm", commit, cwd=work)
            found = subprocess.check_output(["git", "rev-parse", "HEAD~1"], cwd=work, env=ENVIRONMENT, text=True)
            self.pins[name] = found.strip()
            call("git", "clone", "-q", "--bare", work, self.folder / name, cwd=self.folder)
            shutil.rmtree(work)


@dataclass
class Contender:
    """A tool in its own folder: how it starts from nothing, repeats, asks for the state, and prints its help."""

    name: str
    folder: Path
    prepare: Callable[[Path], None]
    steps: Mapping[str, Sequence[str] | Callable[[], None]]


def ptows(folder: Path, repositories: Repositories) -> Contender:
    def prepare(folder: Path) -> None:
        lines = ["workspace: 1", "name: bench", "repos:"]
        for name, rev in repositories.pins.items():
            lines.append(f'  {name}: {{url: "{repositories.url(name)}", rev: "{rev}", path: {name}}}')
        (folder / "workspace.yaml").write_text("\n".join(lines) + "\n")

    command = [sys.executable, "-m", "ptows"]
    sync = [*command, "sync", "--no-install"]
    steps = {FIRST: sync, AGAIN: sync, STATUS: [*command, "status"], HELP: [*command, "--help"]}
    return Contender("ptows", folder, prepare, steps)


def west(folder: Path, repositories: Repositories, *options: str) -> Contender:
    def prepare(folder: Path) -> None:
        own = folder / "own"
        own.mkdir()
        projects = "".join(
            f"    - {{name: {name}, url: '{repositories.url(name)}', revision: {rev}}}\n"
            for name, rev in repositories.pins.items()
        )
        (own / "west.yml").write_text(f"manifest:\n  projects:\n{projects}  self: {{path: own}}\n")
        call("git", "init", "-q", own, cwd=folder)
        call(*command, "init", "-l", "own", cwd=folder)

    command = [sys.executable, "-m", "west"]
    update = [*command, "update", *options]
    steps = {FIRST: update, AGAIN: update, STATUS: [*command, "status"], HELP: [*command, "--help"]}
    return Contender(" ".join(["west", *options]), folder, prepare, steps)


def plain_git(folder: Path, repositories: Repositories) -> Contender:
    def clone() -> None:
        for name, rev in repositories.pins.items():
            call("git", "clone", "-q", "--no-checkout", repositories.url(name), name, cwd=folder)
            call("git", "checkout", "-q", "--detach", rev, cwd=folder / name)

    def fetch() -> None:
        for name, rev in repositories.pins.items():
            call("git", "fetch", "-q", cwd=folder / name)
            call("git", "checkout", "-q", "--detach", rev, cwd=folder / name)

    def status() -> None:
        for name in repositories.pins:
            call("git", "status", "--short", cwd=folder / name)

    return Contender("git in a loop", folder, lambda folder: None, {FIRST: clone, AGAIN: fetch, STATUS: status})


def measure(contender: Contender, step: str) -> float:
    action = contender.steps[step]
    started = time.perf_counter()
    if callable(action):
        action()
    else:
        call(*action, cwd=contender.folder)
    return time.perf_counter() - started


def run(contender: Contender, repeat: int) -> dict[str, float]:
    """Best seconds by step."""
    best: dict[str, float] = {}
    for _ in range(repeat):
        shutil.rmtree(contender.folder, ignore_errors=True)
        contender.folder.mkdir()
        contender.prepare(contender.folder)
        for step in contender.steps:
            for _ in range(1 if step == FIRST else 3):
                seconds = measure(contender, step)
                best[step] = min(seconds, best.get(step, seconds))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=50)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "remotes").mkdir()
        repositories = Repositories(folder / "remotes")
        repositories.make(options.entries, options.files)
        contenders = [ptows(folder / "ptows", repositories)]
        if subprocess.run([sys.executable, "-c", "import west"], capture_output=True).returncode == 0:
            contenders.append(west(folder / "west", repositories))
            contenders.append(west(folder / "west-smart", repositories, "--fetch", "smart"))
        else:
            print("west is not installed: left out (pip install west)", file=sys.stderr)
        contenders.append(plain_git(folder / "git", repositories))
        results = {contender.name: run(contender, options.repeat) for contender in contenders}
    names = list(results)
    print(f"{options.entries} repositories of {options.files} files, best of {options.repeat}, seconds")
    print(f"{'':<14}" + "".join(f"{name:>22}" for name in names))
    for step in (FIRST, AGAIN, STATUS, HELP):
        cells = [f"{results[name][step]:.3f}" if step in results[name] else "-" for name in names]
        print(f"{step:<14}" + "".join(f"{cell:>22}" for cell in cells))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
