"""A public test tree against the installed packages: passed and failed by area.

    python -m pypto_lib.conformance CHECKOUT [AREA ...] [-n JOBS]

CHECKOUT is a work tree with ``tests/ut``; nothing of it is imported but its tests.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def select_files(root: Path, areas: list[str]) -> list[str]:
    """Test files below ``tests/ut``, of the named areas (all when none is named)."""
    files = sorted(p.relative_to(root).as_posix() for p in (root / "tests" / "ut").rglob("test_*.py"))
    return [f for f in files if not areas or any(f.startswith(f"tests/ut/{area}") for area in areas)]


def outcomes(report: Path) -> dict[str, collections.Counter]:
    """Counts by area from a JUnit report."""
    table: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        parts = (case.get("classname") or "").split(".")
        area = "/".join(parts[2:4]) if len(parts) > 3 and parts[2] == "ir" else parts[2] if len(parts) > 2 else "?"
        bad = case.find("failure") is not None or case.find("error") is not None
        state = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
        table[area][state] += 1
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pypto_lib.conformance", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("areas", nargs="*")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, help="test processes")
    options = parser.parse_args()
    files = select_files(options.checkout, options.areas)
    if not files:
        parser.error(f"no test files below {options.checkout}/tests/ut match")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
        command += ["--continue-on-collection-errors", f"--junitxml={report}", "-n", str(options.n), *files]
        subprocess.run(command, cwd=options.checkout, check=False, stdout=subprocess.DEVNULL)
        if not report.exists():
            print("the test run did not start", file=sys.stderr)
            return 1
        table = outcomes(report)
    total: collections.Counter = collections.Counter()
    print(f"{'area':28} {'passed':>7} {'failed':>7} {'skipped':>7}")
    for area, row in sorted(table.items()):
        total.update(row)
        print(f"{area:28} {row['passed']:7} {row['failed']:7} {row['skipped']:7}")
    share = 100 * total["passed"] / max(1, total["passed"] + total["failed"])
    print(f"{'total':28} {total['passed']:7} {total['failed']:7} {total['skipped']:7}   {share:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
