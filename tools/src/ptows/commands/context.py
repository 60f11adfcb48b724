"""What every command starts from: the global options, the console, the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptows.output.console import Console

if TYPE_CHECKING:
    from ptows.manifest import Manifest

#: Global options that may also stand after the command's name.
HOISTED = {"--workspace": 1, "--quiet": 0, "-q": 0, "--verbose": 0, "-v": 0}
#: Options of commands whose next word is their value, whatever it looks like: ``--pass -v``.
VALUED = {"--pass", "--jobs", "-j", "--groups", "--affected-since", "--format", "--rev"}
#: Commands whose remaining words belong to other programs.
PASS_THROUGH = ("review",)


@dataclass
class State:
    """The global options, and from them the console and the manifest."""

    workspace: Path | None = None
    console: Console = field(default_factory=Console)

    @property
    def root(self) -> Path:
        from ptows.manifest import find_root

        return self.workspace.absolute() if self.workspace else find_root(Path.cwd())

    def manifest(self) -> Manifest:
        from ptows.manifest import load

        return load(self.root)


def state_of(context: typer.Context, json: bool = False) -> State:
    """The state of this run; ``json`` is the command's own ``--json``."""
    state = context.obj
    assert isinstance(state, State)
    state.console.json = state.console.json or json
    return state


def one_of(word: str, allowed: Sequence[str], what: str) -> None:
    """Raises a UsageError when ``word`` is none of ``allowed``."""
    if word not in allowed:
        from ptows.errors import UsageError
        from ptows.manifest.model import suggestion

        raise UsageError(f"no {what} '{word}'", suggestion(word, allowed))


def hoist(words: Sequence[str]) -> list[str]:
    """The command line with global options moved in front of the command's name.

    Stops at ``--`` and at commands that hand their words to another program.
    """
    front: list[str] = []
    rest: list[str] = []
    words = list(words)
    while words:
        word = words.pop(0)
        name = word.split("=", 1)[0]
        if word == "--" or (word in PASS_THROUGH and not rest):
            return front + rest + [word] + words
        if name in HOISTED:
            front.append(word)
            if HOISTED[name] and "=" not in word and words:
                front.append(words.pop(0))
        else:
            rest.append(word)
            if word in VALUED and words:
                rest.append(words.pop(0))
    return front + rest


def complete_entry(context: typer.Context, incomplete: str) -> list[str]:
    """Names of entries that start with what was typed."""
    return [name for name in _completions("entries") if name.startswith(incomplete)]


def complete_session(context: typer.Context, incomplete: str) -> list[str]:
    """Names of sessions that start with what was typed."""
    return [name for name in _completions("sessions") if name.startswith(incomplete)]


def _completions(what: str) -> list[str]:
    from ptows.errors import PtowsError
    from ptows.manifest import find_root, load

    try:
        return list(getattr(load(find_root(Path.cwd())), what))
    except PtowsError:
        return []


Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Entries = Annotated[
    list[str] | None,
    typer.Argument(metavar="PKG", help="Names of entries; all when none is given.", autocompletion=complete_entry),
]
OneEntry = Annotated[str, typer.Argument(metavar="PKG", help="Name of an entry.", autocompletion=complete_entry)]
Groups = Annotated[str, typer.Option("--groups", metavar="+A,-B", help="Switch groups of entries on and off.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=0, help="How many at once; 0 chooses.")]
