"""Read the ``[STRACE]`` timing markers of a log: a tree of spans per run, a table of rounds, or a Chrome trace.

python -m simpler_setup.tools.strace_timing LOG [--rounds-table | --tree | --trace-out FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_MARKER = re.compile(
    r"\[STRACE\] v=1 pid=(?P<pid>\d+) tid=(?P<tid>\d+) inv=(?P<inv>\d+) hid=(?P<hid>\w+) depth=(?P<depth>\d+) "
    r"name=(?P<name>\S+) ts=(?P<ts>\d+) dur=(?P<dur>\d+)(?P<attrs>(?: \w+=\S+)*)"
)
_ROOT = "chip.run"

# The spans of the rounds table by column.
_ROUNDS_TABLE_NAMES = {
    "run": _ROOT,
    "device": f"{_ROOT}.runner_run.device_wall",
    "orch": f"{_ROOT}.runner_run.device_wall.orch",
    "sched": f"{_ROOT}.runner_run.device_wall.sched",
}


@dataclass(frozen=True)
class Span:
    """One marker; times in nanoseconds."""

    pid: int
    tid: int
    inv: int
    hid: str
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, str] = field(default_factory=dict, hash=False)


def parse_spans(lines: Iterable[str] | str) -> list[Span]:
    """All markers of a log, in order of appearance."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    spans = []
    for match in _MARKER.finditer(text):
        attrs = dict(item.split("=", 1) for item in match["attrs"].split())
        pid, tid, inv = (int(match[key]) for key in ("pid", "tid", "inv"))
        place = (int(match["depth"]), match["name"], int(match["ts"]), int(match["dur"]))
        spans.append(Span(pid, tid, inv, match["hid"], *place, attrs))
    return spans


def invocation_spans(spans: Iterable[Span]) -> list[Span]:
    """The spans that belong to chip runs (machine-level scheduling spans carry no run number)."""
    return [span for span in spans if span.name == _ROOT or span.name.startswith(f"{_ROOT}.")]


def group_invocations(spans: Iterable[Span]) -> dict[tuple[int, int], list[Span]]:
    """Spans by (process, run number)."""
    groups: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for span in spans:
        groups[span.pid, span.inv].append(span)
    return dict(groups)


def rounds_table(spans: Iterable[Span]) -> list[dict[str, float]]:
    """One row per run: microseconds of each column of the table, 0 for a span that is absent."""
    rows = []
    for key in sorted(groups := group_invocations(invocation_spans(spans))):
        durations = {span.name: span.dur / 1000 for span in groups[key]}
        rows.append({column: durations.get(name, 0.0) for column, name in _ROUNDS_TABLE_NAMES.items()})
    return rows


def print_rounds_table(spans: Iterable[Span], out=None) -> None:
    out = out or sys.stdout
    out.write("round " + "".join(f"{column + ' us':>14}" for column in _ROUNDS_TABLE_NAMES) + "\n")
    for number, row in enumerate(rounds_table(spans)):
        out.write(f"{number:5} " + "".join(f"{value:14.1f}" for value in row.values()) + "\n")


def print_tree(spans: Iterable[Span], out=None) -> None:
    out = out or sys.stdout
    for (pid, inv), members in sorted(group_invocations(spans).items()):
        out.write(f"run {inv} of process {pid}\n")
        for span in sorted(members, key=lambda span: (span.ts, span.depth)):
            out.write(f"  {'  ' * span.depth}{span.name.rsplit('.', 1)[-1]:<20} {span.dur / 1000:12.1f} us\n")


def to_chrome_trace(spans: Iterable[Span]) -> dict[str, list]:
    events = [
        {"ph": "X", "name": s.name, "pid": s.pid, "tid": s.tid, "ts": s.ts / 1000, "dur": s.dur / 1000, "args": s.attrs}
        for s in spans
    ]
    return {"traceEvents": events}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Read the [STRACE] timing markers of a log.")
    parser.add_argument("log", type=Path)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--rounds-table", action="store_true")
    choice.add_argument("--tree", action="store_true")
    choice.add_argument("--trace-out", type=Path)
    options = parser.parse_args(argv)
    spans = parse_spans(options.log.read_text(errors="replace"))
    if not spans:
        print(f"{options.log} has no [STRACE] markers (run with SIMPLER_STRACE=1)", file=sys.stderr)
        return 1
    if options.trace_out:
        options.trace_out.write_text(json.dumps(to_chrome_trace(spans)))
    elif options.rounds_table:
        print_rounds_table(spans)
    else:
        print_tree(spans)
    return 0


if __name__ == "__main__":
    sys.exit(main())
