"""Kernel names by function id, read from the ``name_map_*.json`` beside a diagnostics file."""

from __future__ import annotations

import json
from pathlib import Path


def load_names(beside: Path, explicit: Path | None = None) -> tuple[dict[int, str], str | None]:
    """Names by function id and the orchestrator's name. Without a map both are empty."""
    path = explicit
    if path is None:
        found = sorted(beside.parent.glob("name_map_*.json"))
        if not found:
            return {}, None
        path = found[-1]
    data = json.loads(path.read_text())
    return {int(key): name for key, name in data.get("callable_id_to_name", {}).items()}, data.get("orchestrator_name")


def task_label(task_id: int) -> str:
    """``r<ring>t<local>``."""
    return f"r{task_id >> 32}t{task_id & 0xFFFFFFFF}"
