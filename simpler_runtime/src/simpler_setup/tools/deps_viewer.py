"""Show a dependency graph (deps.json) as text or as a self-contained HTML page.

python -m simpler_setup.tools.deps_viewer DEPS [--format text|html] [--func-names FILE] [-o OUT] [--show-tensor-info]
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from simpler_setup.tools.name_map import load_names, task_label


def describe_task(task: dict[str, Any], names: dict[int, str]) -> str:
    """``r0t3 name [block_num]``; tasks without kernels are dummies or allocations."""
    ids = [kernel for kernel in task["kernel_ids"] if kernel >= 0]
    what = " + ".join(dict.fromkeys(names.get(kernel, f"func_{kernel}") for kernel in ids)) or "no kernel"
    blocks = f" x{task['block_num']}" if task["block_num"] > 1 else ""
    return f"{task_label(int(task['task_id']))} {what}{blocks}"


def describe_edge(edge: dict[str, Any]) -> str:
    """Why the edge exists."""
    if edge["source"] == "explicit":
        return "explicit"
    overlap = f", {edge['overlap']}" if "overlap" in edge else ""
    return f"arg {edge['arg']}: {edge['source']}{overlap}"


def emit_text(graph: dict[str, Any], names: dict[int, str], *, show_tensors: bool = False) -> str:
    """One block per task: what it waits for and who waits for it."""
    tasks = {task["task_id"]: task for task in graph["tasks"]}
    incoming, outgoing = defaultdict(list), defaultdict(list)
    for edge in graph["edges"]:
        incoming[edge["succ"]].append(edge)
        outgoing[edge["pred"]].append(edge)
    lines = [f"{len(tasks)} tasks, {len(graph['tensors'])} tensors, {len(graph['edges'])} edges", ""]
    for task_id, task in tasks.items():
        lines.append(f"{describe_task(task, names)} ({task['scope']} scope)")
        if show_tensors:
            lines += [
                f"    {arg['type']:15} {arg['dtype']}{arg['shape']} of tensor {arg['tensor_id']}"
                for arg in task["args"]
            ]
        lines += [f"    <- {_name(tasks, names, edge['pred'])}  [{describe_edge(edge)}]" for edge in incoming[task_id]]
        lines += [f"    -> {name}" for name in dict.fromkeys(_name(tasks, names, e["succ"]) for e in outgoing[task_id])]
    return "\n".join(lines) + "\n"


def _name(tasks: dict[str, Any], names: dict[int, str], task_id: str) -> str:
    return describe_task(tasks[task_id], names) if task_id in tasks else task_label(int(task_id))


def emit_html(graph: dict[str, Any], names: dict[int, str], *, show_tensors: bool = False) -> str:
    """A page with the graph drawn in columns by depth; no network access needed."""
    tasks = {task["task_id"]: task for task in graph["tasks"]}
    pairs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for edge in graph["edges"]:
        pairs[edge["pred"], edge["succ"]].append(describe_edge(edge))
    depth: dict[str, int] = {}
    for task_id in tasks:  # submission order: producers come first
        depth[task_id] = max((depth[p] + 1 for p, s in pairs if s == task_id and p in depth), default=0)
    rows: dict[int, int] = defaultdict(int)
    place = {}
    for task_id in tasks:
        place[task_id] = (40 + 260 * depth[task_id], 40 + 70 * rows[depth[task_id]])
        rows[depth[task_id]] += 1
    width, height = 300 + 260 * max(depth.values(), default=0), 100 + 70 * max(rows.values(), default=1)
    parts = []
    for (producer, consumer), reasons in pairs.items():
        if producer not in place or consumer not in place:
            continue
        (x1, y1), (x2, y2) = place[producer], place[consumer]
        path = f"M{x1 + 220},{y1 + 22} C{x1 + 245},{y1 + 22} {x2 - 25},{y2 + 22} {x2},{y2 + 22}"
        parts.append(f'<path d="{path}"><title>{html.escape("; ".join(reasons))}</title></path>')
    for task_id, task in tasks.items():
        x, y = place[task_id]
        details = (
            "\n".join(f"{arg['type']} {arg['dtype']}{arg['shape']}" for arg in task["args"]) if show_tensors else ""
        )
        parts.append(
            f'<g><rect x="{x}" y="{y}" width="220" height="44" rx="6"/><text x="{x + 10}" y="{y + 27}">'
            f"{html.escape(describe_task(task, names))}</text><title>{html.escape(details)}</title></g>"
        )
    return (
        '<!doctype html><meta charset="utf-8"><title>Task graph</title><style>body{font:13px sans-serif}'
        "rect{fill:#eef3fb;stroke:#4a6fa5}path{fill:none;stroke:#888}</style>"
        f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Show a dependency graph (deps.json) as text or HTML.")
    parser.add_argument("deps", type=Path)
    parser.add_argument("--format", choices=["text", "html"], default="text")
    parser.add_argument(
        "--engine", default="dot", help="accepted for compatibility; the page lays the graph out itself"
    )
    parser.add_argument("--func-names", type=Path, help="name map; default: name_map_*.json beside the file")
    parser.add_argument("--show-tensor-info", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="default: standard output, or deps.html for HTML")
    options = parser.parse_args(argv)
    graph = json.loads(options.deps.read_text())
    names, _ = load_names(options.deps, options.func_names)
    emit = emit_html if options.format == "html" else emit_text
    text = emit(graph, names, show_tensors=options.show_tensor_info)
    output = options.output or (options.deps.with_suffix(".html") if options.format == "html" else None)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)
        print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
