"""Installing the packages editable into the active environment, skipping those that are current."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError
from ptows.manifest import Entry
from ptows.project import Environment, Project, install_state, read_project
from ptows.redact import redact

_RECORD = "installed.json"
#: Lines of the installer that say what is wrong, among those that say that something is.
_TELLING = re.compile(r"ERROR: (?!Failed to build|Command errored)|error: (?!subprocess-exited)|[A-Z]\w+Error: ")


@dataclass(frozen=True)
class Wanted:
    """A package that has to be installed, and why."""

    entry: Entry
    reason: str


def _digest(project: Project) -> str:
    return hashlib.sha256(project.text.encode()).hexdigest()


def _record(state: Path, environment: Environment) -> dict[str, str]:
    """Entry name to the digest of the pyproject.toml it was last installed from, in this environment."""
    try:
        found = json.loads((state / _RECORD).read_text(encoding="utf-8"))[environment.prefix]
        return {str(name): str(digest) for name, digest in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def wanted(packages: Sequence[Entry], root: Path, state: Path, environment: Environment) -> list[Wanted]:
    """Packages that are not current, in the order given (dependencies first)."""
    installed = environment.installed()
    record = _record(state, environment)
    found = []
    for entry in packages:
        project = read_project(root / entry.path)
        reason = install_state(root / entry.path, project, installed)
        # A changed pyproject.toml may bring new requirements or commands although the version stayed.
        if reason == "current" and project and record.get(entry.name, _digest(project)) != _digest(project):
            reason = "pyproject.toml changed"
        if reason not in ("current", "no project"):
            found.append(Wanted(entry, reason))
    return found


def install(items: Sequence[Wanted], root: Path, state: Path, environment: Environment, offline: bool) -> None:
    """Installs all in one run of the installer, so that the packages satisfy each other's requirements.

    Raises:
        PtowsError: the installer failed; nothing is recorded.
        KeyboardInterrupt: the user interrupted; the installer was ended.
    """
    # Only here: status and a sync with nothing to install do not start commands.
    from ptows.runner.sessions import NOT_DONE, run_command
    from ptows.sync.workers import stopping

    command = [environment.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if offline:
        command += ["--no-index", "--no-build-isolation"]
    if (root / "constraints.txt").is_file():
        command += ["--constraint", "constraints.txt"]
    for item in items:
        command += ["--editable", f"./{item.entry.path}"]
    stop = threading.Event()
    with stopping(stop):
        ended = run_command("pip", command, root, None, stop, {})
    if ended.state == NOT_DONE:
        raise KeyboardInterrupt
    if ended.code:
        raise _failure(redact(ended.output), state, environment)
    remember([item.entry for item in items], root, state, environment)


def _failure(said: str, state: Path, environment: Environment) -> PtowsError:
    """What the installer said in a few lines; all of it goes to a log."""
    if "No module named pip" in said:
        return PtowsError(f"{environment.python} has no pip", f"run: {environment.python} -m ensurepip")
    if "externally-managed-environment" in said:
        hint = "make an environment: python -m venv .venv && . .venv/bin/activate"
        return PtowsError(f"the Python in {environment.prefix} belongs to the system", hint)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.match(line)]
    log = state / "logs" / "install.log"
    with contextlib.suppress(OSError):
        log.parent.mkdir(exist_ok=True)
        log.write_text(said, encoding="utf-8")
    what = "installing the packages failed:\n  " + "\n  ".join(list(dict.fromkeys(telling))[:4] or lines[-4:])
    return PtowsError(what, f"all of it is in {log}; ptows sync --no-install leaves the environment alone")


def remember(packages: Sequence[Entry], root: Path, state: Path, environment: Environment) -> None:
    """Records the pyproject.toml files that the environment now corresponds to."""
    path = state / _RECORD
    try:
        everything = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        everything = {}
    record = dict(_record(state, environment))
    for entry in packages:
        project = read_project(root / entry.path)
        if project is not None:
            record[entry.name] = _digest(project)
    if not isinstance(everything, dict):
        everything = {}
    if everything.get(environment.prefix) == record:
        return
    everything[environment.prefix] = record
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(everything, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)


def drift(entry: Entry, root: Path) -> str:
    """How the package's own version differs from the manifest; "" when it does not."""
    if entry.version is None:
        return ""
    project = read_project(root / entry.path)
    if project is None or not project.version or project.version == entry.version:
        return ""
    return f"version is {entry.version} in the manifest and {project.version} in {entry.path}/pyproject.toml"
