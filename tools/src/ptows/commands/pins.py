"""Commands that set pins and versions: lock, pin, bump, vendor."""

from __future__ import annotations

from typing import Annotated

import typer

from ptows.commands.context import Json, OneEntry, complete_entry, one_of, state_of


def lock(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the lock is current.")] = False,
    json: Json = False,
) -> None:
    """Recompute workspace.lock without network."""
    from contextlib import nullcontext

    from ptows import lock as lockfile
    from ptows.errors import FAILED
    from ptows.relock import computed
    from ptows.sync.holding import holding

    state = state_of(context, json)
    manifest = state.manifest()
    with nullcontext() if check else holding(manifest.root, say=state.console.note):
        previous, text = lockfile.read(manifest.root)
        now = computed(manifest, previous)
        new_text = lockfile.render(now, manifest.name)
        is_current = new_text == text
        if not check and not is_current:
            lockfile.write(manifest.root, new_text)
    found = lockfile.differences(previous, now)
    if state.console.json:
        content = {"current": is_current, "written": not check and not is_current, "differences": found}
        state.console.data("lock", content)
    elif is_current:
        state.console.print("workspace.lock is current")
    else:
        for line in found:
            state.console.print(line)
        state.console.print("workspace.lock is out of date; run: ptows lock" if check else "workspace.lock written")
    if check and not is_current:
        raise typer.Exit(FAILED)


def pin(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="PKG", help="Name of an entry.", autocompletion=complete_entry, show_default=False)
    ] = "",
    rev: Annotated[str, typer.Argument(metavar="REV", help="A revision; default: what is checked out.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Pin every entry that is present.")] = False,
    json: Json = False,
) -> None:
    """Set the pin of an entry in workspace.yaml, in place, and update the lock.

    Git entries are pinned to a full commit hash. Tree packages are pinned to the version of their pyproject.toml;
    with REV, the revision they track is set.
    """
    from ptows import relock
    from ptows.edit.yaml_text import edit_files
    from ptows.errors import UsageError
    from ptows.pin import choose
    from ptows.sync.holding import holding

    state = state_of(context, json)
    if bool(name) == everything:
        raise UsageError("name an entry, or give --all", "ptows pin PKG [REV] or ptows pin --all")
    with holding(state.root, say=state.console.note):
        manifest = state.manifest()
        pins = choose(manifest, [name] if name else [], rev)
        for item in pins:
            if item.warning:
                state.console.warn(item.warning)
        edit_files(manifest.root, [(item.node, item.after) for item in pins])
        written = relock.update(state.manifest())
    if state.console.json:
        changed = [{"name": p.entry.name, "key": p.key, "before": p.before, "after": p.after} for p in pins]
        state.console.data("pin", {"changed": changed, "lock_written": written})
        return
    for item in pins:
        state.console.print(f"{item.entry.name}: {item.key} {item.before[:40]} -> {item.after[:40]}")
    if not pins:
        state.console.print("nothing to do: the pins are what is checked out")
    if written:
        state.console.print("workspace.lock written")


def _parts(context: typer.Context, incomplete: str) -> list[str]:
    from ptows.bump import PARTS

    return [part for part in PARTS if part.startswith(incomplete)]


def bump(
    context: typer.Context,
    name: OneEntry,
    part: Annotated[
        str, typer.Argument(metavar="PART", help="Which number to raise: major, minor or patch.", autocompletion=_parts)
    ],
    json: Json = False,
) -> None:
    """Raise a package's version in its pyproject.toml, its code, workspace.yaml, and where others require it exactly.

    In the code, a literal __version__ of the package is raised with it.
    """
    from ptows import relock
    from ptows.bump import PARTS, plan_bump
    from ptows.sync.holding import holding

    state = state_of(context, json)
    one_of(part, PARTS, "part of a version")
    with holding(state.root, say=state.console.note):
        manifest = state.manifest()
        planned = plan_bump(manifest, manifest.entry(name), part)
        planned.write()
        written = relock.update(state.manifest())
    files = [path.relative_to(manifest.root).as_posix() for path in planned.texts]
    if state.console.json:
        content = {"name": planned.entry.name, "before": planned.before, "after": planned.after, "files": files}
        state.console.data("bump", {**content, "lock_written": written})
        return
    state.console.print(f"{planned.entry.name}: {planned.before} -> {planned.after}")
    for file in files:
        state.console.print(f"  {file}")
    if written:
        state.console.print("workspace.lock written")


def vendor_pull(
    context: typer.Context,
    name: OneEntry,
    rev: Annotated[str, typer.Option("--rev", metavar="REV", help="A revision of the tracked repository.")],
    json: Json = False,
) -> None:
    """Replace a tree package by the content of its repository at REV, staged as one change with its digest."""
    from ptows import relock, vendor
    from ptows.edit.yaml_text import edit_files
    from ptows.sync.holding import holding

    state = state_of(context, json)
    with holding(state.root, say=state.console.note):
        manifest = state.manifest()
        entry = manifest.entry(name)
        upstream = vendor.bring(manifest, entry, rev)
        files = vendor.pull(manifest, entry, upstream)
        edit_files(manifest.root, [(entry.nodes["tracks.rev"], upstream.commit)])
        relock.update(state.manifest(), {entry.name: upstream.tree})
        vendor.stage(manifest.root, [entry.nodes["tracks.rev"].file, "workspace.lock"])
    if state.console.json:
        content = {"name": entry.name, "rev": upstream.commit, "tree": upstream.tree, "files": files}
        state.console.data("vendor-pull", content)
        return
    state.console.print(
        f"{entry.name}: {len(files)} files changed to {upstream.commit[:12]} (tree {upstream.tree[:12]})"
    )
    state.console.print("the change is staged; look at it with git diff --cached, then commit")


def vendor_diff(
    context: typer.Context,
    name: OneEntry,
    names_only: Annotated[bool, typer.Option("--names", help="Only the names of files.")] = False,
    json: Json = False,
) -> None:
    """Show how a tree package differs from the revision it tracks."""
    from ptows import vendor
    from ptows.sync.holding import holding

    state = state_of(context, json)
    with holding(state.root, say=state.console.note):
        manifest = state.manifest()
        entry = manifest.entry(name)
        vendor.tracked(entry)
        assert entry.tracks is not None
        upstream = vendor.bring(manifest, entry, entry.tracks.rev)
        text = vendor.local_changes(manifest, entry, upstream, names_only=names_only or state.console.json)
    if state.console.json:
        files = [dict(zip(("status", "name"), line.split("\t", 1))) for line in text.splitlines() if "\t" in line]
        state.console.data("vendor-diff", {"name": entry.name, "rev": upstream.commit, "files": files})
    elif text:
        state.console.raw(text.rstrip("\n"))
    else:
        state.console.print(f"{entry.name} equals {upstream.commit[:12]}")
