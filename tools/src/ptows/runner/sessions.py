"""Running one nox session in every package that wants it, dependencies first, independent packages in parallel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import UsageError
from ptows.graph import in_order, with_dependencies
from ptows.manifest import Entry, Manifest, Session
from ptows.manifest.model import suggestion
from ptows.sync.workers import stopping

PASSED, FAILED, SKIPPED, NOT_DONE = "passed", "failed", "skipped", "not done"


@dataclass(frozen=True)
class Ended:
    """How one package's session ended. ``detail`` says why it was skipped."""

    name: str
    state: str
    seconds: float = 0.0
    code: int = 0
    detail: str = ""
    output: str = ""


def session_of(manifest: Manifest, name: str) -> Session:
    """The session called ``name``.

    Raises:
        UsageError: the manifest has none, with a suggestion.
    """
    if name not in manifest.sessions:
        raise UsageError(f"no session named '{name}' in the manifest", suggestion(name, manifest.sessions))
    return manifest.sessions[name]


def packages_for(manifest: Manifest, session: Session, names: Sequence[str], affected: set[str] | None) -> list[Entry]:
    """The packages that run, dependencies first.

    Args:
        names: packages asked for; all of the session when empty.
        affected: only these, when given.

    Raises:
        UsageError: a package that is none, or that the session does not cover.
    """
    covered = {entry.name for entry in manifest.packages}
    covered &= covered if session.packages is None else set(session.packages)
    wanted = set()
    for name in names:
        entry = manifest.entry(name)
        if entry.name not in covered:
            hint = "it covers: " + ", ".join(sorted(covered))
            raise UsageError(f"session '{session.name}' does not cover '{entry.name}'", hint)
        wanted.add(entry.name)
    chosen = (wanted or covered) if affected is None else (wanted or covered) & affected
    order = in_order({entry.name: entry.depends for entry in manifest.packages})
    return [manifest.entries[name] for name in order if name in chosen]


def run_graph(
    packages: Sequence[Entry],
    depends: Mapping[str, Sequence[str]],
    action: Callable[[Entry], Ended],
    jobs: int,
    done: Callable[[Ended], None],
    stop: threading.Event,
) -> tuple[list[Ended], bool]:
    """Runs ``action`` for each package once what it depends on has passed; results in the order given.

    A package that failed stops those that depend on it, also through packages that do not run themselves.
    Second answer: whether the user interrupted.
    """
    names = {entry.name for entry in packages}
    needs = {entry.name: (with_dependencies(depends, [entry.name]) & names) - {entry.name} for entry in packages}
    ended: dict[str, Ended] = {}
    running: dict[Future[Ended], str] = {}

    def finish(result: Ended) -> None:
        ended[result.name] = result
        done(result)

    with stopping(stop), ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        while len(ended) < len(packages):
            for entry in packages:
                if entry.name in ended or entry.name in running.values():
                    continue
                bad = [name for name in needs[entry.name] if name in ended and ended[name].state != PASSED]
                if stop.is_set():
                    finish(Ended(entry.name, NOT_DONE, detail="interrupted"))
                elif bad:
                    cause = next((name for name in bad if ended[name].state == FAILED), bad[0])
                    finish(Ended(entry.name, SKIPPED, detail=f"needs '{cause}', which did not pass"))
                elif len(running) < max(1, jobs) and needs[entry.name] <= set(ended):
                    running[pool.submit(action, entry)] = entry.name
            if running:
                finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    del running[future]
                    finish(future.result())
    return [ended[entry.name] for entry in packages], stop.is_set()


def run_command(
    name: str, command: Sequence[str], cwd: Path, log: Path | None, stop: threading.Event, extra: Mapping[str, str]
) -> Ended:
    """Runs one command to its end, keeping what it prints; ``log`` gets a copy."""
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**os.environ, **extra},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Ended(name, FAILED, code=127, output=f"{command[0]}: {error.strerror}\n")
    chunks: list[bytes] = []
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    reader = threading.Thread(target=_copy, args=(pipe, chunks, log), daemon=True)
    reader.start()
    while process.poll() is None:
        if stop.wait(0.05):
            end_group(process)
            break
    process.wait()
    reader.join(timeout=2)
    output = b"".join(chunks).decode("utf-8", "replace")
    state = PASSED if process.returncode == 0 else NOT_DONE if stop.is_set() else FAILED
    return Ended(name, state, time.monotonic() - started, process.returncode, output=output)


def _copy(pipe: int, chunks: list[bytes], log: Path | None) -> None:
    """Collects what comes through a pipe; the log file can be followed meanwhile.

    A log that cannot be written, on a full disk say, must not stop the command: it would wait for its reader.
    """
    stream = None
    with contextlib.suppress(OSError):
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            stream = log.open("wb", buffering=0)
    while data := os.read(pipe, 65536):
        chunks.append(data)
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.write(data)
    if stream is not None:
        stream.close()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and what it started, first politely."""
    import signal

    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=3)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
