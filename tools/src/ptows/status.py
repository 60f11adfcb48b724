"""The state of every entry against the manifest, read without network and without changing anything."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ptows.errors import PtowsError
from ptows.git.checkout import ahead_behind, examine, local_commits, resolve
from ptows.git.trees import TreeState, tree_states
from ptows.manifest import Entry, Manifest
from ptows.project import active_environment, install_state, read_project
from ptows.redact import redact
from ptows.sync.install import drift
from ptows.sync.journal import unfinished
from ptows.sync.workers import default_jobs, in_parallel


@dataclass(frozen=True)
class EntryStatus:
    """One entry.

    ``state`` is one of: ok, missing, foreign, dirty, moved (not at its pin), local commits, interrupted, error, off.
    ``ahead`` and ``behind`` count commits against the pin; None when the pin is not present.
    """

    name: str
    kind: str
    source: str
    path: str
    enabled: bool
    state: str
    pin: str
    present: str = ""
    branch: str = ""
    ahead: int | None = None
    behind: int | None = None
    dirty: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    stashes: int = 0
    operation: str = ""
    local_commits: tuple[str, ...] = ()
    drift: str = ""
    installed: str = ""
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def read_status(manifest: Manifest, names: Sequence[str] = (), groups: str = "", jobs: int = 0) -> list[EntryStatus]:
    """The status of the named entries, in manifest order."""
    chosen = manifest.select(names)
    enabled = {entry.name for entry in manifest.enabled(groups)}
    trees = tree_states(manifest.root, [entry.path for entry in chosen if not entry.is_git])
    installed = active_environment().installed()

    def look(entry: Entry) -> EntryStatus:
        try:
            if entry.is_git:
                return _git_status(entry, manifest.root, entry.name in enabled, installed)
            return _tree_status(entry, manifest.root, trees[entry.path], entry.name in enabled, installed)
        except (PtowsError, OSError) as error:
            return _make(entry, entry.name in enabled, "error", detail=redact(str(error)))

    answers, interrupted = in_parallel(chosen, look, jobs or default_jobs(), threading.Event())
    if interrupted:
        raise KeyboardInterrupt
    return [answers[index] for index in range(len(chosen))]


def _make(entry: Entry, enabled: bool, state: str, **values) -> EntryStatus:
    pin = entry.rev if entry.is_git else entry.version or ""
    return EntryStatus(entry.name, entry.kind, entry.source, entry.path, enabled, state, pin, **values)


def _package_facts(entry: Entry, root: Path, installed: dict[str, tuple[str, str]]) -> dict[str, str]:
    if entry.kind != "package":
        return {}
    project = read_project(root / entry.path)
    return {"drift": drift(entry, root), "installed": install_state(root / entry.path, project, installed)}


def _tree_status(
    entry: Entry, root: Path, tree: TreeState, enabled: bool, installed: dict[str, tuple[str, str]]
) -> EntryStatus:
    if not (root / entry.path).is_dir():
        return _make(entry, enabled, "missing", detail=f"the folder '{entry.path}' does not exist")
    state = "dirty" if tree.changed else "ok"
    facts = _package_facts(entry, root, installed)
    return _make(entry, enabled, state, present=tree.digest, dirty=tree.changed, **facts)


def _git_status(entry: Entry, root: Path, enabled: bool, installed: dict[str, tuple[str, str]]) -> EntryStatus:
    path = root / entry.path
    found = examine(path, untracked=True)
    if found.kind in ("missing", "empty"):
        return _make(entry, enabled, "missing" if enabled else "off")
    if found.kind == "foreign":
        return _make(entry, enabled, "foreign", detail=f"holds {found.why}")
    if found.code_keys:
        return _make(entry, enabled, "error", detail=f".git/config could run code: {', '.join(found.code_keys)}")
    if entry.is_pinned and found.head == entry.rev:
        target, counts = found.head, (0, 0)
    else:
        target = resolve(path, entry.rev)
        counts = ahead_behind(path, target) if target and found.head else None
    own = tuple(local_commits(path)) if found.head and found.head != target else ()
    if unfinished(path) is not None:
        state = "interrupted"
    elif found.dirty or found.operation or found.stashes:
        state = "dirty"
    elif own:
        state = "local commits"
    else:
        state = "ok" if target and target == found.head else "moved"
    return _make(
        entry,
        enabled,
        state,
        present=found.head,
        branch=found.branch,
        ahead=counts[0] if counts else None,
        behind=counts[1] if counts else None,
        dirty=found.dirty,
        untracked=found.untracked,
        stashes=found.stashes,
        operation=found.operation,
        local_commits=own,
        **_package_facts(entry, root, installed),
    )
