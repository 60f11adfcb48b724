"""Commands that look into entries or run things there: diff, foreach, run, clean, review."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ptows.commands.context import Entries, Groups, Jobs, Json, complete_session, state_of
from ptows.output.console import Console


def diff(
    context: typer.Context,
    names: Entries = None,
    names_only: Annotated[bool, typer.Option("--names", help="Only the names of files.")] = False,
    json: Json = False,
) -> None:
    """Show local changes against the pins."""
    from ptows.diff import difference

    state = state_of(context, json)
    manifest = state.manifest()
    chosen = manifest.select(names) if names else manifest.enabled()
    found = [difference(entry, manifest.root) for entry in chosen]
    if state.console.json:
        entries = [
            {
                "name": item.name,
                "against": item.against,
                "files": [{"status": status, "name": name} for status, name in item.files],
                "note": item.note,
            }
            for item in found
        ]
        state.console.data("diff", {"entries": entries})
        return
    for item in found:
        if item.note:
            state.console.note(f"{item.name}: {item.note}")
        for status, name in item.files:
            if names_only or status == "?":
                state.console.print(f"{status} {manifest.entries[item.name].path}/{name}")
        if item.patch and not names_only:
            state.console.raw(item.patch.rstrip("\n"))


def foreach(
    context: typer.Context,
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD", help="The command; one word with blanks is a shell line.")
    ],
    groups: Groups = "",
    jobs: Jobs = 0,
) -> None:
    """Run a command in every enabled entry that is present, in parallel, with grouped output.

    The command sees PTOWS_NAME, PTOWS_PATH, PTOWS_REV and PTOWS_ROOT. The exit code is that of the first entry, in
    the order of the manifest, whose command failed.
    """
    import threading

    from ptows.errors import INTERRUPTED
    from ptows.runner.sessions import Ended, run_command
    from ptows.sync.workers import default_jobs, in_parallel

    state = state_of(context)
    manifest = state.manifest()
    entries = [entry for entry in manifest.enabled(groups) if (manifest.root / entry.path).is_dir()]
    is_line = len(command) == 1 and any(character.isspace() for character in command[0])
    words = ["/bin/sh", "-c", command[0]] if is_line else list(command)
    stop = threading.Event()

    def work(entry) -> Ended:
        facts = {"NAME": entry.name, "PATH": entry.path, "REV": entry.rev, "ROOT": str(manifest.root)}
        extra = {f"PTOWS_{key}": value for key, value in facts.items()}
        return run_command(entry.name, words, manifest.root / entry.path, None, stop, extra)

    def show(entry, ended: Ended) -> None:
        _show_output(state.console, ended)

    answers, interrupted = in_parallel(entries, work, jobs or default_jobs(), stop, show)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    failed = [answers[index] for index in sorted(answers) if answers[index].code]
    for ended in failed:
        state.console.error(f"{ended.name}: ended with {ended.code}")
    # A command that a signal ended has a negative code; shells add 128 to the signal.
    codes = [code if code > 0 else 128 - code for code in (ended.code for ended in failed)]
    raise typer.Exit(codes[0] if codes else 0)


def _show_output(console: Console, ended) -> None:
    """Everything one entry printed, under its name."""
    sys.stdout.write(console.style(f"== {ended.name}", "bold") + "\n")
    sys.stdout.write(ended.output if not ended.output or ended.output.endswith("\n") else ended.output + "\n")
    sys.stdout.flush()


def run(
    context: typer.Context,
    session: Annotated[str, typer.Argument(metavar="SESSION", autocompletion=complete_session, help="A nox session.")],
    names: Entries = None,
    since: Annotated[str, typer.Option("--affected-since", metavar="REV", help="Only what changed since REV.")] = "",
    jobs: Jobs = 0,
    extra: Annotated[
        list[str] | None, typer.Option("--pass", metavar="ARG", help="An argument for the session.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run.")] = False,
    json: Json = False,
) -> None:
    """Run a nox session per package, dependencies first, independent packages in parallel.

    A package that fails stops only the packages that depend on it.
    """
    from ptows.runner.drive import drive

    state = state_of(context, json)
    raise typer.Exit(drive(state, session, names or [], since, jobs, extra or [], dry_run))


def clean(
    context: typer.Context,
    store: Annotated[bool, typer.Option("--store", help="Compiled programs; repositories and logs of ptows.")] = False,
    builds: Annotated[bool, typer.Option("--builds", help="Results of builds and tests that git ignores.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    json: Json = False,
) -> None:
    """List caches and their sizes; remove those chosen, after asking.

    Without --store or --builds, everything is listed and nothing removed.
    """
    from ptows.clean import find_caches, readable, remove
    from ptows.errors import UsageError
    from ptows.sync.holding import holding

    state = state_of(context, json)
    manifest = state.manifest()
    kinds = {name for name, is_chosen in (("store", store), ("builds", builds)) if is_chosen}
    caches = find_caches(manifest, kinds or {"store", "builds"})
    wants_removal = bool(kinds) and bool(caches)
    if not state.console.json:
        rows = [(cache.kind, readable(cache.size), cache.path) for cache in caches]
        state.console.table(("kind", "size", "path"), rows)
        state.console.print(f"{len(caches)} folders, {readable(sum(cache.size for cache in caches))}")
    if wants_removal and not yes:
        if state.console.json or not sys.stdin.isatty():
            raise UsageError("removing needs a yes", "add --yes")
        typer.confirm("Remove them?", abort=True)
    if wants_removal:
        with holding(manifest.root, say=state.console.note):
            for cache in caches:
                remove(manifest.root, cache)
    if state.console.json:
        lines = [{"kind": cache.kind, "path": cache.path, "bytes": cache.size} for cache in caches]
        state.console.data("clean", {"caches": lines, "removed": wants_removal})


def review(
    context: typer.Context,
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Which script.")] = "",
) -> None:
    """Run one of the review scripts in .github/scripts; everything after COMMAND goes to it."""
    from ptows.review import SCRIPTS, start

    state = state_of(context)
    if not command or command in ("--help", "-h"):
        state.console.print("Usage: ptows review COMMAND [ARGS]...\n")
        for name, (_, what) in SCRIPTS.items():
            state.console.print(f"  {name:<9} {what}")
        return
    start(state.root, command, context.args)
