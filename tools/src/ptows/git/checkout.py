"""What is at the path of a git entry: one ``git status`` and a few file reads."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ptows.git.command import git
from ptows.git.config_file import code_running_keys, read_config

REMOTE = "origin"
#: Keeps the commits that sync checked out: they came from the remote even if its branches move on.
PINS = "refs/ptows/pins"
_OPERATIONS = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or am",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
    "sequencer": "a sequence of picks",
}


@dataclass(frozen=True)
class Presence:
    """What a path holds. ``kind``: missing, empty, foreign (``why`` says what), or checkout."""

    kind: str
    why: str = ""
    url: str = ""
    #: entry name written by the clone that made this checkout
    owner: str = ""
    code_keys: tuple[str, ...] = ()
    head: str = ""
    branch: str = ""
    operation: str = ""
    stashes: int = 0
    changed: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    #: submodules whose only change is another commit
    moved_submodules: tuple[str, ...] = ()
    dirty_submodules: tuple[str, ...] = field(default=())

    @property
    def dirty(self) -> tuple[str, ...]:
        """Tracked files that differ from HEAD, staged or not, and submodules that do."""
        return tuple(dict.fromkeys((*self.staged, *self.changed, *self.dirty_submodules, *self.moved_submodules)))


def examine(path: Path, *, untracked: bool = False) -> Presence:
    """Reads the state of ``path`` without changing anything.

    Args:
        untracked: also list untracked files.
    """
    found = identify(path)
    return found if found.kind != "checkout" else _with_status(found, path, untracked)


def identify(path: Path) -> Presence:
    """What is at ``path``, from files alone: no process is started."""
    if path.is_symlink():
        return Presence("foreign", why="a symbolic link")
    if not path.exists():
        return Presence("missing")
    if not path.is_dir():
        return Presence("foreign", why="a file")
    inside = path / ".git"
    if inside.is_file() or inside.is_symlink():
        return Presence("foreign", why="a linked work tree or submodule")
    if not inside.is_dir():
        with os.scandir(path) as members:
            first = next(iter(members), None)
        return Presence("empty") if first is None else Presence("foreign", why=f"files such as '{first.name}'")
    try:
        config = read_config(inside / "config")
    except OSError:
        return Presence("foreign", why="a broken git folder without config")
    if config.get("core.bare", ["false"])[-1].lower() == "true":
        return Presence("foreign", why="a bare git repository")
    return Presence(
        "checkout",
        url=config.get(f"remote.{REMOTE}.url", [""])[-1],
        owner=config.get("ptows.entry", [""])[-1],
        code_keys=tuple(code_running_keys(config)),
        operation=next((words for name, words in _OPERATIONS.items() if (inside / name).exists()), ""),
    )


def _with_status(found: Presence, path: Path, untracked: bool) -> Presence:
    if found.code_keys:
        # Even `git status` may run a configured filter: nothing more is asked of such a checkout.
        return found
    listing = git(
        "status",
        "--porcelain=v2",
        "--branch",
        "--show-stash",
        "--no-renames",
        "--ignore-submodules=none",
        f"--untracked-files={'normal' if untracked else 'no'}",
        "-z",
        cwd=path,
    ).out
    head = branch = ""
    stashes = 0
    changed, staged, others, moved, dirty = [], [], [], [], []
    for record in listing.split("\0"):
        if record.startswith("# branch.oid "):
            head = record[13:]
        elif record.startswith("# branch.head "):
            branch = record[14:]
        elif record.startswith("# stash "):
            stashes = int(record[8:])
        elif record.startswith("1 "):
            _, states, submodule, *_, name = record.split(" ", 8)
            if states[0] != ".":
                staged.append(name)
            elif submodule[0] == "S":
                (dirty if "M" in submodule or "U" in submodule else moved).append(name)
            else:
                changed.append(name)
        elif record.startswith("u "):
            changed.append(record.split(" ", 10)[10])
        elif record.startswith("? "):
            others.append(record[2:])
    return Presence(
        "checkout",
        url=found.url,
        owner=found.owner,
        operation=found.operation,
        head="" if head == "(initial)" else head,
        branch="" if branch == "(detached)" else branch,
        stashes=stashes,
        changed=tuple(changed),
        staged=tuple(staged),
        untracked=tuple(others),
        moved_submodules=tuple(moved),
        dirty_submodules=tuple(dirty),
    )


def resolve(path: Path, rev: str) -> str:
    """The commit that ``rev`` (hash, tag or branch of the remote) names in this checkout; "" when not present."""
    spellings = [rev] if len(rev) in (40, 64) and not set(rev) - set("0123456789abcdef") else []
    spellings = spellings or [f"refs/remotes/{REMOTE}/{rev}", f"refs/tags/{rev}", rev]
    for spelling in spellings:
        name = f"{spelling}^{{commit}}"
        found = git("rev-parse", "--verify", "--quiet", "--end-of-options", name, cwd=path, check=False)
        if found.code == 0:
            return found.out.strip().splitlines()[-1]
    return ""


def is_branch(path: Path, rev: str) -> bool:
    """Whether the remote had a branch of this name when last fetched."""
    return git("rev-parse", "--verify", "--quiet", f"refs/remotes/{REMOTE}/{rev}", cwd=path, check=False).code == 0


def local_commits(path: Path) -> list[str]:
    """Commits of HEAD and of local branches that came from no remote, newest first: ``hash subject``."""
    listing = git(
        "log",
        "--format=%h %s",
        "--max-count=20",
        "HEAD",
        "--branches",
        "--not",
        "--remotes",
        f"--glob={PINS}/*",
        cwd=path,
    )
    return listing.out.splitlines()


def ahead_behind(path: Path, commit: str) -> tuple[int, int] | None:
    """Commits of HEAD that ``commit`` lacks, and the reverse; None when ``commit`` is not present."""
    counts = git("rev-list", "--left-right", "--count", f"HEAD...{commit}", cwd=path, check=False)
    if counts.code:
        return None
    ahead, behind = counts.out.split()
    return int(ahead), int(behind)
