"""Reading ``kernel_config.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pypto.artifact.layout import MANIFEST


class Manifest(msgspec.Struct):
    """The three dictionaries of a manifest."""

    runtime: dict[str, Any]
    orchestration: dict[str, Any]
    kernels: list[dict[str, Any]]


def read_manifest(root: Path) -> Manifest:
    """Execute the manifest of an artifact.

    Raises:
        FileNotFoundError: the folder has none.
        ValueError: it is not a valid manifest.
    """
    path = root / MANIFEST
    if not path.exists():
        raise FileNotFoundError(
            f"{path} not found: the folder holds no runnable artifact. It was compiled for platform 'torch' or with "
            "skip_ptoas, or the program has no Orchestration function to start at"
        )
    scope: dict[str, Any] = {"__file__": str(path.resolve()), "__name__": "kernel_config"}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
        return Manifest(scope["RUNTIME_CONFIG"], scope["ORCHESTRATION"], scope["KERNELS"])
    except Exception as error:
        raise ValueError(f"{path} is not a valid manifest: {error}") from error
