"""Bias rows of tiled products: one row moved once, or one window loaded per column tile."""

from __future__ import annotations

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Expr, MakeTuple, Var
from pypto.ir.stmt import AssignStmt
from pypto.passes.lib import scalars
from pypto.passes.tile.matmul_tiling.code import Code, extents


class Bias:
    """The ``[1, N]`` row that the first K block of every output tile adds."""

    def __init__(self, source: Var, load: AssignStmt | None) -> None:
        self.source = source
        #: The load of a row in Mat that may be repeated in windows, else None.
        self.load = load
        self._row: Expr = source

    @property
    def resident(self) -> bool:
        """The row is in the bias table already."""
        return self.source.type.memory_space is MemorySpace.Bias

    def move_whole(self, code: Code, name: str) -> None:
        """Bring the whole row into the bias table; every tile then reads it from there."""
        if not self.resident:
            options = {"target_memory": MemorySpace.Bias}
            self._row = code.let(f"{name}_l0_bias", code.call("tile.move", [self.source], options))

    def window(self, code: Code, name: str, col: Expr | int, n: int, extent: int) -> Expr:
        """The part of the row that belongs to the columns ``[col, col + n)`` of ``extent``."""
        if n >= extent:
            return self._row
        tensor, offsets = self.load.value.args[:2]
        row, base = offsets.elements
        at = MakeTuple((row, scalars.add(base, col)))
        shape = extents((1, n))
        kwargs = {k: v for k, v in self.load.value.kwargs.items() if v is not None}
        part = code.let(f"{name}_bm", code.call("tile.load", [tensor, at, shape, shape], kwargs))
        return code.let(f"{name}_bias", code.call("tile.move", [part], {"target_memory": MemorySpace.Bias}))


def repeatable_load(stmt: AssignStmt | None) -> bool:
    """A load whose windows read what the whole load reads."""
    if stmt is None:
        return False
    call = stmt.value
    if call.op.name != "tile.load" or len(call.args) < 3 or not isinstance(call.args[1], MakeTuple):
        return False
    full = len(call.args) < 4 or all(a == b for a, b in zip(_values(call.args[2]), _values(call.args[3])))
    return full and len(call.args[1].elements) == 2 and not call.kwargs.get("transpose")


def _values(shape: Expr) -> list:
    return [getattr(e, "value", id(e)) for e in shape.elements]
