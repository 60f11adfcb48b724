"""The nox command line for one package."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ptows.manifest import Entry, Session


def find_nox(which: Callable[[str], str | None] = shutil.which) -> list[str] | None:
    """How to start nox: as a module of this Python, or from the PATH."""
    if importlib.util.find_spec("nox") is not None:
        return [sys.executable, "-m", "nox"]
    path = which("nox")
    return [path] if path else None


def session_arguments(session: Session, entry: Entry, root: Path) -> list[str]:
    """What the session gets after ``--``.

    ``args`` of the manifest with ``{name}`` and ``{path}`` filled in. Without ``args``, a session for all packages
    gets the package's tests folder (or the package), and a session for named packages gets nothing.
    """
    if session.args is not None:
        return [text.replace("{name}", entry.name).replace("{path}", entry.path) for text in session.args]
    if session.packages is not None:
        return []
    tests = f"{entry.path}/tests"
    return [tests if (root / tests).is_dir() else entry.path]


def nox_command(
    nox: Sequence[str], session: Session, entry: Entry, root: Path, extra: Sequence[str], *, prepared: bool
) -> list[str]:
    """The command for one package. A package with its own noxfile runs that; others share the workspace's.

    Args:
        prepared: the shared environment of the session was made already and must not be installed into again.
    """
    own = root / entry.path / "noxfile.py"
    command = [*nox, "--noxfile", str(own if own.is_file() else root / "noxfile.py")]
    if own.is_file():
        return [*command, "--session", session.name, *(["--", *extra] if extra else [])]
    arguments = [*session_arguments(session, entry, root), *extra]
    reuse = ["--reuse-existing-virtualenvs", "--no-install"] if prepared else []
    return [*command, *reuse, "--session", session.name, *(["--", *arguments] if arguments else [])]
