"""``ptows pin``: which value of the manifest becomes what, and writing it in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptows.errors import PtowsError, UsageError
from ptows.git.checkout import examine, local_commits, resolve
from ptows.git.command import git, transfer_output
from ptows.manifest import Entry, Manifest, is_full_sha
from ptows.manifest.document import Node
from ptows.project import read_project
from ptows.redact import redact


@dataclass(frozen=True)
class Pin:
    """One value to be set: the node in the manifest, what it was and what it becomes."""

    entry: Entry
    key: str
    before: str
    after: str
    warning: str = ""

    @property
    def node(self) -> Node:
        return self.entry.nodes[self.key]


def choose(manifest: Manifest, names: Sequence[str], rev: str) -> list[Pin]:
    """The pins to set.

    Args:
        names: entries; all that are present when empty.
        rev: a revision for the one named entry, or "" for what is checked out.

    Raises:
        UsageError: ``rev`` without one entry.
        PtowsError: nothing to pin to.
    """
    if rev and len(names) != 1:
        raise UsageError("a revision needs exactly one entry", "ptows pin PKG REV")
    found: list[Pin] = []
    for entry in manifest.select(names):
        if not entry.is_git:
            found += _tree_pins(manifest, entry, rev)
        elif names or examine(manifest.root / entry.path).kind == "checkout":
            found += _git_pins(manifest, entry, rev)
    return [pin for pin in found if pin.before != pin.after]


def _tree_pins(manifest: Manifest, entry: Entry, rev: str) -> list[Pin]:
    """A tree package is pinned by its version; a revision moves what it tracks."""
    if rev:
        if entry.tracks is None:
            raise UsageError(f"'{entry.name}' lives in this repository and tracks nothing", "leave the revision out")
        if not is_full_sha(rev):
            raise UsageError(f"'{rev}' is not a full commit hash", "give 40 hexadecimal digits")
        return [Pin(entry, "tracks.rev", entry.tracks.rev, rev)]
    return _version_pins(manifest, entry)


def _version_pins(manifest: Manifest, entry: Entry) -> list[Pin]:
    project = read_project(manifest.root / entry.path)
    if entry.version is None or project is None or not project.version:
        return []
    return [Pin(entry, "version", entry.version, project.version)]


def _git_pins(manifest: Manifest, entry: Entry, rev: str) -> list[Pin]:
    path = manifest.root / entry.path
    found = examine(path)
    is_present = found.kind == "checkout" and bool(found.head)
    warning = ""
    if not rev:
        if not is_present:
            raise PtowsError(f"'{entry.name}' is not checked out", f"ptows sync {entry.name}, or give a revision")
        commit = found.head
        if commit != entry.rev and local_commits(path):
            warning = f"{commit[:12]} of '{entry.name}' is on no remote: others cannot fetch it until it is pushed"
        elif found.dirty:
            warning = f"'{entry.name}' has uncommitted changes; the pin is its last commit"
    else:
        commit = rev if is_full_sha(rev) else ""
        if not commit and is_present:
            commit = resolve(path, rev) or _any_commit(manifest, entry, rev)
        commit = commit or _ask_remote(manifest, entry, rev)
    pins = [Pin(entry, "rev", entry.rev, commit, warning)]
    return pins + (_version_pins(manifest, entry) if not rev and entry.kind == "package" else [])


def _any_commit(manifest: Manifest, entry: Entry, rev: str) -> str:
    """What git understands under ``rev`` in the checkout, such as a short hash or ``HEAD~1``."""
    name = f"{rev}^{{commit}}"
    path = manifest.root / entry.path
    found = git("rev-parse", "--verify", "--quiet", "--end-of-options", name, cwd=path, check=False)
    return found.out.strip() if found.code == 0 else ""


def _ask_remote(manifest: Manifest, entry: Entry, rev: str) -> str:
    """The commit of a branch or tag that is not present here."""
    patterns = (f"refs/heads/{rev}", f"refs/tags/{rev}", f"refs/tags/{rev}^{{}}")
    listing = transfer_output("ls-remote", "--", entry.url, *patterns, cwd=manifest.root)
    found = {name: commit for commit, _, name in (line.partition("\t") for line in listing.splitlines())}
    for name in (patterns[0], patterns[2], patterns[1]):
        if name in found:
            return found[name]
    raise PtowsError(f"no revision '{rev}' of '{entry.name}' here or at {redact(entry.url)}", "check its name")
