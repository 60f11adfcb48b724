"""Times ptows, west and plain git on the same local repositories, in one run, and prints two tables.

    python tools/bench/compare.py [--entries 50] [--files 30] [--repeat 3] [--json FILE]

``west`` is left out, visibly, when it is not installed (``pip install west``). The tools take turns, so that load hits
all alike; every figure is the best of the runs: on a shared machine the best one is the least disturbed. The second
table, processor time, hardly depends on load. Nothing outside this machine is contacted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of all processors, git's included."""

    wall: float
    processor: float

    def better(self, other: Cost) -> Cost:
        return Cost(min(self.wall, other.wall), min(self.processor, other.processor))


def measure(contender: Contender, step: str) -> Cost:
    action = contender.steps[step]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if callable(action):
        action()
    else:
        call(*action, cwd=contender.folder)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def run(contenders: Sequence[Contender], repeat: int) -> dict[str, dict[str, Cost]]:
    """Best cost by contender and step; the contenders take turns."""
    best: dict[str, dict[str, Cost]] = {contender.name: {} for contender in contenders}
    for _ in range(repeat):
        for contender in contenders:
            shutil.rmtree(contender.folder, ignore_errors=True)
            contender.folder.mkdir()
            contender.prepare(contender.folder)
        for step in (FIRST, *[AGAIN, STATUS, HELP] * 3):
            for contender in contenders:
                if step in contender.steps:
                    cost = measure(contender, step)
                    known = best[contender.name]
                    known[step] = cost.better(known.get(step, cost))
    return best


def print_table(title: str, best: Mapping[str, Mapping[str, Cost]], value: Callable[[Cost], float]) -> None:
    print(f"{title:<22}" + "".join(f"{name:>20}" for name in best))
    for step in (FIRST, AGAIN, STATUS, HELP):
        cells = [f"{value(costs[step]):.3f}" if step in costs else "-" for costs in best.values()]
        print(f"{step:<22}" + "".join(f"{cell:>20}" for cell in cells))


def write_json(path: Path, best: Mapping[str, Mapping[str, Cost]]) -> None:
    """Sets the key ``workspace`` of the JSON object in ``path``; its other keys stay."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content["workspace"] = {name: {step: asdict(cost) for step, cost in costs.items()} for name, costs in best.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=50)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also set the key workspace of the object in this file")
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
        best = run(contenders, options.repeat)
    print(f"{options.entries} repositories of {options.files} files, best of {options.repeat}")
    print_table("seconds", best, lambda cost: cost.wall)
    print_table("processor seconds", best, lambda cost: cost.processor)
    if options.json:
        write_json(options.json, best)


if __name__ == "__main__":
    main()
