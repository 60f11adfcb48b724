"""Commands that only look: list, graph, status, doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ptows.commands.context import Entries, Groups, Jobs, Json, one_of, state_of

if TYPE_CHECKING:
    from ptows.status import EntryStatus


def list_entries(context: typer.Context, names: Entries = None, groups: Groups = "", json: Json = False) -> None:
    """List the entries of the manifest."""
    from ptows.redact import redact

    state = state_of(context, json)
    manifest = state.manifest()
    enabled = {entry.name for entry in manifest.enabled(groups)}
    chosen = manifest.select(names or ())
    if state.console.json:
        entries = [
            {
                "name": entry.name,
                "kind": entry.kind,
                "source": entry.source,
                "path": entry.path,
                "version": entry.version,
                "url": redact(entry.url) or None,
                "rev": entry.rev or None,
                "pinned": entry.is_pinned,
                "depends": list(entry.depends),
                "groups": list(entry.groups),
                "enabled": entry.name in enabled,
            }
            for entry in chosen
        ]
        state.console.data("list", {"workspace": manifest.name, "root": str(manifest.root), "entries": entries})
        return
    rows = [
        (
            entry.name,
            entry.kind,
            entry.path,
            entry.rev[:12] if entry.is_git else entry.version or "",
            redact(entry.url) if entry.is_git else "this repository",
            "" if entry.name in enabled else "off",
        )
        for entry in chosen
    ]
    state.console.table(("name", "kind", "path", "pin", "from", "group"), rows)


def _formats(context: typer.Context, incomplete: str) -> list[str]:
    from ptows.graph import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def graph(
    context: typer.Context,
    format: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="How to draw it: text, dot or mermaid.", autocompletion=_formats),
    ] = "text",
    json: Json = False,
) -> None:
    """Show which package depends on which, dependencies first."""
    from ptows.graph import FORMATS, draw, in_order

    state = state_of(context, json)
    one_of(format, FORMATS, "format")
    depends = {entry.name: entry.depends for entry in state.manifest().packages}
    if state.console.json:
        state.console.data("graph", {"order": in_order(depends), "depends": {k: list(v) for k, v in depends.items()}})
    else:
        state.console.print(draw(depends, format))


def status(
    context: typer.Context, names: Entries = None, groups: Groups = "", jobs: Jobs = 0, json: Json = False
) -> None:
    """Compare every entry with its pin: revision, local changes, version, installation. Uses no network."""
    from ptows.status import read_status

    state = state_of(context, json)
    manifest = state.manifest()
    found = read_status(manifest, names or (), groups, jobs)
    if state.console.json:
        content = {"workspace": manifest.name, "entries": [item.to_json() for item in found]}
        state.console.data("status", content)
        return
    shown = [item for item in found if item.state != "off" or state.console.verbose or names]
    rows = [
        (item.name, item.state, item.pin[:12], item.present[:12], _distance(item), item.installed, _note(item))
        for item in shown
    ]
    state.console.table(("entry", "state", "pin", "present", "commits", "installed", "note"), rows)


def _distance(item: EntryStatus) -> str:
    if item.ahead is None or item.behind is None:
        return ""
    words = [f"{count} {word}" for count, word in ((item.ahead, "ahead"), (item.behind, "behind")) if count]
    return ", ".join(words)


def _note(item: EntryStatus) -> str:
    from ptows.sync.plan import some

    notes = [item.detail, item.operation, item.drift]
    if item.dirty:
        notes.append(f"changed: {some(item.dirty)}")
    if item.untracked:
        notes.append(f"untracked: {some(item.untracked)}")
    if item.stashes:
        notes.append(f"stashed: {item.stashes}")
    if item.local_commits:
        notes.append(f"on no remote: {some(item.local_commits, 1)}")
    return "; ".join(note for note in notes if note)


def doctor(context: typer.Context, json: Json = False) -> None:
    """Check this machine: Python, git, C++ compiler, torch, tools, disk. Each line says how to repair it."""
    from ptows.doctor import examine_machine
    from ptows.errors import FAILED, ManifestError

    state = state_of(context, json)
    root = state.root
    problem = None
    try:
        manifest = state.manifest()
    except ManifestError as error:
        manifest, problem = None, error
    checks = list(examine_machine(manifest, root))
    if state.console.json:
        lines = [{"name": c.name, "verdict": c.verdict, "found": c.found, "fix": c.fix} for c in checks]
        state.console.data("doctor", {"checks": lines, "manifest_error": str(problem) if problem else None})
    else:
        rows = [(c.verdict, c.name, c.found, c.fix if c.verdict != "ok" else "") for c in checks]
        state.console.table(("", "what", "found", "repair"), rows)
    if problem is not None:
        raise problem
    if any(check.verdict == "fail" for check in checks):
        raise typer.Exit(FAILED)
