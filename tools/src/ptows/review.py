"""``ptows review``: the front door to the stand-alone scripts in ``.github/scripts``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ptows.errors import MissingFeatureError, UsageError
from ptows.manifest.model import suggestion

FOLDER = ".github/scripts"
#: Subcommand to the scripts it may be, first match wins, and what it does.
SCRIPTS: dict[str, tuple[tuple[str, ...], str]] = {
    "prepare": (("prepare_codex_review.py",), "Decide whether an event starts a review, and collect the discussion."),
    "route": (("rerun_codex_review.py",), "Find the run that a review command should re-run."),
    "rerun": (("rerun_codex_review.py",), "The same as route."),
    "run": (("run_codex_review.py",), "Check out, diff and review in a container."),
    "session": (("manage_codex_review_session.py",), "Look after the session volumes of a pull request."),
    "publish": (("publish_codex_review.py",), "Validate a review and post it."),
    "simulate": (("simulate_codex_review.py", "simulate.py"), "Play a recorded event against a local fake."),
    "check": (("check_codex_review.py", "check.py"), "Check the workflow and the scripts."),
}


def find_script(root: Path, name: str) -> Path:
    """The script behind a subcommand.

    Raises:
        UsageError: no such subcommand.
        MissingFeatureError: the workspace does not have the script.
    """
    if name not in SCRIPTS:
        raise UsageError(f"no review command '{name}'", suggestion(name, SCRIPTS))
    candidates, _ = SCRIPTS[name]
    for candidate in candidates:
        path = root / FOLDER / candidate
        if path.is_file():
            return path
    what = f"ptows review {name} needs {FOLDER}/{candidates[0]}, which this workspace does not have"
    raise MissingFeatureError(what, "update the workspace")


def command_line(root: Path, name: str, arguments: list[str]) -> list[str]:
    """What runs for ``ptows review NAME ARGUMENTS``."""
    return [sys.executable, str(find_script(root, name)), *arguments]


def start(root: Path, name: str, arguments: list[str]) -> None:
    """Becomes the script: its output, input and exit code are the command's."""
    command = command_line(root, name, arguments)
    sys.stdout.flush()
    os.execv(command[0], command)
