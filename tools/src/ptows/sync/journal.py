"""Working in a checkout so that the next sync can finish what a kill interrupted, without losing the user's work.

Before anything changes, a note is put into the checkout's git folder; before git replaces files, the note says from
which commit to which. The git that replaces files inherits the note's lock: as long as an orphan works there, the lock
is held. The next sync waits for the lock, then looks at each file that differs between the two commits: it must be one
of the two versions, or a started copy of the new one. Anything else was written by the user after the kill, and the
entry is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError, RefusedError
from ptows.git.command import git
from ptows.git.transfer import Link, check_out
from ptows.manifest import Entry

_WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Move:
    """Unfinished work: between two commits, or (``after`` empty) before any file was touched."""

    before: str
    after: str


def _note(path: Path) -> Path:
    return path / ".git" / "ptows-move"


def unfinished(path: Path) -> Move | None:
    """The work that was interrupted in the checkout at ``path``."""
    try:
        data = json.loads(_note(path).read_text(encoding="utf-8"))
        return Move(str(data["before"]), str(data["after"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError):
        # Killed while writing the note: no file was touched yet.
        return Move("", "")


class Journal:
    """The locked note of one checkout."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.is_moving = False

    def write(self, move: Move) -> None:
        data = json.dumps({"before": move.before, "after": move.after}).encode()
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, data, 0)
        self.is_moving = bool(move.after)

    def move(self, entry: Entry, before: str, after: str, link: Link, *, force: bool = False) -> None:
        """Checks ``after`` out in a checkout at ``before`` that was found to hold no local work."""
        self.write(Move(before, after))
        check_out(entry, self.path, after, link, force=force, keep_open=self.descriptor)
        self.is_moving = False


@contextmanager
def working(path: Path) -> Iterator[Journal]:
    """Keeps a note in the checkout while work goes on; it stays when the work fails half-way through the files."""
    descriptor = os.open(_note(path), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor, path)
        journal = Journal(path, descriptor)
        try:
            yield journal
        finally:
            if not journal.is_moving:
                _note(path).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    """Waits for an orphaned git to end."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise PtowsError(f"a git of an interrupted sync still works in {path}", "wait for it to end") from None
            time.sleep(0.05)


def finish(entry: Entry, path: Path, interrupted: Move, link: Link) -> None:
    """Completes interrupted work.

    Raises:
        RefusedError: a file is neither the old nor the new version: somebody worked here since.
    """
    with working(path) as journal:
        # Until the files were looked at, the note must survive every error.
        journal.is_moving = bool(interrupted.after)
        _remove_stale_locks(path / ".git")
        if interrupted.after:
            foreign = _not_ours(path, interrupted)
            if foreign:
                names = ", ".join(f"'{name}'" for name in foreign[:3])
                advice = (
                    f"save what you need of them, then: git checkout --force --detach {interrupted.after[:12]}"
                    " && rm .git/ptows-move"
                )
                raise RefusedError(f"files changed after an interrupted sync: {names}", advice)
            _remove_broken_modules(path / ".git" / "modules")
            journal.move(entry, interrupted.before, interrupted.after, link, force=True)


def _remove_stale_locks(folder: Path) -> None:
    """Removes lock files of a git that was killed with us."""
    locks = [
        Path(parent, name)
        for parent, folders, names in os.walk(folder)
        if "objects" not in Path(parent).relative_to(folder).parts
        for name in names
        if name.endswith(".lock")
    ]
    if not locks:
        return
    first = [_stamp(lock) for lock in locks]
    # A git that somebody runs right now finishes or changes its lock within this time.
    time.sleep(0.5)
    for lock, before in zip(locks, first):
        after = _stamp(lock)
        if after is not None and after != before:
            raise PtowsError(f"another git is working in {folder.parent}", "sync again when it has ended")
        lock.unlink(missing_ok=True)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size


def _remove_broken_modules(folder: Path) -> None:
    """Removes half-cloned submodules: git would take them for complete."""
    if not folder.is_dir():
        return
    for parent, folders, _ in os.walk(folder):
        if "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            if git("rev-parse", "--verify", "--quiet", "HEAD", cwd=Path(parent), check=False).code:
                shutil.rmtree(parent, ignore_errors=True)


def _not_ours(path: Path, interrupted: Move) -> list[str]:
    """Changed files that the interrupted checkout did not write."""
    arguments = ("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", "--raw", "--no-abbrev")
    fields = git(*arguments, interrupted.before, interrupted.after, cwd=path).out.split("\0")[:-1]
    versions = {name: info.split(" ")[2:4] for info, name in zip(fields[0::2], fields[1::2])}
    arguments = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "-z", "HEAD")
    changed = git(*arguments, cwd=path).out.split("\0")
    foreign = [name for name in changed if name and name not in versions]
    foreign += [name for name, (old, new) in versions.items() if not _is_version(path, name, old, new, interrupted)]
    return foreign


def _is_version(path: Path, name: str, old: str, new: str, interrupted: Move) -> bool:
    """Whether the file is gone, one of the two blobs, or the beginning of the new one."""
    full = path / name
    if not os.path.lexists(full) or (full.is_dir() and not full.is_symlink()):
        return True
    if full.is_symlink():
        target = os.readlink(full)
        return any(git("cat-file", "blob", blob, cwd=path).out == target for blob in (old, new) if set(blob) != {"0"})
    if git("hash-object", "--", name, cwd=path).out.strip() in (old, new):
        return True
    if set(new) == {"0"}:
        return False
    wanted = git("cat-file", "--filters", f"{interrupted.after}:{name}", cwd=path).out
    return os.fsencode(wanted).startswith(full.read_bytes())
