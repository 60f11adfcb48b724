"""Digests of tree packages: the git tree hash of a folder as it stands, committed or not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptows.git.command import git

# What importing and installing a package leaves in its folder; a repository says so itself, in .gitignore.
_LEFT_BY_INSTALLING = "__pycache__/\n*.egg-info/\n"


@dataclass(frozen=True)
class TreeState:
    """The tree hash of a folder's content ("" when it is missing or empty) and the files that differ from HEAD."""

    digest: str
    changed: tuple[str, ...] = ()


def repository_of(root: Path) -> Path | None:
    """The git folder that manages ``root``; None when ``root`` is in no repository."""
    found = git("rev-parse", "--absolute-git-dir", cwd=root, check=False)
    return Path(found.out.rstrip("\n")) if found.code == 0 else None


def tree_states(root: Path, paths: Sequence[str]) -> dict[str, TreeState]:
    """The state of each folder ``paths`` of the workspace; three processes when all are clean."""
    if not paths:
        return {}
    folders = [path for path in paths if (root / path).is_dir()]
    states = {path: TreeState("") for path in paths}
    if not folders:
        return states
    if repository_of(root) is None:
        import tempfile

        with tempfile.TemporaryDirectory() as scratch:
            git("init", "--quiet", "--bare", "--template=", scratch, cwd=root)
            exclude = Path(scratch, "info", "exclude")
            exclude.parent.mkdir()
            exclude.write_text(_LEFT_BY_INSTALLING)
            place = {"GIT_DIR": scratch, "GIT_WORK_TREE": str(root)}
            return states | {path: TreeState(_content_hash(root, path, place)) for path in folders}
    changed = _changed(root, folders)
    asked = "".join(f"HEAD:./{path}\n" for path in folders)
    answers = git("cat-file", "--batch-check=%(objectname) %(objecttype)", cwd=root, feed=asked).out.splitlines()
    for path, answer in zip(folders, answers):
        digest, _, kind = answer.partition(" ")
        if changed[path] or kind != "tree":
            states[path] = TreeState(_content_in_repository(root, path), tuple(changed[path]))
        else:
            states[path] = TreeState(digest)
    return states


def _changed(root: Path, folders: Sequence[str]) -> dict[str, list[str]]:
    """Files of each folder that differ from HEAD, untracked ones included."""
    arguments = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--", *folders)
    prefix = git("rev-parse", "--show-prefix", cwd=root).out.rstrip("\n")
    changed: dict[str, list[str]] = {path: [] for path in folders}
    for record in git(*arguments, cwd=root).out.split("\0"):
        name = record[3:].removeprefix(prefix)
        for path in folders:
            if name and (name == path or name.startswith(path + "/")):
                changed[path].append(name)
    return changed


def _content_in_repository(root: Path, path: str) -> str:
    """The hash of a changed folder; new objects go to a scratch store, the repository is not written to."""
    import tempfile

    objects = git("rev-parse", "--git-path", "objects", cwd=root).out.rstrip("\n")
    with tempfile.TemporaryDirectory() as scratch:
        place = {
            "GIT_INDEX_FILE": os.path.join(scratch, "index"),
            "GIT_OBJECT_DIRECTORY": os.path.join(scratch, "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.abspath(os.path.join(root, objects)),
        }
        os.mkdir(place["GIT_OBJECT_DIRECTORY"])
        return _content_hash(root, path, place)


def _content_hash(root: Path, path: str, place: dict[str, str]) -> str:
    git("add", "--all", "--", path, cwd=root, extra=place)
    prefix = git("rev-parse", "--show-prefix", cwd=root, extra=place, check=False).out.rstrip("\n")
    arguments = ("write-tree", f"--prefix={prefix}{path}/")
    found = git(*arguments, cwd=root, extra=place, check=False)
    return found.out.strip() if found.code == 0 else ""
