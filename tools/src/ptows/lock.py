"""``workspace.lock``: what every entry resolved to, in bytes that are equal on every machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ptows.errors import PtowsError
from ptows.git.trees import TreeState
from ptows.manifest import Entry, Manifest, is_full_sha
from ptows.redact import without_credentials

FILE = "workspace.lock"
SCHEMA = 1
Locked = dict[str, dict[str, Any]]


def compute(
    manifest: Manifest,
    trees: Mapping[str, TreeState],
    previous: Locked,
    resolve: Callable[[Entry], str] = lambda entry: "",
) -> Locked:
    """The lock of every entry, enabled or not.

    Args:
        trees: state of each tree package by path.
        previous: the lock so far: knows commits of tags and branches that are not checked out here.
        resolve: commit of an unpinned entry in its checkout, "" when it is not there.
    """
    locked: Locked = {}
    for entry in manifest.entries.values():
        before = previous.get(entry.name, {})
        item: dict[str, Any] = {"kind": entry.kind, "path": entry.shared_path, "source": entry.source}
        if entry.version is not None:
            item["version"] = entry.version
        if entry.is_git:
            item["url"] = without_credentials(entry.shared_url)
            item["rev"] = entry.rev
            commit = entry.rev if is_full_sha(entry.rev) else resolve(entry)
            if not commit and before.get("rev") == entry.rev and before.get("url") == item["url"]:
                commit = before.get("commit") or ""
            item["commit"] = commit or None
        else:
            item["tree"] = trees[entry.path].digest or None if entry.path in trees else None
        if entry.tracks is not None:
            url = without_credentials(entry.tracks.shared_url)
            item["tracks"] = {"url": url, "rev": entry.tracks.rev}
            known = before.get("tracks") or {}
            if known.get("rev") == entry.tracks.rev and known.get("url") == url and known.get("tree"):
                item["tracks"]["tree"] = known["tree"]
        locked[entry.name] = item
    return locked


def render(locked: Locked, name: str) -> str:
    """The text of the lock file: sorted, without times or machine names."""
    data = {"lock": SCHEMA, "workspace": name, "entries": locked}
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def read(root: Path) -> tuple[Locked, str]:
    """The locked entries and the text of the lock file; both empty when there is none.

    Raises:
        PtowsError: the file is damaged or of a newer schema.
    """
    path = root / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as error:
        raise PtowsError(f"cannot read {path}: {error}") from None
    try:
        data = json.loads(text)
        schema, entries = data["lock"], data["entries"]
        if isinstance(schema, int) and schema > SCHEMA:
            raise PtowsError(f"{FILE} has schema {schema}; this ptows reads up to {SCHEMA}", "upgrade ptows")
        if not all(isinstance(item, dict) for item in entries.values()):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = f"remove {FILE} and run: ptows lock"
        raise PtowsError(f"{path} is damaged", hint) from None
    return entries, text


def write(root: Path, text: str) -> None:
    """Replaces the lock file in one step.

    Raises:
        PtowsError: it cannot be written.
    """
    path = root / FILE
    temporary = root / ".ptows" / (FILE + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise PtowsError(f"cannot write {path}: {error.strerror}") from None


def differences(before: Locked, after: Locked) -> list[str]:
    """One line per value that differs, for people."""
    lines = []
    for name in dict.fromkeys((*before, *after)):
        if name not in before:
            lines.append(f"{name}: not in the lock")
        elif name not in after:
            lines.append(f"{name}: no longer in the manifest")
        else:
            old, new = before[name], after[name]
            for key in sorted({*old, *new}):
                if old.get(key) != new.get(key):
                    lines.append(f"{name}: {key} is {_short(old.get(key))} in the lock, now {_short(new.get(key))}")
    return lines


def _short(value: object) -> str:
    text = "absent" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text[:12] if is_full_sha(text) else text
