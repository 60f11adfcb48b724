"""A measured figure, its bar and its reference; the printed table and the JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One measured value.

    ``bar`` is the goal of the architecture page in the same unit; times and sizes must stay at or below it, rates
    (``higher=True``) reach it. ``reference`` is the same work done by ``against`` (torch, the machine's peak).
    """

    group: str
    name: str
    value: float
    unit: str
    bar: float | None = None
    higher: bool = False
    reference: float | None = None
    against: str = "torch"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bar is reached; None without a bar."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.higher else self.value <= self.bar

    @property
    def ratio(self) -> float | None:
        """How many times better than the reference; None without one."""
        if not self.reference or not self.value:
            return None
        return self.value / self.reference if self.higher else self.reference / self.value


def number(value: float) -> str:
    """Three significant digits, thousands separated."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def cells(figure: Figure) -> tuple[str, ...]:
    """The columns of one row: name, value, reference, ratio, bar, verdict, note."""
    reference = f"{number(figure.reference)} ({figure.against})" if figure.reference is not None else ""
    ratio = f"{figure.ratio:.2f}x" if figure.ratio is not None else ""
    bar = f"{'>=' if figure.higher else '<='} {number(figure.bar)}" if figure.bar is not None else ""
    verdict = {True: "met", False: "not met", None: ""}[figure.met]
    return figure.name, f"{number(figure.value)} {figure.unit}", reference, ratio, bar, verdict, figure.note


def print_table(group: str, figures: Sequence[Figure]) -> None:
    """The rows of one group."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=group, title_justify="left")
    for column in ("what", "ours", "reference", "ratio", "bar", "verdict", "note"):
        table.add_column(column, justify="right" if column in ("ours", "reference", "ratio", "bar") else "left")
    for figure in figures:
        style = {True: "green", False: "red", None: ""}[figure.met]
        *rest, verdict, note = cells(figure)
        table.add_row(*rest, f"[{style}]{verdict}[/{style}]" if style else verdict, note)
    console = Console()
    Console(width=None if console.is_terminal else 170).print(table)


def write_json(path: Path, figures: Sequence[Figure], machine: dict) -> None:
    """All figures with verdicts, and what they were measured on."""
    rows = [{**asdict(f), "ratio": f.ratio, "met": f.met} for f in figures]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"machine": machine, "figures": rows}, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)
