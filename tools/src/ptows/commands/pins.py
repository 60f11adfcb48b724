"""Commands that set pins and versions: lock, pin, bump, vendor."""

from __future__ import annotations

from typing import Annotated

import typer

from ptows.commands.context import Json, state_of


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
