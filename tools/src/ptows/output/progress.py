"""How a sync proceeds: one bar per running entry on a terminal, one line per finished entry elsewhere."""

from __future__ import annotations

import threading
from typing import Any

from ptows.manifest import Entry
from ptows.output.console import Console
from ptows.sync.entry import Outcome
from ptows.sync.run import Watcher

#: Git's phases as parts of one bar: (start, share).
_PHASES = {
    "Counting objects": (0, 5),
    "Compressing objects": (5, 5),
    "Receiving objects": (10, 60),
    "Resolving deltas": (70, 20),
    "Updating files": (90, 10),
}
_SPOKEN = ("failed", "refused", "cloned", "moved", "recovered", "url updated", "not done")


class SyncView(Watcher):
    """Shows a sync on the console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars: Any = None
        self.tasks: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.uses_bars = console.is_terminal and not console.quiet and not console.json

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()
            self.bars = None

    def say(self, text: str) -> None:
        if text.startswith(("waiting", "installing")):
            self.console.note(text)
        else:
            self.console.detail(text)

    def progress(self, entry: Entry, phase: str, percent: int) -> None:
        if not self.uses_bars:
            return
        start, share = _PHASES.get(phase, (0, 0))
        with self.lock:
            # Only a transfer shows a bar, so that a sync with nothing to do does not load rich.
            if self.bars is None:
                from rich.console import Console as RichConsole
                from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

                columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[phase]}"))
                terminal = RichConsole(stderr=True)
                self.bars = Progress(*columns, TimeElapsedColumn(), console=terminal, transient=True)
                self.bars.start()
            if entry.name not in self.tasks:
                self.tasks[entry.name] = self.bars.add_task(entry.name, total=100, phase=phase)
            self.bars.update(self.tasks[entry.name], completed=start + share * percent / 100, phase=phase)

    def done(self, entry: Entry, outcome: Outcome) -> None:
        with self.lock:
            if self.bars is not None and entry.name in self.tasks:
                self.bars.remove_task(self.tasks.pop(entry.name))
        if not self.uses_bars and not self.console.json and outcome.state in _SPOKEN:
            self.console.note(f"{entry.name}: {outcome.state}")
