"""Sessions of the workspace: ``nox -s e2e`` runs the main job, ``nox -s tests`` the tests."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "tests", "e2e"]

ROOT = Path(__file__).parent
#: Packages in dependency order.
PACKAGES = ("ptoas_bridge", "simpler_runtime", "pypto", "pypto_lib", "tools")
TEST_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pytest-timeout", "jsonschema")
LINT_TOOLS = ("ruff", "import-linter", "pyright[nodejs]", "tomli")


def install(session: nox.Session, *requirements: str) -> None:
    """The workspace, editable, plus tools, under the pins of ``constraints.txt``."""
    editable = [argument for package in PACKAGES for argument in ("-e", f"./{package}")]
    session.install("-q", "-c", "constraints.txt", *editable, *requirements)


def workers() -> str:
    """Test processes: one per core, at most four."""
    return str(min(4, os.cpu_count() or 1))


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests of every package; arguments are paths or pytest options."""
    install(session, *TEST_TOOLS, "-r", ".github/tests/requirements.txt")
    packages = [f"{package}/tests" for package in PACKAGES] + [".github/tests"]
    paths = session.posargs or [p for p in packages if (ROOT / p).exists()]
    session.run("python", "-m", "pytest", "-n", workers(), "--dist", "worksteal", *paths)


@nox.session
def e2e(session: nox.Session) -> None:
    """The programs of the library through the whole stack on both simulated platforms; arguments select some."""
    install(session)
    session.run("python", "-m", "pypto_lib.e2e", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, import contracts and types."""
    install(session, *LINT_TOOLS, "pytest", "hypothesis", "nox")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")
    session.run("pyright", "--pythonpath", _python(session))


@nox.session
def types(session: nox.Session) -> None:
    """Pyright alone."""
    install(session, *LINT_TOOLS, "pytest", "hypothesis", "nox")
    session.run("pyright", "--pythonpath", _python(session))


@nox.session
def bench(session: nox.Session) -> None:
    """The performance tables, printed and written to bench/latest.json; arguments select groups.

    The group ``workspace`` compares ptows with west and plain git.
    """
    install(session, "west")
    groups = session.posargs
    if groups[:1] != ["workspace"]:
        session.run("python", "-m", "pypto_lib.bench", *groups)
    if not groups or groups[0] == "workspace":
        session.run("python", "tools/bench/compare.py", "--json", "bench/latest.json", *groups[1:])


@nox.session
def conformance(session: nox.Session) -> None:
    """A public test tree, given by path, against the installed packages: passed and total by area."""
    if not session.posargs:
        session.error("give the path of a checkout: nox -s conformance -- PATH [options of pypto_lib.conformance]")
    install(session, *TEST_TOOLS)
    session.run("python", "-m", "pypto_lib.conformance", *session.posargs)


def _python(session: nox.Session) -> str:
    return shutil.which("python", path=session.bin) or sys.executable
