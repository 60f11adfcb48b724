"""What is derived from the operator definitions: type stubs, reference pages, the status matrix.

``python -m pypto.tools.opdocs`` writes the files, ``--check`` names those that are out of date.
"""

from __future__ import annotations

from pathlib import Path

from pypto.tools.opdocs.pages import pages
from pypto.tools.opdocs.stubs import stubs

#: Root of the workspace this package was installed from (editable), where ``docs/`` lies.
WORKSPACE = Path(__file__).resolve().parents[5]


def generated() -> dict[str, str]:
    """Text of every generated file by its path in the workspace, with ``/``."""
    return {**stubs(), **pages()}


def outdated(root: Path = WORKSPACE) -> list[str]:
    """Paths under ``root`` whose file is missing or differs from what the definitions give."""
    return [path for path, text in generated().items() if _text_of(root / path) != text]


def write(root: Path = WORKSPACE) -> list[str]:
    """Write the outdated files under ``root`` and return their paths."""
    changed = outdated(root)
    texts = generated()
    for path in changed:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[path], encoding="utf-8", newline="\n")
    return changed


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
