"""Which packages a change since a revision touches: their own files, or files of what they depend on."""

from __future__ import annotations

from collections.abc import Iterable

from ptows.git.changes import changed_files
from ptows.graph import with_dependants
from ptows.manifest import Manifest

#: Files of the workspace that every package's sessions depend on.
SHARED = {"workspace.yaml", "noxfile.py", "constraints.txt", "pyproject.toml", "conftest.py"}


def packages_of(files: Iterable[str], manifest: Manifest) -> set[str]:
    """Packages whose files, or whose dependencies' files, are among ``files`` (relative to the workspace)."""
    packages = manifest.packages
    names = list(files)
    if any(name in SHARED for name in names):
        return {entry.name for entry in packages}
    touched = {
        entry.name
        for entry in packages
        if any(name == entry.path or name.startswith(entry.path + "/") for name in names)
    }
    return with_dependants({entry.name: entry.depends for entry in packages}, touched)


def affected_since(manifest: Manifest, rev: str) -> set[str]:
    """Packages affected by what changed between ``rev`` and the files as they are now.

    Raises:
        UsageError: ``rev`` names no commit.
        PtowsError: the workspace is in no git repository.
    """
    return packages_of(changed_files(manifest.root, rev), manifest)
