"""``ptows review``: the front door to the stand-alone scripts in ``.github/scripts``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ptows.errors import MissingFeatureError, UsageError
from ptows.manifest.model import suggestion

FOLDER = ".github/scripts"
#: Subcommand to its script and what that does.
SCRIPTS: dict[str, tuple[str, str]] = {
    "prepare": ("prepare_codex_review.py", "Decide whether an event starts a review, and collect the discussion."),
    "route": ("rerun_codex_review.py", "Find the run that a review command should re-run."),
    "rerun": ("rerun_codex_review.py", "The same as route."),
    "run": ("run_codex_review.py", "Check out, diff and review in a container."),
    "session": ("manage_codex_review_session.py", "Look after the session volumes of a pull request."),
    "publish": ("publish_codex_review.py", "Validate a review and post it."),
    "simulate": ("simulate.py", "Play recorded events, or a built-in life, against a local fake."),
    "check": ("check.py", "Check the workflow and the scripts."),
}


def find_script(root: Path, name: str) -> Path:
    """The script behind a subcommand.

    Raises:
        UsageError: no such subcommand.
        MissingFeatureError: the workspace does not have the script.
    """
    if name not in SCRIPTS:
        raise UsageError(f"no review command '{name}'", suggestion(name, SCRIPTS))
    path = root / FOLDER / SCRIPTS[name][0]
    if not path.is_file():
        what = f"ptows review {name} needs {FOLDER}/{path.name}, which this workspace does not have"
        raise MissingFeatureError(what, "update the workspace")
    return path


def start(root: Path, name: str, arguments: list[str]) -> None:
    """Becomes the script: its output, input and exit code are the command's."""
    command = [sys.executable, str(find_script(root, name)), *arguments]
    sys.stdout.flush()
    os.execv(command[0], command)
