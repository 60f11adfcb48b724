"""The command reference as Markdown, made from the commands themselves; ``python -m ptows.commands.reference FILE...``.

Each FILE keeps its text; only what stands between the two markers is replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

BEGIN = "<!-- command reference: begin (python -m ptows.commands.reference writes it) -->"
END = "<!-- command reference: end -->"


def render() -> str:
    """Every command with its usage, its help and a table of its arguments and options."""
    from ptows.commands.app import build

    root: Any = typer.main.get_command(build())
    parts = [_section("ptows", root)]
    for name, command in root.commands.items():
        parts.append(_section(f"ptows {name}", command))
        parts += [_section(f"ptows {name} {sub}", inner) for sub, inner in getattr(command, "commands", {}).items()]
    return "\n".join(parts)


def _section(name: str, command: Any) -> str:
    rows, positional = [], []
    for parameter in command.params:
        if parameter.name in ("help", "install_completion", "show_completion"):
            continue
        what = (getattr(parameter, "help", "") or "").replace("|", "\\|")
        if parameter.param_type_name == "argument":
            label = (parameter.metavar or parameter.name.upper()).strip()
            many = "..." if parameter.nargs == -1 else ""
            positional.append(f"{label}{many}" if parameter.required else f"[{label}{many}]")
        else:
            label = ", ".join(sorted(parameter.opts, key=len, reverse=True))
            label += f" {parameter.metavar}" if parameter.metavar and not parameter.is_flag else ""
        rows.append(f"| `{label}` | {what} |")
    has_options = any(parameter.param_type_name == "option" for parameter in command.params)
    tail = (["[OPTIONS]"] if has_options else []) + (["COMMAND"] if hasattr(command, "commands") else []) + positional
    lines = [f"### `{name}`", "", "```", f"{name} {' '.join(tail)}", "```", "", _paragraphs(command.help or ""), ""]
    if rows:
        lines += ["| argument or option | meaning |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> str:
    """The docstring without its line breaks."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def insert(page: str, reference: str) -> str:
    """``page`` with the reference between the markers.

    Raises:
        ValueError: the markers are missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no markers for the command reference")
    return f"{before}{BEGIN}\n\n{reference}\n{END}{after}"


def main(files: list[str]) -> None:
    """Prints the reference, or writes it into the files."""
    if not files:
        print(render())
    for name in files:
        path = Path(name)
        path.write_text(insert(path.read_text(encoding="utf-8"), render()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
