"""Compiled programs of earlier processes, by key: manifest, sidecar and C++ sources. Binaries have their own cache.

The store lies beside the compile cache of the task runtime (``PTO_CACHE_DIR``, else ``~/.cache/pto``), or in a folder
of the caller, in ``programs/<compiler fingerprint>/<key>/``. An entry appears by renaming a finished folder, so a
killed process leaves nothing half-written. Trouble with the disk never fails a compile: it is then as if the store
were empty.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pypto.artifact.cache import count
from pypto.artifact.layout import MANIFEST, SIDECAR

_CONTENTS = "contents.json"
#: Packages whose code decides what is generated.
_COMPILER_PACKAGES = ("pypto", "ptoas_bridge")
_KEPT_COMPILERS = 4


def lookup(key: str, root: Path | None = None) -> Path | None:
    """The folder stored under ``key`` by this version of the compiler; None when there is none or it is damaged."""
    folder = _generation(root) / key
    if _intact(folder):
        return folder
    if folder.exists():
        count("invalid_entries")
    return None


def _intact(folder: Path) -> bool:
    try:
        contents = json.loads((folder / _CONTENTS).read_bytes())
        return all(os.stat(folder / path).st_size == size for path, size in contents.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def publish(key: str, artifact: Path, root: Path | None = None) -> None:
    """Store a copy of what is needed to run an artifact; the first of several processes wins."""
    try:
        generation = _generation(root)
        if not generation.exists():
            generation.mkdir(parents=True)
            _forget_old_compilers(generation.parent)
        target = generation / key
        if target.exists() and not _intact(target):
            shutil.rmtree(target)
        staged = Path(tempfile.mkdtemp(dir=generation, prefix=".new-"))
        try:
            contents = {}
            for path in _needed(artifact):
                name = path.relative_to(artifact).as_posix()
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, staged / name)
                contents[name] = path.stat().st_size
            (staged / _CONTENTS).write_text(json.dumps(contents))
            os.rename(staged, target)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            count("storage_errors")


def entries(root: Path | None = None) -> list[tuple[str, str, int]]:
    """(compiler fingerprint, key, bytes) of everything stored below a root, in order of the names."""
    found = []
    for contents in sorted(_programs(root).glob(f"*/*/{_CONTENTS}")):
        folder = contents.parent
        size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
        found.append((folder.parent.name, folder.name, size))
    return found


def _needed(artifact: Path) -> Iterator[Path]:
    yield from (artifact / MANIFEST, artifact / SIDECAR)
    for folder in ("kernels", "orchestration"):
        yield from (path for path in (artifact / folder).rglob("*") if path.is_file())


def _generation(root: Path | None) -> Path:
    return _programs(root) / compiler_fingerprint()


def _programs(root: Path | None) -> Path:
    if root is None:
        from simpler_runtime.toolchain import cache_dir

        root = cache_dir()
    return root / "programs"


def _forget_old_compilers(root: Path) -> None:
    """Keep the entries of the compilers used last; a changed compiler never reads those of another one."""
    generations = sorted(root.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in generations[_KEPT_COMPILERS:]:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def compiler_fingerprint() -> str:
    """Changes with every edit of the compiler's files (names, sizes, times) and with the Python version."""
    digest = hashlib.sha256(repr(sys.version_info[:3]).encode())
    for package in _COMPILER_PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.origin is not None
        for name, size, stamp in sorted(_source_files(os.path.dirname(spec.origin))):
            digest.update(f"{name}\0{size}\0{stamp}\n".encode())
    return digest.hexdigest()[:16]


def _source_files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif not entry.name.startswith((".", "_")) and entry.is_dir():
                yield from _source_files(entry.path)
