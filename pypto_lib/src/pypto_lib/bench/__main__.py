"""``python -m pypto_lib.bench [GROUP ...]``: measures, prints tables, and writes ``bench/latest.json``."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from pathlib import Path

from pypto_lib.bench.figures import Figure, print_table, write_json
from pypto_lib.bench.measure import Effort, machine

#: Groups in the order of the table, cheap ones first; each is a module with ``figures(effort)``.
GROUPS = {
    "start": "cold and warm start of a first program",
    "tasks": "the task runtime alone",
    "instructions": "tile instructions in cache",
    "compiler": "compile time by stage",
    "kernels": "programs through the whole stack against torch",
}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 even when bars are missed: figures depend on the machine; 1 when a group cannot be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m pypto_lib.bench",
        description=__doc__,
        epilog="groups: " + "; ".join(f"{name} ({text})" for name, text in GROUPS.items()),
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--repeat", type=int, default=5, help="measurements per figure, the median counts")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one measurement: a trial of the machinery")
    parser.add_argument("--json", type=Path, default=Path("bench/latest.json"), help="where the figures are written")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no group {', '.join(map(repr, unknown))}; known: {', '.join(GROUPS)}")
    if options.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {options.repeat}")
    logging.getLogger("pypto").setLevel(logging.WARNING)
    effort, before = Effort(options.repeat, options.quick), machine()
    print(f"{before['processor']}, {before['cores']} cores, load {before['load'][0]}, torch {before['torch']}")
    everything: list[Figure] = []
    failed = 0
    for group in options.groups or GROUPS:
        try:
            found = importlib.import_module(f"pypto_lib.bench.{group}").figures(effort)
        except Exception as error:
            print(f"{group}: not measured: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
            continue
        print_table(f"{group}: {GROUPS[group]}", found)
        everything += found
    judged = [figure.met for figure in everything if figure.met is not None]
    print(f"{sum(judged)} of {len(judged)} bars met; load {machine()['load'][0]} at the end; figures in {options.json}")
    write_json(options.json, everything, before)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
