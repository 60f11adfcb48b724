"""The run of ``ptows sync`` as a list of steps, and its report."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from ptows import lock
from ptows.errors import FAILED, INTERRUPTED, OK, REFUSED, PtowsError
from ptows.git.transfer import Link
from ptows.git.trees import TreeState, tree_states
from ptows.graph import in_order, with_dependencies
from ptows.manifest import Entry, Manifest
from ptows.project import Environment, active_environment
from ptows.relock import resolver
from ptows.specifier import matches
from ptows.sync import install
from ptows.sync.entry import Outcome, sync_entry
from ptows.sync.holding import holding, state_folder
from ptows.sync.plan import some
from ptows.sync.workers import default_jobs, in_parallel


@dataclass(frozen=True)
class Options:
    """What the command line asks of a sync."""

    names: tuple[str, ...] = ()
    locked: bool = False
    offline: bool = False
    jobs: int = 0
    install: bool = True
    groups: str = ""
    dry_run: bool = False


class Watcher:
    """Hears how a sync proceeds; the command line shows it, tests do not care."""

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None: ...

    def say(self, text: str) -> None: ...

    def progress(self, entry: Entry, phase: str, percent: int) -> None: ...

    def done(self, entry: Entry, outcome: Outcome) -> None: ...


@dataclass
class Report:
    """What a sync did."""

    outcomes: list[Outcome] = field(default_factory=list)
    installed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lock_written: bool = False
    interrupted: bool = False

    @property
    def is_quiet(self) -> bool:
        """Nothing changed and nothing is wrong."""
        changed = any(outcome.is_change for outcome in self.outcomes)
        return self.exit_code == OK and not changed and not self.installed and not self.lock_written

    @property
    def exit_code(self) -> int:
        states = {outcome.state for outcome in self.outcomes}
        if self.interrupted:
            return INTERRUPTED
        if self.errors or states & {"failed", "drift", "missing", "not done"}:
            return FAILED
        return REFUSED if "refused" in states else OK


def run(manifest: Manifest, options: Options, watcher: Watcher) -> Report:
    """Synchronises the workspace.

    Raises:
        PtowsError: before anything was changed: unknown names, wrong Python, a lock that does not match.
    """
    check_python(manifest)
    chosen = _chosen(manifest, options)
    # A dry run writes nothing, not even the note of who is running.
    with contextlib.nullcontext() if options.dry_run else holding(manifest.root, say=watcher.say):
        trees = tree_states(manifest.root, [e.path for e in manifest.entries.values() if not e.is_git])
        previous, text = lock.read(manifest.root)
        if options.locked:
            _check_locked(manifest, trees, previous, text)
        report = Report()
        _sync_git(manifest, [entry for entry in chosen if entry.is_git], options, watcher, report)
        _verify(manifest, chosen, trees, report)
        if not options.dry_run and not report.interrupted:
            if options.install:
                _install(manifest, chosen, options, watcher, report)
            if not options.locked:
                _write_lock(manifest, trees, previous, text, report)
    return report


def check_python(manifest: Manifest) -> None:
    """Raises a PtowsError when this Python does not satisfy ``requires-python``."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if manifest.requires_python and not matches(version, manifest.requires_python):
        what = f"this is Python {version}; the workspace requires {manifest.requires_python}"
        raise PtowsError(what, "create the environment with another Python")


def _chosen(manifest: Manifest, options: Options) -> list[Entry]:
    """Enabled entries, or the named ones with what they depend on."""
    enabled = manifest.enabled(options.groups)
    if not options.names:
        return enabled
    names = [manifest.entry(name).name for name in options.names]
    graph = {name: entry.depends for name, entry in manifest.entries.items()}
    wanted = with_dependencies(graph, names)
    return [entry for entry in manifest.entries.values() if entry.name in wanted]


