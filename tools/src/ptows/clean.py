"""``ptows clean``: caches with their sizes, and their removal.

Inside the workspace only what git ignores is touched; outside it, only the folders that the compile cache is made of.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError
from ptows.git.command import git
from ptows.git.trees import repository_of
from ptows.manifest import Manifest

_STORE = (".ptows/store", ".ptows/logs")
#: What the compiler and the task runtime keep in their cache; anything else in that folder is not theirs.
_COMPILE_CACHE = ("binaries", "compilers", "libraries", "manifests", "programs", "work")
_BUILD_NAMES = {
    "build",
    "dist",
    "build_output",
    "__pycache__",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".import_linter_cache",
}


@dataclass(frozen=True)
class Cache:
    """A folder that can be made again. ``path`` counts from the workspace, or is absolute outside it."""

    kind: str
    path: str
    size: int


def compile_cache() -> Path:
    """Where compiled programs and kernels are kept between processes."""
    configured = os.environ.get("PTO_CACHE_DIR")
    return Path(configured) if configured else Path.home() / ".cache" / "pto"


def find_caches(manifest: Manifest, kinds: set[str]) -> list[Cache]:
    """Caches of the kinds ``store`` and ``builds``, largest first."""
    root = manifest.root
    found: list[Cache] = []
    if "store" in kinds:
        found += [Cache("store", path, size_of(root / path)) for path in _STORE if (root / path).is_dir()]
        folders = [compile_cache().absolute() / name for name in _COMPILE_CACHE]
        found += [Cache("store", str(path), size_of(path)) for path in folders if path.is_dir()]
    if "builds" in kinds:
        checkouts = [root / entry.path for entry in manifest.entries.values() if entry.is_git]
        candidates = _build_folders(root, checkouts)
        found += [Cache("builds", path, size_of(root / path)) for path in _ignored(root, candidates)]
    return sorted(found, key=lambda cache: -cache.size)


def _build_folders(root: Path, excluded: list[Path]) -> list[str]:
    """Folders with the names of build results, outside git checkouts, which look after themselves."""
    found: list[str] = []
    for parent, folders, _ in os.walk(root):
        here = Path(parent)
        kept = []
        for name in sorted(folders):
            if (here / name).is_symlink() or name in (".git", ".ptows", ".venv") or here / name in excluded:
                continue
            if name in _BUILD_NAMES:
                found.append(str((here / name).relative_to(root)))
            else:
                kept.append(name)
        folders[:] = kept
    return found


def _ignored(root: Path, paths: list[str]) -> list[str]:
    """Those that git ignores and tracks nothing of: a folder called ``build`` may well be source."""
    if not paths or repository_of(root) is None:
        return []
    answer = git("check-ignore", "-z", "--stdin", cwd=root, feed="".join(f"{path}/\0" for path in paths), check=False)
    ignored = {name.rstrip("/") for name in answer.out.split("\0") if name}
    tracked = git("ls-files", "-z", "--", *paths, cwd=root).out.split("\0")
    return [path for path in paths if path in ignored and not any(name.startswith(path + "/") for name in tracked)]


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def remove(root: Path, cache: Cache) -> None:
    """Removes one cache.

    Raises:
        PtowsError: it cannot be removed.
    """
    try:
        shutil.rmtree(root / cache.path)
    except OSError as error:
        raise PtowsError(f"cannot remove {cache.path}: {error.strerror}") from None


def readable(size: int) -> str:
    """``1.5 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{size} B"
