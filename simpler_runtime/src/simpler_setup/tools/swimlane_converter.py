"""Turn chip_swimlane_records.json into a Chrome trace (chrome://tracing, Perfetto).

python -m simpler_setup.tools.swimlane_converter [RECORDS] [--func-names FILE] [--deps-json FILE] [-o OUT]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from simpler_setup.tools.name_map import load_names, task_label

ORCHESTRATOR, SCHEDULERS, VIEW, WORKERS = 1, 2, 3, 4


def read_perf_data(path: str | Path) -> dict[str, Any]:
    """The records with one entry per kernel call under ``tasks``, times in microseconds from the first event.

    Entries have task_id, func_id, core_id, core_type, ring_id, start_time_us, end_time_us, duration_us and, from level
    2 on, dispatch_time_us and finish_time_us. ``func_id`` is -1 unless a deps.json stands beside the file.
    """
    path = Path(path)
    raw = json.loads(path.read_text())
    metadata = raw["metadata"]
    per_us = metadata["clock_freq_hz"] / 1e6
    finish = {(core, seq): (dispatch, end) for core, seq, dispatch, end in raw.get("aicpu_tasks", ())}
    starts = [record[3] for record in raw["aicore_tasks"]] + [dispatch for dispatch, _ in finish.values()]
    for group in ("aicpu_scheduler_phases", "aicpu_orchestrator_phases"):
        starts += [phase["start_cycles"] for thread in raw.get(group, ()) for phase in thread]
    origin = min(starts, default=0)
    kernels = _kernels_by_task(path.parent / "deps.json")
    tasks = []
    for core, task_id, sequence, start, end, *_ in raw["aicore_tasks"]:
        kind = metadata["core_types"][core]
        entry = {
            "task_id": task_id,
            "func_id": _func_id(kernels.get(task_id), core, kind, metadata),
            "core_id": core,
            "core_type": kind,
            "ring_id": task_id >> 32,
            "start_time_us": (start - origin) / per_us,
            "end_time_us": (end - origin) / per_us,
            "duration_us": (end - start) / per_us,
        }
        if (core, sequence) in finish:
            dispatch, done = finish[core, sequence]
            entry["dispatch_time_us"] = (dispatch - origin) / per_us
            entry["finish_time_us"] = (done - origin) / per_us
        tasks.append(entry)
    result: dict[str, Any] = {"chip_swimlane_level": raw["chip_swimlane_level"], "metadata": metadata, "tasks": tasks}
    for group in ("aicpu_scheduler_phases", "aicpu_orchestrator_phases"):
        if group in raw:
            result[group] = [
                [
                    {
                        **phase,
                        "start_time_us": (phase["start_cycles"] - origin) / per_us,
                        "end_time_us": (phase["end_cycles"] - origin) / per_us,
                    }
                    for phase in thread
                ]
                for thread in raw[group]
            ]
    return result


def _kernels_by_task(deps: Path) -> dict[int, list[int]]:
    if not deps.exists():
        return {}
    return {int(task["task_id"]): task["kernel_ids"] for task in json.loads(deps.read_text())["tasks"]}


def _func_id(kernels: list[int] | None, core: int, kind: str, metadata: dict[str, Any]) -> int:
    if kernels is None:
        return -1
    if kind == "aic":
        return kernels[0]
    cubes = metadata["core_types"].count("aic")
    return kernels[2] if core >= 2 * cubes else kernels[1]


def to_chrome_trace(data: dict[str, Any], names: dict[int, str], deps: Path | None) -> dict[str, Any]:
    """The trace: orchestrator, scheduler threads and workers as processes; arrows between dependent tasks."""
    events: list[dict[str, Any]] = []

    def lane(process: int, thread: int, name: str) -> None:
        events.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}})

    for process, name in ((ORCHESTRATOR, "Orchestrator"), (SCHEDULERS, "Scheduler threads"), (WORKERS, "Workers")):
        events.append({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}})
    kinds = data["metadata"]["core_types"]
    cubes = kinds.count("aic")
    for core in sorted({task["core_id"] for task in data["tasks"]}):
        lane(WORKERS, core, f"AIC_{core}" if kinds[core] == "aic" else f"AIV_{core - cubes}")
    spmd = _spmd_tasks(deps)
    first: dict[int, dict[str, Any]] = {}
    last: dict[int, dict[str, Any]] = {}
    for task in data["tasks"]:
        identity = task["task_id"]
        func = task["func_id"]
        base = names.get(func) if func in names else (f"func_{func}" if func >= 0 else "task")
        if identity in spmd and "spmd" not in str(base):
            base = f"{base}_spmd"
        events.append(
            {
                "ph": "X", "pid": WORKERS, "tid": task["core_id"], "name": f"{base}({task_label(identity)})",
                "ts": task["start_time_us"], "dur": task["duration_us"], "args": {"task_id": identity, "func_id": func},
            }
        )  # fmt: skip
        if identity not in first or task["start_time_us"] < first[identity]["start_time_us"]:
            first[identity] = task
        if identity not in last or task["end_time_us"] > last[identity]["end_time_us"]:
            last[identity] = task
    for process, group in ((SCHEDULERS, "aicpu_scheduler_phases"), (ORCHESTRATOR, "aicpu_orchestrator_phases")):
        for thread, phases in enumerate(data.get(group, ())):
            for phase in phases:
                name = phase.get("kind") or f"submit({task_label(phase['task_id'])})"
                span = phase["end_time_us"] - phase["start_time_us"]
                events.append(
                    {"ph": "X", "pid": process, "tid": thread, "name": name, "ts": phase["start_time_us"], "dur": span}
                )
    for number, (producer, consumer) in enumerate(_edges(deps)):
        if producer not in last or consumer not in first:
            continue
        source, target = last[producer], first[consumer]
        arrow = {"cat": "dependency", "name": "dependency", "id": number, "pid": WORKERS}
        events.append({**arrow, "ph": "s", "tid": source["core_id"], "ts": source["end_time_us"]})
        events.append({**arrow, "ph": "f", "bp": "e", "tid": target["core_id"], "ts": target["start_time_us"]})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _edges(deps: Path | None) -> set[tuple[int, int]]:
    if deps is None or not deps.exists():
        return set()
    return {(int(edge["pred"]), int(edge["succ"])) for edge in json.loads(deps.read_text())["edges"]}


def _spmd_tasks(deps: Path | None) -> set[int]:
    if deps is None or not deps.exists():
        return set()
    return {int(task["task_id"]) for task in json.loads(deps.read_text())["tasks"] if task["block_num"] > 1}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Turn chip_swimlane_records.json into a Chrome trace.")
    parser.add_argument(
        "records", nargs="?", type=Path, help="default: the newest outputs/*/chip_swimlane_records.json"
    )
    parser.add_argument("--func-names", type=Path, help="name map; default: name_map_*.json beside the records")
    parser.add_argument("--deps-json", type=Path, help="default: deps.json beside the records")
    parser.add_argument("-o", "--output", type=Path, help="default: merged_swimlane.json beside the records")
    options = parser.parse_args(argv)
    records = options.records
    if records is None:
        found = sorted(Path("outputs").glob("*/chip_swimlane_records.json"), key=lambda path: path.stat().st_mtime)
        if not found:
            parser.error("no outputs/*/chip_swimlane_records.json here: name the file")
        records = found[-1]
    deps = options.deps_json or records.parent / "deps.json"
    if not deps.exists():
        print(f"no {deps}: the trace has no arrows (run with enable_dep_gen to get it)", file=sys.stderr)
    names, _ = load_names(records, options.func_names)
    output = options.output or records.parent / "merged_swimlane.json"
    output.write_text(json.dumps(to_chrome_trace(read_perf_data(records), names, deps)))
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
