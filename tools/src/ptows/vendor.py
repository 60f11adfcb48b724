"""``ptows vendor``: the content of a tree package against, or replaced by, a revision of the repository it tracks."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError, RefusedError, UsageError
from ptows.git.command import Progress, git, transfer
from ptows.git.overwrite import in_the_way
from ptows.git.transfer import Link
from ptows.git.trees import repository_of, tree_states
from ptows.manifest import Entry, Manifest, is_full_sha
from ptows.redact import redact
from ptows.sync.holding import state_folder
from ptows.sync.plan import some


@dataclass(frozen=True)
class Upstream:
    """A revision of the tracked repository, present in the workspace's own object store."""

    commit: str
    tree: str


def tracked(entry: Entry) -> str:
    """The URL of what a tree package tracks.

    Raises:
        UsageError: the entry is not a tree package that tracks something.
    """
    if entry.is_git or entry.tracks is None:
        raise UsageError(f"'{entry.name}' has no 'tracks'", "vendor works on tree packages that track a repository")
    return entry.tracks.url


def store_of(root: Path, entry: Entry) -> Path:
    """The bare repository that caches what a package tracks."""
    return state_folder(root) / "store" / f"{entry.name}.git"


def bring(manifest: Manifest, entry: Entry, rev: str, progress: Progress = lambda phase, percent: None) -> Upstream:
    """Makes a revision of the tracked repository available to git commands of the workspace.

    A full hash that was brought before needs no network.

    Raises:
        PtowsError: the remote does not have it, or the workspace is in no git repository.
    """
    url = tracked(entry)
    if repository_of(manifest.root) is None:
        raise PtowsError(f"{manifest.root} is in no git repository", "vendoring needs one: git init")
    store = store_of(manifest.root, entry)
    link = Link(threading.Event(), progress)
    if not (store / "HEAD").is_file():
        store.parent.mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", "--bare", "--template=", str(store), cwd=store.parent)
    commit = _commit(store, rev) if is_full_sha(rev) else ""
    if not commit:
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        transfer("fetch", "--progress", "--no-auto-gc", "--", url, *refs, cwd=store, progress=link.progress)
        commit = _commit(store, rev)
    if not commit and is_full_sha(rev):
        transfer("fetch", "--progress", "--no-auto-gc", "--", url, f"{rev}:refs/pins/{rev}", cwd=store)
        commit = _commit(store, rev)
    if not commit:
        raise PtowsError(f"revision '{rev}' does not exist at {redact(url)}", "check its name")
    tree = git("rev-parse", f"{commit}^{{tree}}", cwd=store).out.strip()
    return Upstream(commit, tree)


def _commit(store: Path, rev: str) -> str:
    name = f"{rev}^{{commit}}"
    found = git("rev-parse", "--verify", "--quiet", "--end-of-options", name, cwd=store, check=False)
    return found.out.strip() if found.code == 0 else ""


def _with_store(root: Path, entry: Entry) -> dict[str, str]:
    """Lets git commands of the workspace read the store's objects."""
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(store_of(root, entry) / "objects")}


def pull(manifest: Manifest, entry: Entry, upstream: Upstream) -> list[str]:
    """Replaces the package's files by those of ``upstream`` and stages the change; the files that changed.

    Other staged changes stay staged; ignored files in the folder stay where they are.

    Raises:
        RefusedError: the folder has uncommitted changes, or files are in the way.
    """
    root = manifest.root
    changed = tree_states(root, [entry.path])[entry.path].changed
    if changed:
        raise RefusedError(f"uncommitted changes in {some(changed)}", "commit or discard them, then pull again")
    store = store_of(root, entry)
    # The objects become the repository's own before anything refers to them.
    transfer("fetch", "--quiet", "--no-auto-gc", "--no-tags", "--", str(store), upstream.commit, cwd=root)
    prefix = git("rev-parse", "--show-prefix", cwd=root).out.strip()
    scratch = state_folder(root) / "vendor-index"
    place = {"GIT_INDEX_FILE": str(scratch)}
    try:
        before = git("rev-parse", "HEAD^{tree}", cwd=root).out.strip()
        git("read-tree", before, cwd=root, extra=place)
        git("rm", "--cached", "-r", "--quiet", "--ignore-unmatch", "--", entry.path, cwd=root, extra=place)
        git("read-tree", f"--prefix={prefix}{entry.path}/", upstream.tree, cwd=root, extra=place)
        after = git("write-tree", cwd=root, extra=place).out.strip()
    finally:
        scratch.unlink(missing_ok=True)
    top = Path(git("rev-parse", "--show-toplevel", cwd=root).out.rstrip("\n"))
    if files := in_the_way(top, before, after):
        raise RefusedError(f"untracked files would be overwritten: {some(tuple(files))}", "move them, then pull again")
    git("update-index", "-q", "--refresh", cwd=root, check=False)
    found = git("read-tree", "-m", "-u", before, after, cwd=root, check=False)
    if found.code:
        raise RefusedError("files in the way of the new content", f"look at: git status -- {entry.path}")
    names = git("diff", "--cached", "--name-only", "--no-renames", "-z", "HEAD", "--", entry.path, cwd=root).out
    return [name for name in names.split("\0") if name]


def local_changes(manifest: Manifest, entry: Entry, upstream: Upstream, *, names_only: bool) -> str:
    """The package's present content against the tracked revision, as a patch or as ``status<TAB>name`` lines."""
    present = tree_states(manifest.root, [entry.path])[entry.path]
    extra = _with_store(manifest.root, entry)
    options = ["--name-status"] if names_only else []
    if not present.changed:
        arguments = ("diff", "--no-ext-diff", "--no-textconv", *options, upstream.tree, present.digest)
        return git(*arguments, cwd=manifest.root, extra=extra).out
    # Uncommitted content has no tree object yet: compare through an index that holds the tracked revision there.
    prefix = git("rev-parse", "--show-prefix", cwd=manifest.root).out.strip()
    scratch = state_folder(manifest.root) / "vendor-index"
    place = {**extra, "GIT_INDEX_FILE": str(scratch)}
    try:
        git("read-tree", f"--prefix={prefix}{entry.path}/", upstream.tree, cwd=manifest.root, extra=place)
        git("add", "--intent-to-add", "--", entry.path, cwd=manifest.root, extra=place)
        relative = f"--relative={prefix}{entry.path}/"
        arguments = ("diff", "--no-ext-diff", "--no-textconv", relative, *options, "--", entry.path)
        return git(*arguments, cwd=manifest.root, extra=place).out
    finally:
        scratch.unlink(missing_ok=True)


def stage(root: Path, files: list[str]) -> None:
    """Adds the manifest and the lock to the staged change, unless git ignores them."""
    for file in files:
        git("add", "--", file, cwd=root, check=False)
