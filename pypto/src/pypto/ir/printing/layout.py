"""Layout of printed text: the format callback, by default the ``ruff`` formatter at 200 columns."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LINE_LENGTH = 200


def _find_ruff() -> str | None:
    beside_python = Path(sys.executable).with_name("ruff")
    return str(beside_python) if beside_python.exists() else shutil.which("ruff")


_RUFF = _find_ruff()


def ruff_format(text: str) -> str:
    """``text`` formatted by ruff; unchanged when ruff refuses it."""
    command = [_RUFF, "format", "--isolated", "--line-length", str(LINE_LENGTH), "-"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return text
    return done.stdout.rstrip("\n") if done.returncode == 0 else text


def default_format(text: str) -> str:
    """Format with ruff, but only text that it would change: several lines, or one that is too long."""
    if "\n" not in text and len(text) <= LINE_LENGTH:
        return text
    return ruff_format(text)


_callback: Callable[[str], str] | None = default_format if _RUFF else None


def register_format_callback(callback: Callable[[str], str] | None) -> None:
    """Set the function that ``format=True`` applies to printed text; None leaves the text as it is."""
    global _callback
    _callback = callback


def apply_format(text: str) -> str:
    """``text`` through the registered callback; a failing callback leaves it unchanged."""
    if _callback is None:
        return text
    try:
        return _callback(text)
    except Exception:
        return text
