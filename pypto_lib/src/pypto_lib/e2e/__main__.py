"""``python -m pypto_lib.e2e [NAME ...] [--platform P ...]``: the table of all programs; exit status 1 if one fails."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator

from pypto_lib.e2e.catalogue import select
from pypto_lib.e2e.check import Outcome, check_example

PLATFORMS = ("a2a3sim", "a5sim")
_MARK = "PYPTO_E2E "


def serve() -> None:
    """Worker process: one job per input line, one result per output line."""
    for line in sys.stdin:
        name, platform = line.split()
        try:
            outcome = check_example(name, platform)
        except Exception as error:
            outcome = Outcome(name, platform, ok=False, message=f"{type(error).__name__}: {_first_line(error)}")
        print(_MARK + json.dumps(outcome.as_dict()), flush=True)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")[:200]


class WorkerProcess:
    """A process that checks examples; a crash costs the example, not the run."""

    def __init__(self, timeout: float):
        self._timeout = timeout
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pypto_lib.e2e", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors: list[str] = []
        threading.Thread(target=self._drain, args=(self._process.stderr,), daemon=True).start()

    def _drain(self, stream) -> None:
        for line in stream:
            self._errors.append(line)
            del self._errors[:-50]

    def check(self, name: str, platform: str) -> Outcome:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._timeout, process.kill)
        timer.start()
        try:
            process.stdin.write(f"{name} {platform}\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith(_MARK):
                    return Outcome(**json.loads(line[len(_MARK) :]))
        except BrokenPipeError:
            pass
        finally:
            timed_out = not timer.is_alive()
            timer.cancel()
        process.wait()
        reason = f"no end after {self._timeout:g} s" if timed_out else f"the process ended with {process.returncode}"
        last = self._errors[-1].strip() if self._errors else ""
        self._start()
        return Outcome(name, platform, ok=False, message=f"{reason}; {last}"[:200])

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def run_all(jobs: list[tuple[str, str]], processes: int, timeout: float) -> Iterator[Outcome]:
    """Outcomes in order of completion."""
    todo: queue.SimpleQueue = queue.SimpleQueue()
    done: queue.SimpleQueue = queue.SimpleQueue()
    for job in jobs:
        todo.put(job)

    def work() -> None:
        worker = WorkerProcess(timeout)
        while True:
            try:
                name, platform = todo.get_nowait()
            except queue.Empty:
                break
            done.put(worker.check(name, platform))
        worker.close()

    for _ in range(min(processes, len(jobs))):
        threading.Thread(target=work, daemon=True).start()
    for _ in jobs:
        yield done.get()


def print_table(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("program", "platform", "compile", "run", "max error", "torch script", "verdict")
    for item in sorted(outcomes, key=lambda o: (o.name, o.platform)):
        script = "-" if item.script_error is None else f"{item.script_error:.2g}"
        verdict = "[green]ok" if item.ok else f"[red]FAIL[/red] {item.message}"
        table.add_row(
            item.name, item.platform, f"{item.compile_s:.2f} s", f"{item.run_s * 1e3:.2f} ms", f"{item.max_error:.2g}",
            script, verdict,
        )  # fmt: skip
    Console(width=160 if not sys.stdout.isatty() else None).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pypto_lib.e2e", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs or groups; all by default")
    parser.add_argument("--platform", nargs="*", choices=PLATFORMS, default=list(PLATFORMS))
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one program")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    try:
        names = select(options.names)
    except ValueError as error:
        parser.error(str(error))
    jobs = [(name, platform) for name in names for platform in options.platform]
    outcomes = []
    for outcome in run_all(jobs, options.processes, options.timeout):
        outcomes.append(outcome)
        state = "ok  " if outcome.ok else "FAIL"
        print(f"{state} {outcome.platform:8} {outcome.name:32} {outcome.message}", flush=True)
    print_table(outcomes)
    failed = sum(not o.ok for o in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
