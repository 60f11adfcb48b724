"""One sync at a time: an advisory lock on the workspace that says who holds it and goes away with its process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ptows.errors import PtowsError

_POLL_SECONDS = 0.1


def state_folder(root: Path) -> Path:
    """``.ptows`` of the workspace, made on first use and ignored by git.

    Raises:
        PtowsError: it cannot be made.
    """
    folder = root / ".ptows"
    try:
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise PtowsError(f"cannot write to {folder}: {error.strerror}", "the workspace must be writable") from None
    return folder


def describe_holder(text: str) -> str:
    """``pid 12 on host`` from the content of the lock file."""
    try:
        data = json.loads(text)
        return f"pid {data['pid']} on {data['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


@contextmanager
def holding(root: Path, *, wait: float = 600.0, say: Callable[[str], None] = lambda text: None) -> Iterator[None]:
    """Holds the workspace, waiting up to ``wait`` seconds for whoever has it.

    The kernel drops the lock with the process, so the file of a killed sync is stale at once and simply taken over.

    Raises:
        PtowsError: still held after ``wait`` seconds, naming the holder.
    """
    path = state_folder(root) / "sync.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise PtowsError(f"cannot open {path}: {error.strerror}", "the workspace must be writable") from None
    try:
        try:
            _acquire(descriptor, path, wait, say)
        except OSError as error:
            raise PtowsError(f"cannot lock {path}: {error.strerror}", "use a file system that has locks") from None
        if path.stat().st_size:
            say(f"taking over the stale lock of {describe_holder(path.read_text(encoding='utf-8'))}")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": os.uname().nodename}).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, wait: float, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + wait
    has_said = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = describe_holder(path.read_text(encoding="utf-8"))
            if time.monotonic() >= deadline:
                raise PtowsError(f"the workspace is being synchronised by {holder}", "wait for it to end") from None
            if not has_said:
                say(f"waiting for the ptows that holds the workspace: {holder}")
                has_said = True
            time.sleep(_POLL_SECONDS)
