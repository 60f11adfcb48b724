"""The command line: every command with its group, and the global options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptows.commands.context import State
from ptows.commands.pins import bump, lock, pin, vendor_diff, vendor_pull
from ptows.commands.reading import doctor, graph, list_entries, status
from ptows.commands.sync import sync
from ptows.commands.words import WordCommand, WordGroup
from ptows.commands.work import clean, diff, foreach, review, run
from ptows.output.console import Console

EPILOG = (
    "Exit codes: 0 done; 1 something failed; 2 wrong usage or bad manifest; 3 refused to protect local work; "
    "130 interrupted."
)


def _show_version(value: bool) -> None:
    if value:
        from ptows import __version__

        typer.echo(f"ptows {__version__}")
        raise typer.Exit()


def _main(
    context: typer.Context,
    workspace: Annotated[
        str,
        typer.Option(
            "--workspace",
            metavar="DIR",
            show_default=False,
            help="The workspace; default: nearest parent with workspace.yaml.",
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Answer as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors and what was asked for.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also what needed no change.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Sync the packages of a workspace, run sessions across them, host the review helpers."""
    context.obj = State(Path(workspace) if workspace else None, Console(quiet=quiet, verbose=verbose, json=json))


def _vendor() -> None:
    """Take the content of tree packages from the repositories they track."""


def build() -> typer.Typer:
    """The application."""
    # Plain help: the rich one would load rich for every --help.
    app = typer.Typer(name="ptows", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(cls=WordGroup, epilog=EPILOG)(_main)
    for function in (sync, status, doctor):
        app.command(cls=WordCommand)(function)
    app.command("list", cls=WordCommand)(list_entries)
    for function in (graph, pin, lock, diff, foreach, run):
        app.command(cls=WordCommand)(function)
    vendor = typer.Typer(name="vendor", no_args_is_help=True, rich_markup_mode=None)
    vendor.callback(cls=WordGroup)(_vendor)
    vendor.command("pull", cls=WordCommand)(vendor_pull)
    vendor.command("diff", cls=WordCommand)(vendor_diff)
    app.add_typer(vendor)
    for function in (bump, clean):
        app.command(cls=WordCommand)(function)
    # Everything after the script's name is the script's, also what looks like an option.
    passing = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
    app.command(cls=WordCommand, context_settings=passing, add_help_option=False)(review)
    return app
