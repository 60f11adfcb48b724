"""Running git so that nothing in a checkout can run code, ask a question, or reach the network unasked.

Every command gets its settings through the environment: hooks, the file system monitor and automatic maintenance are
off, protocols are closed unless the command is a transfer, and only the checkout at hand is a safe directory.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError
from ptows.redact import redact

_TRANSPORTS = ("http", "https", "ssh", "git", "file")
#: Variables of the caller that stay: how to reach remotes and who commits. The rest of GIT_* could redirect us.
_KEPT = re.compile(
    r"GIT_(SSH|SSH_COMMAND|SSH_VARIANT|ASKPASS|PROXY_SSL.*|SSL_.*|HTTP_.*|EXEC_PATH|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM))"
)
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "advice.detachedHead": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "fetch.prune": "false",
    "fetch.writeCommitGraph": "false",
    "protocol.ext.allow": "never",
}
_PROGRESS = re.compile(
    r"(Receiving objects|Resolving deltas|Updating files|Counting objects|Compressing objects):\s+(\d+)%"
)
#: What git says, and what helps.
_HINTS = (
    (
        re.compile(r"could not resolve host|unable to (connect|look up)|connection (refused|timed out)", re.IGNORECASE),
        "check the network and the URL, then sync again",
    ),
    (
        re.compile(r"terminal prompts disabled|authentication failed|permission denied \(publickey", re.IGNORECASE),
        "set up a credential helper or an SSH key (git help credentials), then sync again",
    ),
    (
        re.compile(r"repository '?.*'? (does not exist|not found)|does not appear to be a git repo", re.IGNORECASE),
        "check the URL in the manifest, and that you may read it",
    ),
)
#: Seconds without a word from a transfer after which its remote counts as dead.
STALL_SECONDS = float(os.environ.get("PTOWS_STALL_SECONDS", "120"))

Progress = Callable[[str, int], None]


class GitError(PtowsError):
    """git ended with an error. The message is git's own last words, without credentials."""

    def __init__(self, arguments: Sequence[str], code: int, output: str, folder: Path | None = None) -> None:
        words = [line.strip() for line in redact(output).replace("\r", "\n").splitlines() if line.strip()]
        fatal = [line for line in words if line.startswith(("fatal:", "error:"))]
        shown = "; ".join((fatal or words)[:3]) or f"git {arguments[0]} ended with {code}"
        shown = re.sub(r"\b(?:fatal|error): ", "", shown)
        if folder is not None and _is_full(folder):
            super().__init__(f"{shown} (no space left on the disk)", "make room, then sync again")
        else:
            super().__init__(shown, next((hint for pattern, hint in _HINTS if pattern.search(output)), ""))
        self.code = code
        self.output = output


def _is_full(folder: Path) -> bool:
    """Git does not always say why it could not write a file."""
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


class Cancelled(PtowsError):
    """The user interrupted while git was running."""

    exit_code = 130


class StalledError(PtowsError):
    """A transfer said nothing for too long."""


@dataclass(frozen=True)
class Result:
    """What a command printed."""

    code: int
    out: str


def environment(folder: Path, *, network: bool = False, local_files: bool = True) -> dict[str, str]:
    """The environment of a git command in ``folder``.

    Args:
        network: transports are allowed; otherwise every one is closed.
        local_files: with ``network``, whether ``file://`` and paths count as transports.
    """
    result = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _KEPT.fullmatch(key)}
    settings = dict(_SETTINGS)
    settings["safe.directory"] = str(folder)
    for name in _TRANSPORTS:
        is_open = network and (local_files or name != "file")
        settings[f"protocol.{name}.allow"] = "always" if is_open else "never"
    result["GIT_CONFIG_COUNT"] = str(len(settings))
    for index, (key, value) in enumerate(settings.items()):
        result[f"GIT_CONFIG_KEY_{index}"] = key
        result[f"GIT_CONFIG_VALUE_{index}"] = value
    result |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "LANGUAGE": ""}
    return result


def git(
    *arguments: str,
    cwd: Path,
    check: bool = True,
    extra: dict[str, str] | None = None,
    keep_open: Sequence[int] = (),
    feed: str | None = None,
) -> Result:
    """Runs a local git command; no transport is open.

    Args:
        keep_open: file descriptors that git inherits, to hold their locks as long as it lives.

    Raises:
        GitError: git failed and ``check`` is set.
    """
    env = environment(cwd)
    if extra:
        env |= extra
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env=env,
            input=None if feed is None else os.fsencode(feed),
            stdin=subprocess.DEVNULL if feed is None else None,
            capture_output=True,
            pass_fds=tuple(keep_open),
            # Not in our process group: Ctrl-C must not stop a checkout half-way.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise _no_git(cwd) from None
    if check and done.returncode:
        raise GitError(arguments, done.returncode, os.fsdecode(done.stderr or done.stdout), cwd)
    return Result(done.returncode, os.fsdecode(done.stdout))


def _no_git(cwd: Path) -> PtowsError:
    if not cwd.is_dir():
        return PtowsError(f"the folder {cwd} does not exist")
    return PtowsError("git is not installed", "install git 2.31 or newer")


def transfer(
    *arguments: str,
    cwd: Path,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
    local_files: bool = True,
) -> None:
    """Runs a git command that may use the network, following its progress.

    Raises:
        GitError: git failed.
        StalledError: it said nothing for ``STALL_SECONDS``.
        Cancelled: ``stop`` was set.
    """
    try:
        process = subprocess.Popen(
            ["git", *arguments],
            cwd=cwd,
            env=environment(cwd, network=True, local_files=local_files),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise _no_git(cwd) from None
    try:
        said = _follow(process, stop, progress)
    except BaseException:
        _kill(process)
        raise
    if process.wait():
        raise GitError(arguments, process.returncode, said, cwd)


def transfer_output(*arguments: str, cwd: Path) -> str:
    """What a short command that asks a remote prints.

    Raises:
        GitError: git failed.
        StalledError: no answer within ``STALL_SECONDS``.
    """
    env = environment(cwd, network=True)
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=STALL_SECONDS,
        )
    except FileNotFoundError:
        raise _no_git(cwd) from None
    except subprocess.TimeoutExpired:
        raise StalledError(f"the remote said nothing for {STALL_SECONDS:g} s") from None
    if done.returncode:
        raise GitError(arguments, done.returncode, os.fsdecode(done.stderr))
    return os.fsdecode(done.stdout)


def _follow(process: subprocess.Popen[bytes], stop: threading.Event | None, progress: Progress | None) -> str:
    """Reads what the command says until it ends; the last 8 kB of it."""
    assert process.stderr is not None
    stream = process.stderr.fileno()
    said = b""
    heard = time.monotonic()
    with process.stderr, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if stop is not None and stop.is_set():
                raise Cancelled("interrupted")
            if selector.select(timeout=0.2):
                data = os.read(stream, 65536)
                if not data:
                    return os.fsdecode(said)
                heard = time.monotonic()
                said = (said + data)[-8192:]
                if progress is not None and (found := _PROGRESS.findall(os.fsdecode(data))):
                    progress(found[-1][0], int(found[-1][1]))
            elif time.monotonic() - heard > STALL_SECONDS:
                raise StalledError(f"the remote said nothing for {STALL_SECONDS:g} s")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the command and the helpers it started."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        process.wait()
