"""``ptows sync``."""

from __future__ import annotations

from typing import Annotated

import typer

from ptows.commands.context import Entries, Groups, Jobs, Json, state_of
from ptows.output.console import Console


def sync(
    context: typer.Context,
    names: Entries = None,
    locked: Annotated[bool, typer.Option("--locked", help="Fail, changing nothing, unless the lock matches.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Use no network.")] = False,
    jobs: Jobs = 0,
    no_install: Annotated[bool, typer.Option("--no-install", help="Leave the Python environment alone.")] = False,
    groups: Groups = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    json: Json = False,
) -> None:
    """Make the checkout match the manifest: fetch, check out, verify, install, write the lock.

    Entries with local work are left exactly as they are; the rest is synchronised and the exit code is 3.
    """
    from ptows.output.progress import SyncView
    from ptows.sync.run import Options, run

    state = state_of(context, json)
    options = Options(tuple(names or ()), locked, offline, jobs, not no_install, groups, dry_run)
    report = run(state.manifest(), options, SyncView(state.console))
    if state.console.json:
        content = {
            "dry_run": dry_run,
            "nothing_to_do": report.is_quiet,
            "entries": [outcome.to_json() for outcome in report.outcomes],
            "installed": report.installed,
            "lock_written": report.lock_written,
            "errors": report.errors,
            "exit_code": report.exit_code,
        }
        state.console.data("sync", content)
    else:
        _show(state.console, report, dry_run)
    raise typer.Exit(report.exit_code)


def _show(console: Console, report, dry_run: bool) -> None:
    outcomes = report.outcomes
    waiting = [outcome for outcome in outcomes if outcome.state.startswith("would")]
    is_done = report.is_quiet and not waiting
    shown = outcomes if console.verbose else [o for o in outcomes if o.detail or o.state not in ("kept", "verified")]
    if not console.quiet:
        rows = [(o.entry, o.state, o.before[:12], o.after[:12], o.detail) for o in shown]
        console.table(("entry", "state", "was", "is", "note"), rows)
        if is_done:
            many = "1 entry is" if len(outcomes) == 1 else f"{len(outcomes)} entries are"
            console.print(f"nothing to do: {many} as the manifest says")
        if report.installed:
            console.print("installed: " + ", ".join(report.installed))
        if report.lock_written:
            console.print("workspace.lock written")
    for outcome in outcomes:
        if outcome.state in ("failed", "refused", "drift", "missing", "not done"):
            advice = f"\n  {outcome.advice}" if outcome.advice else ""
            console.error(f"{outcome.entry}: {outcome.state}: {outcome.detail}{advice}")
    for error in report.errors:
        console.error(error)
