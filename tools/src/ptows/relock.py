"""Computing the lock from what is on this machine, and bringing the file up to date."""

from __future__ import annotations

from collections.abc import Callable

from ptows import lock
from ptows.git.checkout import identify, resolve
from ptows.git.trees import tree_states
from ptows.manifest import Entry, Manifest


def resolver(manifest: Manifest) -> Callable[[Entry], str]:
    """The commit of an unpinned entry, asked of its checkout without network."""

    def find(entry: Entry) -> str:
        path = manifest.root / entry.path
        found = identify(path)
        return resolve(path, entry.rev) if found.kind == "checkout" and not found.code_keys else ""

    return find


def computed(manifest: Manifest, previous: lock.Locked) -> lock.Locked:
    """The lock as it should be now."""
    trees = tree_states(manifest.root, [entry.path for entry in manifest.entries.values() if not entry.is_git])
    return lock.compute(manifest, trees, previous, resolver(manifest))


def update(manifest: Manifest, upstream_trees: dict[str, str] | None = None) -> bool:
    """Writes the lock when it changed; whether it did.

    Args:
        upstream_trees: by entry, the tree hash of the tracked revision, to be recorded.
    """
    previous, text = lock.read(manifest.root)
    now = computed(manifest, previous)
    for name, digest in (upstream_trees or {}).items():
        now[name]["tracks"]["tree"] = digest
    new_text = lock.render(now, manifest.name)
    if new_text != text:
        lock.write(manifest.root, new_text)
    return new_text != text
