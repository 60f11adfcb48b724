"""Command line: write the generated files, or check that they are current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pypto.tools.opdocs import WORKSPACE, outdated, write


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0; 1 when ``--check`` finds an outdated file, 2 when there is no workspace to write to."""
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.opdocs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name the outdated files")
    parser.add_argument("--root", type=Path, default=WORKSPACE, help="root of the workspace")
    options = parser.parse_args(arguments)
    if not (options.root / "pypto" / "pyproject.toml").is_file():
        print(f"error: {options.root} is no workspace with a pypto folder; give one with --root", file=sys.stderr)
        return 2
    if options.check:
        stale = outdated(options.root)
        for path in stale:
            print(f"{path} is out of date; run python -m pypto.tools.opdocs", file=sys.stderr)
        return 1 if stale else 0
    for path in write(options.root):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
