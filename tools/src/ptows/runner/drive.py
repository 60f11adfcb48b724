"""``ptows run`` from the choice of packages to the table of results."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptows.errors import FAILED, INTERRUPTED, OK, PtowsError
from ptows.runner import sessions
from ptows.runner.command import find_nox, nox_command
from ptows.runner.sessions import Ended, run_command, run_graph, session_of
from ptows.sync.workers import stopping

if TYPE_CHECKING:
    from ptows.commands.context import State
    from ptows.manifest import Entry, Manifest, Session


def drive(
    state: State, name: str, names: Sequence[str], since: str, jobs: int, extra: Sequence[str], dry_run: bool
) -> int:
    """Runs session ``name`` and returns the exit code."""
    console = state.console
    manifest = state.manifest()
    session = session_of(manifest, name)
    affected = None
    if since:
        from ptows.affected import affected_since

        affected = affected_since(manifest, since)
    packages = sessions.packages_for(manifest, session, names, affected)
    nox = find_nox()
    if nox is None:
        raise PtowsError("nox is not installed", "pip install nox")
    jobs = jobs or max(1, min(len(packages), os.cpu_count() or 1))
    shared = [entry for entry in packages if not (manifest.root / entry.path / "noxfile.py").is_file()]
    if shared and not (manifest.root / "noxfile.py").is_file():
        raise PtowsError(f"there is no noxfile.py in {manifest.root}", "the sessions are defined there")
    commands = {
        entry.name: nox_command(nox, session, entry, manifest.root, extra, prepared=entry in shared)
        for entry in packages
    }
    if dry_run:
        return _tell(state, packages, commands)
    if not packages:
        if console.json:
            console.data("run", {"session": name, "packages": [], "exit_code": OK})
        else:
            console.print("nothing to do: no package is affected" if since else "nothing to do: no packages")
        return OK
    stop = threading.Event()
    if shared:
        _prepare(state, manifest, session, nox, stop)
    logs = manifest.root / ".ptows" / "logs" / name

    def work(entry: Entry) -> Ended:
        facts = {"PTOWS_PACKAGE": entry.name, "PTOWS_PACKAGE_PATH": entry.path}
        log = logs / f"{entry.name}.log"
        console.note(f"{entry.name}: started; progress is in {log.relative_to(manifest.root)}")
        return run_command(entry.name, commands[entry.name], manifest.root, log, stop, facts)

    def done(ended: Ended) -> None:
        if not console.json and ended.output and (not console.quiet or ended.state != sessions.PASSED):
            console.raw(console.style(f"== {ended.name}: {ended.state}", "bold"))
            console.raw(ended.output.rstrip("\n"))

    depends = {entry.name: entry.depends for entry in manifest.packages}
    results, interrupted = run_graph(packages, depends, work, jobs, done, stop)
    code = INTERRUPTED if interrupted else OK if all(r.state == sessions.PASSED for r in results) else FAILED
    if console.json:
        lines = [
            {"name": r.name, "state": r.state, "seconds": round(r.seconds, 3), "code": r.code, "detail": r.detail}
            for r in results
        ]
        console.data("run", {"session": name, "packages": lines, "exit_code": code})
    else:
        rows = [(r.name, r.state, f"{r.seconds:.1f} s" if r.seconds else "", r.detail) for r in results]
        console.table(("package", name, "time", "note"), rows)
    return code


def _tell(state: State, packages: Sequence[Entry], commands: dict[str, list[str]]) -> int:
    if state.console.json:
        lines = [{"name": entry.name, "command": commands[entry.name]} for entry in packages]
        state.console.data("run-plan", {"packages": lines})
    else:
        for entry in packages:
            state.console.print(f"{entry.name}: {shlex.join(commands[entry.name])}")
    return OK


def _prepare(state: State, manifest: Manifest, session: Session, nox: Sequence[str], stop: threading.Event) -> None:
    """Makes the session's shared environment once: packages running at the same time must not install into it."""
    from ptows.sync.holding import state_folder

    log = state_folder(manifest.root) / "logs" / session.name / "environment.log"
    where = log.relative_to(manifest.root)
    state.console.note(f"preparing the environment of session '{session.name}'; progress is in {where}")
    noxfile = str(manifest.root / "noxfile.py")
    # Sessions that insist on arguments get a harmless one: nothing runs, only installs.
    command = [*nox, "--noxfile", noxfile, "--install-only", "--session", session.name, "--", "."]
    with stopping(stop):
        ended = run_command("environment", command, manifest.root, log, stop, {})
    if ended.state == sessions.NOT_DONE:
        raise KeyboardInterrupt
    if ended.state != sessions.PASSED:
        state.console.raw(ended.output.rstrip("\n"))
        raise PtowsError(f"the environment of session '{session.name}' could not be made", f"see {log}")
