"""The dependency graph of the packages: order, cycles, what depends on what, and its drawings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Graph = Mapping[str, Sequence[str]]

FORMATS = ("text", "dot", "mermaid")


def find_cycle(graph: Graph) -> list[str]:
    """Names along one cycle, the first repeated at the end; empty when there is none."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        pending = [(start, False)]
        while pending:
            name, is_leaving = pending.pop()
            if is_leaving:
                path.pop()
                done.add(name)
            elif name in path:
                return [*path[path.index(name) :], name]
            elif name in graph and name not in done:
                path.append(name)
                pending.append((name, True))
                pending += [(needed, False) for needed in reversed(graph[name])]
    return []


def in_order(graph: Graph) -> list[str]:
    """Every name after what it depends on; otherwise in the order given. The graph has no cycle."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in graph and name not in order:
            for needed in graph[name]:
                visit(needed)
            order[name] = None

    for name in graph:
        visit(name)
    return list(order)


def with_dependencies(graph: Graph, names: Iterable[str]) -> set[str]:
    """The names and everything they depend on."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in graph and name not in found:
            found.add(name)
            pending += graph[name]
    return found


def with_dependants(graph: Graph, names: Iterable[str]) -> set[str]:
    """The names and everything that depends on them."""
    reverse: dict[str, list[str]] = {name: [] for name in graph}
    for name, needed in graph.items():
        for other in needed:
            reverse.setdefault(other, []).append(name)
    return with_dependencies(reverse, names)


def draw(graph: Graph, style: str) -> str:
    """The graph as ``text`` (one line per package), Graphviz ``dot`` or ``mermaid``."""
    order = in_order(graph)
    edges = [(name, needed) for name in order for needed in graph[name]]
    if style == "dot":
        lines = ["digraph workspace {", "  rankdir=LR;"]
        lines += [f'  "{name}";' for name in order]
        lines += [f'  "{name}" -> "{needed}";' for name, needed in edges]
        return "\n".join([*lines, "}"])
    if style == "mermaid":
        number = {name: f"n{index}" for index, name in enumerate(order)}
        lines = ["graph LR"] + [f'  {number[name]}["{name}"]' for name in order]
        return "\n".join(lines + [f"  {number[name]} --> {number[needed]}" for name, needed in edges])
    return "\n".join(f"{name} -> {', '.join(graph[name])}" if graph[name] else name for name in order)
