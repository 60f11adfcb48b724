"""Where an artifact lives and how its files reach the disk."""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from pathlib import Path

MANIFEST = "kernel_config.py"
SIDECAR = "compiled_meta.json"
DISTRIBUTED_SIDECAR = "distributed_meta.json"
HOST_ORCHESTRATION = "orchestration/host_orch.py"


def default_output_dir(name: str) -> Path:
    """A new folder ``<base>/<name>_<YYYYMMDD_HHMMSS>``, numbered when that one exists.

    The base is the environment variable ``PYPTO_PROG_BUILD_DIR``, else ``build_output`` in the current folder.
    """
    base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output")
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    candidate, number = base / f"{name}_{stamp}", 0
    while True:
        try:
            candidate.mkdir(parents=True, exist_ok=False)
            return candidate
        except FileExistsError:
            number += 1
            candidate = base / f"{name}_{stamp}_{number}"


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write files by relative path, each atomically."""
    folders = {(root / path).parent for path in files}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        write_atomically(root / path, text)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step: a reader, or a kill at any time, sees the old or the new content."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def remove_markers(root: Path, names: tuple[str, ...]) -> None:
    """Delete the files that would make a folder look like another kind of artifact."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            (root / name).unlink()
