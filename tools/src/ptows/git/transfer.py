"""Bringing commits from a remote: the first clone, and fetching what an existing checkout lacks."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError
from ptows.git.checkout import PINS, REMOTE, is_branch, resolve
from ptows.git.command import Cancelled, GitError, Progress, StalledError, git, transfer
from ptows.manifest import Entry
from ptows.redact import redact

#: What a cut connection looks like; worth one more attempt.
_CUT = re.compile(
    r"early EOF|hung up|RPC failed|reset by peer|unexpected disconnect|timed out|broken pipe|connection was closed"
    r"|invalid index-pack|bad pack header|transfer closed",
    re.IGNORECASE,
)
_RETRY_SECONDS = 0.5


@dataclass(frozen=True)
class Link:
    """How a worker reports progress and hears that it should stop."""

    stop: threading.Event
    progress: Progress = lambda phase, percent: None


def uses_local_files(url: str) -> bool:
    """Whether ``url`` is a path or ``file://``: only then may submodules come from the file system too."""
    return url.startswith("file://") or ("://" not in url and ":" not in url.split("/", 1)[0])


def _attempt(action: Callable[[], None], stop: threading.Event) -> None:
    """Runs a transfer; once more when the connection was cut."""
    try:
        action()
    except StalledError:
        raise
    except GitError as error:
        if not _CUT.search(error.output) or stop.wait(_RETRY_SECONDS):
            raise
        action()


def temporary_name(path: Path) -> Path:
    """A sibling of ``path`` for an unfinished clone; recognised by :func:`leftovers`."""
    return path.with_name(f".{path.name}.ptows-{os.urandom(4).hex()}.tmp")


def leftovers(path: Path) -> list[Path]:
    """Unfinished clones of ``path`` that an interrupted run left beside it."""
    if not path.parent.is_dir():
        return []
    pattern = re.compile(re.escape(f".{path.name}.ptows-") + r"[0-9a-f]{8}\.tmp")
    return [other for other in path.parent.iterdir() if pattern.fullmatch(other.name)]


def remove_tree(path: Path) -> None:
    """Removes a folder that a dying git may still be writing to."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.1)
    raise PtowsError(f"cannot remove {path}", "remove it by hand")


def clone(entry: Entry, path: Path, link: Link) -> str:
    """Clones ``entry`` beside ``path``, checks its revision out, and renames the result into place.

    Returns:
        The commit checked out.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    arguments = ["clone", "--no-checkout", "--progress", "--origin", REMOTE, "--template=", "--no-recurse-submodules"]
    arguments += ["--config", f"ptows.entry={entry.name}"]
    if entry.depth:
        arguments += [f"--depth={entry.depth}", "--no-single-branch"]
    if entry.filter:
        arguments += [f"--filter={entry.filter}"]
    if entry.depth or entry.filter:
        arguments += ["--no-local"]
    arguments += ["--", entry.url, str(temporary)]
    try:
        _attempt(lambda: transfer(*arguments, cwd=path.parent, stop=link.stop, progress=link.progress), link.stop)
        commit = resolve_or_fetch(entry, temporary, link, is_fresh=True)
        check_out(entry, temporary, commit, link)
        temporary.rename(path)
    except OSError as error:
        raise PtowsError(f"cannot create {path}: {error.strerror}") from None
    finally:
        if temporary.exists():
            remove_tree(temporary)
    return commit


def resolve_or_fetch(entry: Entry, path: Path, link: Link, *, is_fresh: bool = False) -> str:
    """The commit of the entry's revision, fetched when it is missing, or when a branch may have moved on.

    Raises:
        PtowsError: the remote does not have it.
    """
    commit = resolve(path, entry.rev)
    if commit and (is_fresh or entry.is_pinned or not is_branch(path, entry.rev)):
        return commit
    if not is_fresh:
        fetch(path, link)
        commit = resolve(path, entry.rev)
    if not commit:
        commit = _fetch_unadvertised(entry, path, link)
    if not commit:
        what = f"revision '{entry.rev}' does not exist at {redact(entry.url)}"
        raise PtowsError(what, f"correct 'rev' of '{entry.name}' in the manifest")
    return commit


def fetch(path: Path, link: Link, *more: str) -> None:
    """Fetches the branches and tags of the remote, and refspecs in ``more``."""
    arguments = ("fetch", "--progress", "--no-recurse-submodules", "--no-auto-gc", *more)
    _attempt(lambda: transfer(*arguments, cwd=path, stop=link.stop, progress=link.progress), link.stop)


def _fetch_unadvertised(entry: Entry, path: Path, link: Link) -> str:
    """Asks for a commit that no branch or tag names, then deepens a shallow clone in search of it."""
    depth = (f"--depth={entry.depth}",) if entry.depth else ()
    if entry.is_pinned:
        try:
            fetch(path, link, *depth, REMOTE, f"{entry.rev}:{PINS}/{entry.rev}")
            return resolve(path, entry.rev)
        except (Cancelled, StalledError):
            raise
        except GitError as error:
            if _CUT.search(error.output):
                raise
    if (path / ".git" / "shallow").exists():
        fetch(path, link, "--unshallow")
    return resolve(path, entry.rev)


def check_out(entry: Entry, path: Path, commit: str, link: Link, *, force: bool = False, keep_open: int = -1) -> None:
    """Puts the files of ``commit`` and of its submodules in place, with HEAD detached, and keeps the commit alive."""
    git("update-ref", f"{PINS}/{commit}", commit, cwd=path)
    arguments = ["checkout", "--quiet", "--detach", "--no-overwrite-ignore"]
    arguments += ["--force"] if force else []
    if entry.filter:
        # A partial clone fetches the files it needs while checking out.
        transfer(*arguments, commit, cwd=path, stop=link.stop, progress=link.progress)
    else:
        git(*arguments, commit, cwd=path, keep_open=(keep_open,) if keep_open >= 0 else ())
    if entry.submodules and (path / ".gitmodules").is_file():
        local = uses_local_files(entry.url)
        git("submodule", "--quiet", "sync", "--recursive", cwd=path)
        update = ["submodule", "update", "--init", "--recursive", "--checkout", "--progress"]
        update += ["--force"] if force else []
        update += [f"--depth={entry.depth}"] if entry.depth else []
        transfer(*update, cwd=path, stop=link.stop, progress=link.progress, local_files=local)


def set_url(path: Path, entry: Entry) -> None:
    """Points the checkout at the URL of the manifest and records whose it is."""
    git("config", f"remote.{REMOTE}.url", entry.url, cwd=path)
    git("config", f"remote.{REMOTE}.fetch", f"+refs/heads/*:refs/remotes/{REMOTE}/*", cwd=path)
    git("config", "ptows.entry", entry.name, cwd=path)
