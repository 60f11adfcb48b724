"""The checks, as a list: each looks at one thing and says ok, warn or fail, and how to repair it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ptows.doctor.compiler import probe_compiler
from ptows.errors import PtowsError
from ptows.manifest import Manifest, Tool
from ptows.project import Environment, active_environment, install_state, read_project
from ptows.redact import has_credentials
from ptows.specifier import matches, release

OK, WARN, FAIL = "ok", "warn", "fail"
_LEAST_GIT = (2, 31)
_LEAST_FREE = 2 << 30
#: Tools of the review helpers: needed by maintainers only.
_REVIEW_TOOLS = {
    "docker": "install docker, to run reviews in a container",
    "gh": "install the GitHub command line, to look at reviews",
    "codex": "install the codex command line, to run reviews by hand",
}


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    verdict: str
    found: str
    fix: str = ""


def examine_machine(manifest: Manifest | None, root: Path, which: Callable[[str], str | None] = shutil.which):
    """Every check, one after the other. ``manifest`` is None when it cannot be read."""
    yield _python(manifest)
    yield _git(which)
    tools = dict(manifest.tools) if manifest else {}
    yield probe_compiler(tools.pop("cxx", Tool("cxx")), which)
    yield _torch(manifest, root)
    for tool in tools.values():
        yield _tool(tool, which)
    if "ptoas" not in tools:
        yield _tool(Tool("ptoas", optional=True), which)
    yield _nox(which)
    for name, fix in _REVIEW_TOOLS.items():
        yield _optional(name, fix, which)
    yield _disk(root)
    if manifest is not None:
        yield from _manifest(manifest)


def _python(manifest: Manifest | None) -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = manifest.requires_python if manifest and manifest.requires_python else ">=3.10"
    is_virtual = sys.prefix != sys.base_prefix or bool(os.environ.get("VIRTUAL_ENV"))
    if not matches(version, wanted):
        return Check("python", FAIL, version, f"make an environment with Python {wanted}")
    if not is_virtual:
        return Check(
            "python", WARN, f"{version}, no virtual environment", "python -m venv .venv && . .venv/bin/activate"
        )
    return Check("python", OK, version)


def version_of(command: list[str]) -> str:
    """The first thing that looks like a version in what the command prints; "" when it fails or cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done.returncode:
        # A traceback holds numbers too, such as the version of Python in a path.
        return ""
    match = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else ""


def _git(which: Callable[[str], str | None]) -> Check:
    path = which("git")
    if path is None:
        return Check("git", FAIL, "not found", "install git 2.31 or newer")
    version = version_of([path, "--version"])
    if release(version) < _LEAST_GIT:
        return Check("git", FAIL, version or "unknown version", "install git 2.31 or newer")
    return Check("git", OK, version)


def _torch(manifest: Manifest | None, root: Path) -> Check:
    environment = active_environment()
    # Asking a fresh interpreter keeps a broken or slow torch out of this process.
    code = "import importlib.metadata as m; print(m.version('torch'))"
    version = version_of([environment.python, "-c", code])
    wanted = constraint(root, "torch")
    fix = "pip install -c constraints.txt torch" if wanted else "pip install torch"
    if version:
        if wanted and release(version) != release(wanted):
            return Check("torch", WARN, f"{version}; constraints.txt says {wanted}", fix)
        return Check("torch", OK, version)
    if manifest is not None and not _all_installed(manifest, environment):
        return Check("torch", WARN, "not installed yet, nor are all packages", "ptows sync")
    return Check("torch", FAIL, "not installed", fix)


def constraint(root: Path, name: str) -> str:
    """The version that ``constraints.txt`` of the workspace allows for a distribution; "" when it names none."""
    try:
        text = (root / "constraints.txt").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    found = re.search(rf"^{re.escape(name)}\s*==\s*([^\s;#]+)", text, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


def _all_installed(manifest: Manifest, environment: Environment) -> bool:
    installed = environment.installed()
    folders = [manifest.root / entry.path for entry in manifest.packages]
    try:
        return all(install_state(folder, read_project(folder), installed) != "missing" for folder in folders)
    except PtowsError:
        return False


def _tool(tool: Tool, which: Callable[[str], str | None]) -> Check:
    candidates = tool.candidates or (tool.name,)
    path = next((found for name in candidates if (found := which(name))), None)
    bad = WARN if tool.optional else FAIL
    optional = " (optional)" if tool.optional else ""
    if path is None:
        return Check(tool.name, OK if tool.optional else FAIL, f"not found{optional}", f"install {candidates[0]}")
    version = version_of([path, "--version"])
    if tool.version and not (version and matches(version, tool.version)):
        return Check(tool.name, bad, f"{version or 'unknown version'} at {path}", f"install {tool.name} {tool.version}")
    return Check(tool.name, OK, f"{version} at {path}".strip())


def _nox(which: Callable[[str], str | None]) -> Check:
    from ptows.runner.command import find_nox

    command = find_nox(which)
    if command is None:
        return Check("nox", WARN, "not found", "pip install nox; ptows run needs it")
    return Check("nox", OK, version_of([*command, "--version"]))


def _optional(name: str, fix: str, which: Callable[[str], str | None]) -> Check:
    path = which(name)
    if path is None:
        return Check(name, WARN, "not found (optional)", fix)
    return Check(name, OK, f"{version_of([path, '--version'])} at {path}".strip())


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    found = f"{free / (1 << 30):.1f} GiB free"
    if free < _LEAST_FREE:
        return Check("disk", WARN, found, "ptows clean --store --builds")
    return Check("disk", OK, found)


def _manifest(manifest: Manifest) -> Iterator[Check]:
    yield Check("manifest", OK, f"{len(manifest.entries)} entries")
    for entry in manifest.entries.values():
        if not entry.is_pinned:
            fix = f"ptows pin {entry.name}"
            yield Check(f"pin of {entry.name}", WARN, f"'{entry.rev}' is unpinned: it can change under you", fix)
        if has_credentials(entry.url):
            fix = "use a credential helper (git help credentials)"
            yield Check(f"url of {entry.name}", WARN, "holds credentials", fix)
