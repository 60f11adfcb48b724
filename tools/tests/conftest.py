"""A small world for the tests: bare remotes on this disk, workspaces that use them, and ways to run ptows there."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def sh_git(folder: Path, *arguments: str) -> str:
    """git as a user would run it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | IDENTITY
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, errors="surrogateescape")
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


@dataclass
class Answer:
    """What a run of ptows gave."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Remote:
    """A bare repository and a clone to push to it from."""

    def __init__(self, folder: Path, name: str) -> None:
        self.bare = folder / f"{name}.git"
        self.work = folder / f"{name}-work"
        self.bare.parent.mkdir(parents=True, exist_ok=True)
        sh_git(self.bare.parent, "init", "-q", "--bare", "-b", "main", str(self.bare))
        sh_git(self.bare.parent, "init", "-q", "-b", "main", str(self.work))
        sh_git(self.work, "remote", "add", "origin", str(self.bare))

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def commit(self, files: Mapping[str, str | None], message: str = "change", push: bool = True) -> str:
        """Writes (None: removes) files, commits, pushes; the commit."""
        for name, text in files.items():
            path = self.work / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        sh_git(self.work, "add", "-A")
        sh_git(self.work, "commit", "-q", "--allow-empty", "-m", message)
        if push:
            sh_git(self.work, "push", "-q", "--force", "origin", "HEAD")
        return sh_git(self.work, "rev-parse", "HEAD")

    def tag(self, name: str) -> None:
        """Tags the last commit and pushes the tag."""
        sh_git(self.work, "tag", name)
        sh_git(self.work, "push", "-q", "origin", name)

    def reset(self, commit: str) -> None:
        """Takes the branch back, as a force push does."""
        sh_git(self.work, "reset", "-q", "--hard", commit)
        sh_git(self.work, "push", "-q", "--force", "origin", "HEAD")


class World:
    """A folder with remotes and one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "ws"
        self.root.mkdir(parents=True)
        self.remotes: dict[str, Remote] = {}

    def remote(self, name: str, files: dict[str, str] | None = None) -> tuple[Remote, str]:
        """A remote with one commit, and that commit."""
        remote = self.remotes[name] = Remote(self.folder / "remotes", name)
        return remote, remote.commit(files or {"a.txt": f"{name}\n"}, "first")

    def manifest(self, text: str) -> None:
        (self.root / "workspace.yaml").write_text(text, encoding="utf-8")

    def repos(self, **revs: str) -> None:
        """A manifest with one repo per keyword, at its revision."""
        lines = ["workspace: 1", "name: test", "repos:"]
        for name, rev in revs.items():
            lines.append(f'  {name}: {{url: "{self.remotes[name].url}", rev: "{rev}", path: {name}}}')
        self.manifest("\n".join(lines) + "\n")

    def path(self, name: str) -> Path:
        return self.root / name

    def head(self, name: str) -> str:
        return sh_git(self.path(name), "rev-parse", "HEAD")

    def git(self, name: str, *arguments: str) -> str:
        return sh_git(self.path(name), *arguments)

    def run(self, *arguments: str) -> Answer:
        """ptows in this process."""
        from ptows.__main__ import run

        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["--workspace", str(self.root), *arguments])
        return Answer(code, out.getvalue(), err.getvalue())

    def sync(self, *arguments: str) -> Answer:
        return self.run("sync", "--no-install", *arguments)

    def start(self, *arguments: str, **options) -> subprocess.Popen[str]:
        """ptows as a process of its own, in the background."""
        command = [sys.executable, "-m", "ptows", "--workspace", str(self.root), *arguments]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(command, text=True, **options)

    def process(self, *arguments: str, **options) -> Answer:
        """ptows as a process of its own."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return Answer(process.returncode, out, err)

    def temporary(self) -> list[str]:
        """Unfinished clones anywhere in the workspace; they may go while we look."""
        return [
            os.path.join(parent, name)
            for parent, folders, files in os.walk(self.root)
            for name in (*folders, *files)
            if name.endswith(".tmp")
        ]


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_reaches_processes():
    """Tests in the background of a script ignore Ctrl-C, and the processes they start would inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch, tmp_path_factory):
    """The settings and the compile cache of whoever runs the tests must not matter."""
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "no-cache"))
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


NOXFILE = """\
import os, pathlib, nox
nox.options.default_venv_backend = "none"

@nox.session
def tests(session):
    for path in session.posargs:
        folder = pathlib.Path(path)
        if path == ".":
            continue
        log = pathlib.Path("order.txt")
        with log.open("a") as stream:
            stream.write(os.environ["PTOWS_PACKAGE"] + " " + path + "\\n")
        print("testing", path)
        if (folder.parent / "fails").exists():
            session.error("told to fail")

@nox.session
def e2e(session):
    print("end to end of", os.environ.get("PTOWS_PACKAGE"), session.posargs)
"""


@pytest.fixture
def five(world) -> World:
    """The shape of the real workspace: five tree packages in a repository with one commit."""
    graph = {"ptoas_bridge": [], "simpler_runtime": [], "pypto": ["ptoas_bridge", "simpler_runtime"]}
    graph |= {"pypto_lib": ["pypto"], "ptows": []}
    lines = ["workspace: 1", "name: pto", "packages:"]
    for name, needs in graph.items():
        (world.root / name / "tests").mkdir(parents=True)
        (world.root / name / "code.py").write_text("x = 1\n")
        (world.root / name / "tests" / "test_x.py").write_text("")
        project = f'[project]\nname = "{name}"\nversion = "0.1.0"\n'
        (world.root / name / "pyproject.toml").write_text(project)
        lines.append(f'  {name}: {{path: {name}, version: "0.1.0", depends: [{", ".join(needs)}]}}')
    lines += ["sessions:", "  tests: {packages: all}", "  e2e: {packages: [pypto_lib]}"]
    world.manifest("\n".join(lines) + "\n")
    (world.root / "noxfile.py").write_text(NOXFILE)
    (world.root / ".gitignore").write_text("order.txt\n.nox/\nbuild/\n__pycache__/\n")
    subprocess.run(["git", "init", "-q"], cwd=world.root, check=True)
    world.git(".", "add", "-A")
    world.git(".", "commit", "-qm", "first")
    return world