def _check_locked(manifest: Manifest, trees: dict[str, TreeState], previous: lock.Locked, text: str) -> None:
    loose = [entry.name for entry in manifest.entries.values() if not entry.is_pinned]
    if loose:
        what = f"--locked needs full commit hashes; not pinned: {', '.join(loose)}"
        raise PtowsError(what, "pin them: ptows pin " + " ".join(loose[:1]))
    if not text:
        raise PtowsError(f"there is no {lock.FILE}", "write it: ptows lock")
    now = lock.compute(manifest, trees, previous)
    found = lock.differences(previous, now)
    for entry in manifest.entries.values():
        if not entry.is_git and trees[entry.path].changed:
            files = trees[entry.path].changed
            found.append(f"{entry.name}: uncommitted changes in {', '.join(files[:3])}")
    if not found and lock.render(now, manifest.name) != text:
        found.append("the text of the file differs")
    if found:
        what = f"{lock.FILE} does not match:\n  " + "\n  ".join(found)
        raise PtowsError(what, "nothing was changed; commit or discard changes, and accept the rest with: ptows lock")


def _sync_git(manifest: Manifest, entries: Sequence[Entry], options: Options, watcher: Watcher, report: Report) -> None:
    stop = threading.Event()

    def work(entry: Entry) -> Outcome:
        link = Link(stop, lambda phase, percent: watcher.progress(entry, phase, percent))
        return sync_entry(entry, manifest.root, link, offline=options.offline, dry_run=options.dry_run)

    with watcher:
        answers, report.interrupted = in_parallel(entries, work, options.jobs or default_jobs(), stop, watcher.done)
    for index, entry in enumerate(entries):
        not_done = Outcome(entry.name, "not done", detail="interrupted", advice="run ptows sync again")
        report.outcomes.append(answers.get(index, not_done))


def _verify(manifest: Manifest, chosen: Sequence[Entry], trees: dict[str, TreeState], report: Report) -> None:
    """Checks that tree packages are there and that every package has the version the manifest pins."""
    for entry in chosen:
        folder = manifest.root / entry.path
        if not entry.is_git and not folder.is_dir():
            detail = f"the folder '{entry.path}' does not exist"
            advice = "restore it, or correct 'path'"
            report.outcomes.append(Outcome(entry.name, "missing", detail=detail, advice=advice))
            continue
        try:
            different = install.drift(entry, manifest.root) if entry.kind == "package" else ""
        except PtowsError as error:
            report.outcomes.append(Outcome(entry.name, "failed", detail=error.message, advice=error.hint))
            continue
        if different:
            report.outcomes.append(Outcome(entry.name, "drift", detail=different, advice=f"ptows pin {entry.name}"))
        elif not entry.is_git:
            state = trees[entry.path]
            detail = f"uncommitted changes in {some(state.changed)}" if state.changed else ""
            report.outcomes.append(Outcome(entry.name, "verified", state.digest, state.digest, detail))


def _install(manifest: Manifest, chosen: Sequence[Entry], options: Options, watcher: Watcher, report: Report) -> None:
    """Installs packages that are present and not current, dependencies first."""
    bad = {outcome.entry for outcome in report.outcomes if outcome.state in ("failed", "missing", "drift")}
    names = {entry.name for entry in chosen if entry.kind == "package"} - bad
    order = in_order({name: entry.depends for name, entry in manifest.entries.items()})
    packages = [manifest.entries[name] for name in order if name in names]
    packages = [entry for entry in packages if (manifest.root / entry.path).is_dir()]
    if not packages:
        return
    environment: Environment = active_environment()
    state = state_folder(manifest.root)
    try:
        items = install.wanted(packages, manifest.root, state, environment)
        if items:
            watcher.say("installing " + ", ".join(f"{item.entry.name} ({item.reason})" for item in items))
            install.install(items, manifest.root, state, environment, options.offline)
            report.installed = [item.entry.name for item in items]
        install.remember(packages, manifest.root, state, environment)
    except KeyboardInterrupt:
        report.interrupted = True
        report.errors.append("installing was interrupted\n  run ptows sync again")
    except PtowsError as error:
        report.errors.append(str(error))
    except OSError as error:
        report.errors.append(f"installing: {error.strerror}: {error.filename}")


def _write_lock(
    manifest: Manifest, trees: dict[str, TreeState], previous: lock.Locked, text: str, report: Report
) -> None:
    try:
        now = lock.render(lock.compute(manifest, trees, previous, resolver(manifest)), manifest.name)
        if now != text:
            lock.write(manifest.root, now)
            report.lock_written = True
    except PtowsError as error:
        report.errors.append(str(error))
