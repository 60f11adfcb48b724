"""The workspace as plain data: what the manifest says, checked, with the place of every value that can be edited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ptows.errors import UsageError
from ptows.manifest.document import Node

_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")


def is_full_sha(rev: str) -> bool:
    """Whether ``rev`` is the only pinned form: a full lower-case commit hash."""
    return _SHA.fullmatch(rev) is not None


def suggestion(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` or, without a near word, what is allowed."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return "allowed here: " + ", ".join(names) if names else ""


@dataclass(frozen=True)
class Tracks:
    """The public revision whose contract a tree package implements."""

    url: str
    rev: str
    shared_url: str = ""


@dataclass(frozen=True)
class Entry:
    """A package or an external checkout.

    ``source`` is ``tree`` (lives in this repository) or ``git`` (checked out from ``url`` at ``rev``).
    ``shared_url`` and ``shared_path`` are what every machine sees: as the manifest has them, without the overrides of
    ``workspace.local.yaml``.
    """

    name: str
    kind: str
    source: str
    path: str
    version: str | None = None
    url: str = ""
    rev: str = ""
    depends: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    tracks: Tracks | None = None
    depth: int | None = None
    filter: str = ""
    submodules: bool = True
    shared_url: str = ""
    shared_path: str = ""
    #: value nodes by key, for in-place edits; ``tracks.rev`` for the nested one
    nodes: Mapping[str, Node] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_git(self) -> bool:
        return self.source == "git"

    @property
    def is_pinned(self) -> bool:
        """Tree entries are pinned by the repository itself."""
        return not self.is_git or is_full_sha(self.rev)


@dataclass(frozen=True)
class Session:
    """A nox session that runs once per package. ``packages`` is None for all; ``args`` None for the default."""

    name: str
    packages: tuple[str, ...] | None
    args: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Tool:
    """A tool that ``doctor`` looks for."""

    name: str
    candidates: tuple[str, ...] = ()
    optional: bool = False
    version: str = ""
    standard: int | None = None


@dataclass(frozen=True)
class Manifest:
    """A workspace. ``entries`` keeps the order of the manifest, packages first."""

    root: Path
    name: str
    requires_python: str
    entries: Mapping[str, Entry]
    groups: Mapping[str, bool]
    tools: Mapping[str, Tool]
    sessions: Mapping[str, Session]
    files: tuple[Path, ...]

    @property
    def packages(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.kind == "package"]

    def entry(self, name: str) -> Entry:
        """The entry called ``name``, or whose path it is.

        Raises:
            UsageError: no such entry, with a suggestion.
        """
        found = self.entries.get(name)
        if found is None:
            wanted = name.rstrip("/")
            found = next((entry for entry in self.entries.values() if entry.path == wanted), None)
        if found is None:
            raise UsageError(f"no entry named '{name}' in {self.root}", suggestion(name, self.entries))
        return found

    def select(self, names: Iterable[str]) -> list[Entry]:
        """The named entries in manifest order; all when no name is given."""
        wanted = {self.entry(name).name for name in names}
        return [entry for entry in self.entries.values() if not wanted or entry.name in wanted]

    def enabled(self, changes: str = "") -> list[Entry]:
        """Entries whose groups are on. ``changes`` is like ``+docs,-reference``.

        Raises:
            UsageError: a group that the manifest does not declare.
        """
        states = dict(self.groups)
        for word in filter(None, (part.strip() for part in changes.split(","))):
            name = word.lstrip("+-")
            if name not in states:
                raise UsageError(f"no group named '{name}'", suggestion(name, states))
            states[name] = not word.startswith("-")
        return [e for e in self.entries.values() if not e.groups or any(states[group] for group in e.groups)]
