"""Where the things under test live."""

from __future__ import annotations

from pathlib import Path

GITHUB = Path(__file__).resolve().parents[1]
SCRIPTS = GITHUB / "scripts"
