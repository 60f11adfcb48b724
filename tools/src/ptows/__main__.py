"""Entry point: runs the command line and turns errors into messages and exit codes."""

from __future__ import annotations

import io
import os
import sys


def main(arguments: list[str] | None = None) -> None:
    """Runs ``ptows`` with ``arguments`` (default: the process's own) and exits."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files may hold bytes that are no text; they become escapes instead of an error.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Runs ``ptows`` and returns its exit code."""
    from ptows.errors import INTERRUPTED, USAGE, PtowsError
    from ptows.output.console import Console

    try:
        # Loading the commands takes most of the start: Ctrl-C may well come here.
        from ptows.commands.app import build
        from ptows.commands.context import hoist

        build()(args=hoist(arguments), prog_name="ptows")
        return 0
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else USAGE if ending.code else 0
    except PtowsError as error:
        Console().error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        Console().error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    main()
