"""``ptows diff``: what was changed in each entry against its pin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptows.git.checkout import identify, resolve
from ptows.git.command import git
from ptows.git.trees import repository_of
from ptows.manifest import Entry

_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames")


@dataclass(frozen=True)
class Difference:
    """Changes of one entry: (status letter, name) of files, the patch, and why there is none."""

    name: str
    against: str
    files: tuple[tuple[str, str], ...] = ()
    patch: str = ""
    note: str = ""


def difference(entry: Entry, root: Path) -> Difference:
    """Local changes, committed or not, against the pin; untracked files have status ``?``.

    A tree package is compared with the last commit of the workspace's repository.
    """
    if not entry.is_git:
        if repository_of(root) is None:
            return Difference(entry.name, "", note="the workspace is in no git repository")
        return _compare(entry, root, "HEAD", root / entry.path)
    path = root / entry.path
    found = identify(path)
    if found.kind != "checkout":
        return Difference(entry.name, entry.rev, note="not checked out")
    if found.code_keys:
        return Difference(entry.name, entry.rev, note=f".git/config could run code: {', '.join(found.code_keys)}")
    commit = resolve(path, entry.rev)
    if not commit:
        return Difference(entry.name, entry.rev, note="the pin is not present; run ptows sync")
    return _compare(entry, root, commit, path)


def _compare(entry: Entry, root: Path, commit: str, path: Path) -> Difference:
    if not path.is_dir():
        return Difference(entry.name, commit, note="the folder does not exist")
    fields = git(*_DIFF, "--relative", "--name-status", "-z", commit, "--", ".", cwd=path).out.split("\0")[:-1]
    files = list(zip(fields[0::2], fields[1::2]))
    others = git("ls-files", "--others", "--exclude-standard", "-z", cwd=path).out.split("\0")
    files += [("?", name) for name in others if name]
    patch = git(
        *_DIFF,
        f"--src-prefix=a/{entry.path}/",
        f"--dst-prefix=b/{entry.path}/",
        "--relative",
        commit,
        "--",
        ".",
        cwd=path,
    )
    return Difference(entry.name, commit, tuple(files), patch.out)
