"""Where compile time goes: nested timed stages, a summary and report files."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_RULE = "=" * 22
_ON = ("1", "true", "yes")
_local = threading.local()


@dataclass
class StageRecord:
    """One timed stage; times are seconds of a monotonic clock, ``end`` is 0 while the stage is open."""

    name: str
    start: float
    end: float = 0.0
    children: list[StageRecord] = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Seconds from start to end, or to now for an open stage; never negative."""
        return max(0.0, (self.end or time.perf_counter()) - self.start)

    def to_dict(self) -> dict[str, Any]:
        """``{"name", "seconds", "children"}``."""
        return {
            "name": self.name,
            "seconds": round(self.duration, 6),
            "children": [child.to_dict() for child in self.children],
        }


class CompileProfiler:
    """Collects stages of the calling thread while it is entered as a context manager."""

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []
        self._open: list[StageRecord] = []
        self._start = 0.0
        self._end = 0.0

    def __enter__(self) -> CompileProfiler:
        self._start, self._end = time.perf_counter(), 0.0
        _stack().append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._end = time.perf_counter()
        stack = _stack()
        if self in stack:
            stack.remove(self)

    @staticmethod
    def current() -> CompileProfiler | None:
        """The innermost profiler entered by this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Time a block as a stage inside the innermost open one."""
        record = self._begin_stage(name)
        try:
            yield record
        finally:
            self._end_stage(record)

    def _begin_stage(self, name: str) -> StageRecord:
        record = StageRecord(name, time.perf_counter())
        self.add_stage_record(record)
        self._open.append(record)
        return record

    def _end_stage(self, record: StageRecord | None = None) -> None:
        """Close ``record`` and every stage left open inside it; the innermost stage when None."""
        now = time.perf_counter()
        while self._open:
            current = self._open.pop()
            current.end = now
            if record is None or current is record:
                return

    def add_stage_record(self, record: StageRecord) -> None:
        """Insert a finished or open record at the current level."""
        (self._open[-1].children if self._open else self.stages).append(record)

    @property
    def total_seconds(self) -> float:
        """Seconds between entering and leaving (or now); the sum of the stages when it was never entered."""
        if self._start:
            return max(0.0, (self._end or time.perf_counter()) - self._start)
        return sum(record.duration for record in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """``{"total_seconds", "stages"}``."""
        return {"total_seconds": round(self.total_seconds, 6), "stages": [record.to_dict() for record in self.stages]}

    def to_json(self, path: str | os.PathLike | None = None, indent: int = 2) -> str:
        """The dictionary as JSON, also written to ``path`` (its directories are created)."""
        text = json.dumps(self.to_dict(), indent=indent)
        if path is not None:
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return text

    def summary(self) -> str:
        """A table of the stages: name, time, share of the total."""
        total = self.total_seconds
        lines = ["PyPTO Compile Profile", _RULE, f"Total: {format_duration(total)}", ""]

        def add(record: StageRecord, depth: int) -> None:
            share = 100.0 * record.duration / total if total > 0 else 0.0
            name = "  " * depth + record.name
            lines.append(f"{name:<28}{format_duration(record.duration):>10}  ({share:5.1f}%)")
            for child in record.children:
                add(child, depth + 1)

        for record in self.stages:
            add(record, 0)
        return "\n".join(lines)

    def write_report(self, directory: str | os.PathLike) -> None:
        """Write ``pipeline_profile.txt`` and ``pipeline_profile.json`` into ``directory``."""
        target = Path(directory)
        target.mkdir(parents=True, exist_ok=True)
        (target / "pipeline_profile.txt").write_text(self.summary() + "\n", encoding="utf-8")
        self.to_json(target / "pipeline_profile.json")


def format_duration(seconds: float) -> str:
    """``123us`` below a millisecond, ``12.3ms`` below a second, else ``2.847s``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}us"
    return f"{seconds * 1e3:.1f}ms" if seconds < 1.0 else f"{seconds:.3f}s"


def _stack() -> list[CompileProfiler]:
    stack = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


_environment_profiler: CompileProfiler | None = None
_environment_lock = threading.Lock()


def get_active_profiler() -> CompileProfiler | None:
    """The profiler entered by this thread, else one for the process when ``PYPTO_COMPILE_PROFILING`` asks for it."""
    global _environment_profiler
    explicit = CompileProfiler.current()
    if explicit is not None:
        return explicit
    if os.environ.get("PYPTO_COMPILE_PROFILING", "").lower() not in _ON:
        return None
    with _environment_lock:
        if _environment_profiler is None:
            _environment_profiler = CompileProfiler()
    return _environment_profiler
