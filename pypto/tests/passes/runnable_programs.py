"""Random kernels that can be run: every loop ends, every window lies inside its tensor, numbers stay small."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

BAND, ROWS, COLS = 8, 64, 32
TENSOR = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"


class KernelWriter:
    """Writes the body of a kernel with the parameters x, n (a scalar of any value), k and y (the output).

    ``scalars`` and ``tiles`` are the names in scope; ``fixed`` scalars (indices, carries) are never assigned again.
    """

    def __init__(self, random: Random, depth: int) -> None:
        self._random, self._depth = random, depth
        self._lines: list[str] = []
        self._indent = 2
        self._count = 0
        self._scalars, self._tiles, self._fixed = ["n"], [], {"n"}
        self._may_jump = False  # the innermost loop can be left
        self._may_assign = True  # names of the surrounding code can be given another value

    def text(self) -> str:
        self._load()
        for _ in range(self._random.randrange(2, 6)):
            self._statement()
        self._store()
        self._line("return y")
        head = [
            "import pypto.language as pl", "", "@pl.program", "class Drawn:",
            "    @pl.function(type=pl.FunctionType.InCore)",
            f"    def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.FP32], y: pl.Out[{TENSOR}]):",
        ]  # fmt: skip
        return "\n".join([*head, *self._lines]) + "\n"

    # -- parts --------------------------------------------------------------------------------------------------

    def _pick(self, *choices):
        return choices[self._random.randrange(len(choices))]

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _name(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _scalar(self, depth: int = 1) -> str:
        if depth == 0 or self._random.random() < 0.4:
            return self._pick(*self._scalars, *map(str, range(5)))
        a, b, operator = self._scalar(depth - 1), self._scalar(depth - 1), self._pick(*"+-*/%", "min", "max")
        if operator in "/%":
            return f"({a} {'//' if operator == '/' else '%'} {self._pick(2, 3, 4)})"
        return f"pl.{operator}({a}, {b})" if operator.isalpha() else f"({a} {operator} {b})"

    def _offset(self) -> str:
        return f"({self._scalar()} % {ROWS // BAND}) * {BAND}"

    def _condition(self) -> str:
        one = f"{self._pick(*self._scalars)} {self._pick('<', '<=', '>', '>=', '==', '!=')} {self._scalar()}"
        sign = f"{self._pick(*self._scalars)} {self._pick('>= 0', '< 0', '> -1')}"
        return self._pick(one, one, sign, f"({one}) and ({sign})", f"not ({one})")

    def _block(self, header: str, *, at_most: int = 3, end: Callable[[], None] | None = None) -> None:
        """Statements one level deeper; names that they define end with the block."""
        self._line(header)
        scalars, tiles = list(self._scalars), list(self._tiles)
        self._indent += 1
        self._depth -= 1
        for _ in range(self._random.randrange(1, at_most + 1)):
            self._statement()
        if end is not None:
            end()
        self._depth += 1
        self._indent -= 1
        self._scalars, self._tiles = scalars, tiles

    # -- statements ---------------------------------------------------------------------------------------------

    def _statement(self) -> None:
        kinds = [self._assign, self._load, self._compute, self._compute, self._store]
        if self._depth > 0:
            kinds += [self._loop, self._loop, self._while, self._carry, self._branch, self._choice]
        if self._may_jump:
            kinds.append(self._jump)
        self._pick(*kinds)()

    def _assign(self) -> None:
        own = [s for s in self._scalars if s not in self._fixed]
        value = f"{self._scalar(2)} + {self._pick(*sorted(self._fixed & set(self._scalars)))}"
        if own and self._may_assign and self._random.random() < 0.5:
            self._line(f"{self._pick(*own)} = {value}")
        else:
            name = self._name()
            self._line(f"{name} = {value}")
            self._scalars.append(name)

    def _load(self) -> None:
        name = self._name()
        self._line(f"{name} = pl.load(x, [{self._offset()}, 0], [{BAND}, {COLS}])")
        self._tiles.append(name)

    def _compute(self) -> None:
        a, b = self._pick(*self._tiles), self._pick(*self._tiles)
        value = self._pick(
            f"pl.mul(pl.add({a}, {b}), 0.5)", f"pl.maximum({a}, {b})", f"pl.mul(pl.sub({a}, k), 0.5)", f"pl.neg({a})",
            f"pl.mul(pl.add({a}, {self._random.randrange(9)}.5), 0.5)", a,
        )  # fmt: skip
        if self._may_assign and self._random.random() < 0.5:
            self._line(f"{self._pick(*self._tiles)} = {value}")
        else:
            name = self._name()
            self._line(f"{name} = {value}")
            self._tiles.append(name)

    def _store(self) -> None:
        self._line(f"y = pl.store({self._pick(*self._tiles)}, [{self._offset()}, 0], y)")

    def _jump(self) -> None:
        self._line(f"if {self._condition()}:")
        self._indent += 1
        if self._random.random() < 0.5:
            self._store()
        self._line(self._pick("break", "continue"))
        self._indent -= 1

    def _in_loop(self, header: str, *, may_jump: bool, may_assign: bool, names: tuple = (), end=None) -> None:
        jump, assign = self._may_jump, self._may_assign
        self._may_jump, self._may_assign = may_jump, assign and may_assign
        self._scalars += names
        self._fixed.update(names)
        self._block(header, end=end)
        self._scalars = [s for s in self._scalars if s not in names]
        self._may_jump, self._may_assign = jump, assign

    def _loop(self) -> None:
        index, kind = self._name("i"), self._pick("range", "range", "unroll", "pipeline", "parallel")
        constant = ("3", "0, 5, 2", "1, 2", "2, 7, 3", "0")
        runtime = ("n", "0, n, 2", "1, n", "n - 3, 2")
        backwards = ("4, 0, -1", "n, 0, -1", "2, n - 4, -1")
        bounds = {"range": constant + runtime + backwards, "pipeline": constant + runtime}.get(kind, constant)
        stage = f", stage={self._pick(2, 3)}" if kind == "pipeline" else ""
        header = f"for {index} in pl.{kind}({self._pick(*bounds)}{stage}):"
        self._in_loop(header, may_jump=kind == "range", may_assign=kind != "parallel", names=(index,))

    def _while(self) -> None:
        count = self._name("w")
        self._line(f"{count} = {self._pick(0, 1, 'n')}")
        header = f"while {count} < {self._pick('3', 'n', '5')}:\n{'    ' * (self._indent + 1)}{count} = {count} + 1"
        self._in_loop(header, may_jump=True, may_assign=True, names=(count,))

    def _carry(self) -> None:
        index, tile, scalar, last, total = (self._name() for _ in range(5))
        kind = self._pick("range", "pipeline")
        start = f"init_values=({self._pick(*self._tiles)}, {self._pick(*self._scalars)})"
        bounds = self._pick("3", "n", "0, 5, 2", "1, n") + f", {start}" + (", stage=2" if kind == "pipeline" else "")
        self._tiles.append(tile)

        def end() -> None:
            value = f"{self._scalar()} {self._pick('+ 1', '- 2')}"
            self._line(f"{last}, {total} = pl.yield_({self._pick(*self._tiles)}, {value})")

        header = f"for {index}, ({tile}, {scalar}) in pl.{kind}({bounds}):"
        self._in_loop(header, may_jump=kind == "range", may_assign=False, names=(index, scalar), end=end)
        self._tiles.remove(tile)
        self._tiles.append(last)
        self._scalars.append(total)
        self._fixed.add(total)

    def _branch(self) -> None:
        self._block(f"if {self._condition()}:", at_most=2)
        if self._random.random() < 0.5:
            self._block("else:", at_most=2)

    def _choice(self) -> None:
        result = self._name()

        def end() -> None:
            self._line(f"{result} = pl.yield_({self._pick(*self._tiles)})")

        jump, assign = self._may_jump, self._may_assign
        self._may_jump = self._may_assign = False
        self._block(f"if {self._condition()}:", at_most=2, end=end)
        self._block("else:", at_most=2, end=end)
        self._may_jump, self._may_assign = jump, assign
        self._tiles.append(result)


def kernel_text(random: Random, depth: int = 2) -> str:
    """The text of a program with one kernel ``main(x, n, k, y)``."""
    return KernelWriter(random, depth).text()
