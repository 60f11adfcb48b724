"""Draws well-typed programs as text: kernels on tiles, orchestration with launches, dynamic extents.

Local names are ``v`` and a number, so that a text can be renamed; every number that may be changed without making the
program ill-typed is written by :meth:`Writer.number`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

TENSOR = "pl.Tensor[[{rows}, 64], pl.FP32]"
TILE_SHAPE = "[16, 64]"


class Writer:
    """Lines of one function; ``scalars`` and ``tiles`` are the names in scope."""

    def __init__(self, draw: Callable[[Any], Any], depth: int) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.indent = 2
        self.count = 0
        self.depth = depth
        self.scalars: list[str] = []
        self.tiles: list[str] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def number(self) -> str:
        """A floating-point literal that may be any other."""
        return f"{self.draw(st.integers(1, 9))}.5"

    def scalar(self, depth: int = 2) -> str:
        if depth == 0 or self.draw(st.booleans()):
            return self.pick(*self.scalars, *map(str, (0, 1, 2, 16)))
        left, right = self.scalar(depth - 1), self.scalar(depth - 1)
        operator = self.pick("+", "-", "*", "min", "max")
        return f"pl.{operator}({left}, {right})" if operator.isalpha() else f"({left} {operator} {right})"

    def offset(self) -> str:
        """A row that no rule can prove to be outside."""
        return self.pick(*self.scalars, "0", "16")

    def condition(self) -> str:
        return f"{self.pick(*self.scalars)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.scalar(1)}"

    def block(self, *kinds: Callable[[], None], at_most: int = 3) -> None:
        """A few statements one level deeper; names they define end with the block."""
        scalars, tiles = list(self.scalars), list(self.tiles)
        self.indent += 1
        self.depth -= 1
        for _ in range(self.draw(st.integers(1, at_most))):
            self.pick(*kinds)()
        self.indent -= 1
        self.depth += 1
        self.scalars, self.tiles = scalars, tiles

    def inside(self, text: str) -> None:
        self.indent += 1
        self.line(text)
        self.indent -= 1


class Kernel(Writer):
    """Statements of an InCore function with parameters x, n, k and y."""

    def body(self, rows: str) -> list[str]:
        self.rows = rows
        self.scalars = ["n"]
        self.load()
        self.statements()
        for _ in range(self.draw(st.integers(1, 4))):
            self.pick(*self.kinds())()
        self.line(f"y = pl.store({self.pick(*self.tiles)}, [n, 0], y)")
        self.line("return y")
        return self.lines

    def kinds(self) -> list[Callable[[], None]]:
        simple = [self.assign, self.load, self.statements, self.store, self.padded, self.rows_and_columns]
        return simple if self.depth == 0 else [*simple, self.loop, self.carry, self.branch, self.count_up, self.natural]

    def assign(self) -> None:
        name = self.fresh()
        self.line(f"{name} = {self.scalar()} + n")
        self.scalars.append(name)

    def load(self) -> None:
        name = self.fresh()
        self.line(f"{name} = pl.load(x, [n, 0], {TILE_SHAPE})")
        self.tiles.append(name)

    def expression(self) -> str:
        a, b = self.pick(*self.tiles), self.pick(*self.tiles)
        return self.pick(
            f"pl.add({a}, {b})", f"pl.mul({a}, {self.number()})", f"pl.exp({a})", f"pl.sub({a}, k)",
            f"pl.maximum({a}, {b})", f"pl.add(pl.mul({a}, {b}), {self.number()})", f"pl.neg({a})",
        )  # fmt: skip

    def statements(self) -> None:
        name = self.fresh()
        annotated = self.pick("", f": pl.Tile[{TILE_SHAPE}, pl.FP32]")
        self.line(f"{name}{annotated} = {self.expression()}")
        self.tiles.append(name)

    def store(self) -> None:
        self.line(f"y = pl.store({self.pick(*self.tiles)}, [{self.offset()}, 0], y)")

    def padded(self) -> None:
        partial, full = self.fresh(), self.fresh()
        self.line(f"{partial} = pl.load(x, [n, 0], {TILE_SHAPE}, valid_shape=[{self.pick('n', '5')}, 64])")
        self.line(f"{full} = pl.fillpad({partial}, pl.PadValue.{self.pick('zero', 'min', 'max')})")
        self.line(f"y = pl.store({full}, [n, 0], y)")

    def rows_and_columns(self) -> None:
        source, scratch, peak, result = self.pick(*self.tiles), self.fresh(), self.fresh(), self.fresh()
        self.line(f"{scratch} = pl.create_tile({TILE_SHAPE}, pl.FP32)")
        self.line(f"{peak} = pl.row_max({source}, {scratch})")
        self.line(f"{result} = pl.row_expand_sub({source}, {peak})")
        self.tiles.append(result)

    def loop(self) -> None:
        index = self.fresh()
        head = self.pick(
            f"pl.range({self.scalar(1)})", f"pl.range(0, {self.scalar(1)}, 2)", "pl.pipeline(4, stage=2)",
            "pl.unroll(3)", "pl.parallel(0, n)",
        )  # fmt: skip
        self.line(f"for {index} in {head}:")
        self.scalars.append(index)
        self.block(*self.inner())
        self.scalars.remove(index)

    def inner(self) -> list[Callable[[], None]]:
        self.depth -= 1
        kinds = self.kinds() if self.depth >= 0 else []
        self.depth += 1
        return kinds or [self.assign, self.statements, self.store]

    def carry(self) -> None:
        index, tile, scalar = self.fresh(), self.fresh(), self.fresh()
        after, count = self.fresh(), self.fresh()
        self.line(
            f"for {index}, ({tile}, {scalar}) in pl.range({self.scalar(1)}, "
            f"init_values=({self.pick(*self.tiles)}, {self.pick(*self.scalars)})):"
        )
        self.scalars += [index, scalar]
        self.tiles.append(tile)
        self.block(*self.inner())
        self.inside(f"{after}, {count} = pl.yield_({self.pick(*self.tiles)}, {scalar} + 1)")
        self.scalars = [s for s in self.scalars if s not in (index, scalar)] + [count]
        self.tiles.remove(tile)
        self.tiles.append(after)

    def branch(self) -> None:
        result = self.fresh()
        self.line(f"if {self.condition()}:")
        self.block(*self.inner(), at_most=2)
        self.inside(f"{result} = pl.yield_({self.pick(*self.tiles)})")
        self.line("else:")
        self.inside(f"{result} = pl.yield_({self.pick(*self.tiles)})")
        self.tiles.append(result)

    def natural(self) -> None:
        target = self.pick(*self.tiles)
        self.line(f"if {self.condition()}:")
        self.inside(f"{target} = pl.mul({target}, {self.number()})")

    def count_up(self) -> None:
        scalar, after = self.fresh(), self.fresh()
        self.line(f"for ({scalar},) in pl.while_(init_values=({self.pick(*self.scalars)},)):")
        self.inside(f"pl.cond({scalar} < {self.pick(*self.scalars)})")
        self.inside(f"{after} = pl.yield_({scalar} + {self.pick('1', '2')})")
        self.scalars.append(after)


class Orchestration(Writer):
    """Statements of the entry with parameters x, n and y, launching kernels of one signature."""

    def body(self, kernels: list[str]) -> list[str]:
        self.kernels, self.scalars = kernels, ["n"]
        for _ in range(self.draw(st.integers(1, 4))):
            self.pick(*self.kinds())()
        self.line("return y")
        return self.lines

    def kinds(self) -> list[Callable[[], None]]:
        simple = [self.call, self.assign, self.scratch, self.region]
        return simple if self.depth == 0 else [*simple, self.loop, self.branch, self.scope, self.launch]

    def arguments(self) -> str:
        return f"x, {self.pick(*self.scalars)}, {self.number()}, y"

    def call(self) -> None:
        self.line(f"y = self.{self.pick(*self.kernels)}({self.arguments()})")

    def assign(self) -> None:
        name = self.fresh()
        self.line(f"{name} = {self.scalar()} + n")
        self.scalars.append(name)

    def scratch(self) -> None:
        name = self.fresh()
        self.line(f"{name} = pl.create_tensor([16, 64], dtype=pl.{self.pick('FP32', 'FP16', 'INT32')})")

    def region(self) -> None:
        tile = self.fresh()
        hint = self.pick("", ', name_hint="part"')
        self.line(f"with pl.at(level=pl.Level.CORE_GROUP{hint}):")
        self.inside(f"{tile} = pl.load(x, [{self.offset()}, 0], {TILE_SHAPE})")
        self.inside(f"y = pl.store(pl.mul({tile}, {self.number()}), [0, 0], y)")

    def loop(self) -> None:
        index = self.fresh()
        self.line(f"for {index} in pl.{self.pick('range', 'parallel')}({self.scalar(1)}):")
        self.scalars.append(index)
        self.block(self.call, self.assign, *([self.branch] if self.depth > 1 else []))
        self.scalars.remove(index)

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.block(self.call, self.assign)
        if self.draw(st.booleans()):
            self.line("else:")
            self.block(self.call)

    def scope(self) -> None:
        self.line("with pl.manual_scope():")
        tasks: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            task = self.fresh()
            chosen = [t for t in tasks if self.draw(st.booleans())]
            deps = f", deps=[{', '.join(chosen)}]" if chosen else ""
            self.inside(f"y, {task} = pl.submit(self.{self.pick(*self.kernels)}, {self.arguments()}{deps})")
            tasks.append(task)

    def launch(self) -> None:
        self.line(f"with pl.spmd({self.pick('2', '4')}):")
        self.inside(f"y = self.{self.pick(*self.kernels)}({self.arguments()})")


@st.composite
def program_texts(draw: Any, depth: int = 2) -> str:
    """The text of a program with one or two kernels and an entry."""
    rows = draw(st.sampled_from(("128", "R")))
    tensor = TENSOR.format(rows=rows)
    kernels = [f"kernel{i}" for i in range(draw(st.integers(1, 2)))]
    lines = ["import pypto.language as pl", "", *(['R = pl.dynamic("R")'] if rows == "R" else []), "", "@pl.program"]
    lines.append("class Drawn:")
    for name in kernels:
        lines.append("    @pl.function(type=pl.FunctionType.InCore)")
        scalars = "n: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.FP32]"
        lines.append(f"    def {name}(self, x: {tensor}, {scalars}, y: pl.Out[{tensor}]) -> {tensor}:")
        lines += Kernel(draw, depth).body(rows)
    lines.append("    @pl.function(type=pl.FunctionType.Orchestration)")
    lines.append(f"    def main(self, x: {tensor}, n: pl.Scalar[pl.INDEX], y: pl.Out[{tensor}]) -> {tensor}:")
    lines += Orchestration(draw, depth).body(kernels)
    return "\n".join(lines) + "\n"


def renamed(text: str) -> str:
    """The text with other local names."""
    return re.sub(r"\bv(\d+)\b", r"other_\1", text)


def changed_number(text: str, position: int) -> str | None:
    """The text with one of its floating-point numbers replaced, None when it has none."""
    places = list(re.finditer(r"\b\d\.5\b", text))
    if not places:
        return None
    place = places[position % len(places)]
    return f"{text[: place.start()]}11.5{text[place.end() :]}"
