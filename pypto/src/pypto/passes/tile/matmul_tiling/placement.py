"""Where the tiles of a product go: into the tensor that a store names, or into a Mat tile for later products."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Expr, MakeTuple, Var
from pypto.ir.stmt import AssignStmt
from pypto.passes.lib import scalars
from pypto.passes.tile.matmul_tiling.code import Code


class Placement:
    """Destination of the tiles of one product; its value is carried from tile to tile."""

    #: Name that the versions of the destination are derived from.
    base: str

    def start(self, code: Code) -> Expr:
        """The destination before the first tile."""
        raise NotImplementedError

    def put(self, code: Code, name: str, value: Expr, row: Expr | int, col: Expr | int, into: Expr) -> Var:
        """``value`` written at ``(row, col)`` of ``into``."""
        raise NotImplementedError


class StorePlacement(Placement):
    """Every tile is stored at its place; ``store`` is the statement that stores the whole result."""

    def __init__(self, store: AssignStmt) -> None:
        self._call = store.value
        self.base = self._call.args[2].name_hint

    def start(self, code: Code) -> Expr:
        return self._call.args[2]

    def put(self, code: Code, name: str, value: Expr, row, col, into: Expr) -> Var:
        base_row, base_col = self._call.args[1].elements
        offsets = MakeTuple((scalars.add(base_row, row), scalars.add(base_col, col)))
        return code.let(name, code.call("tile.store", [value, offsets, into], self._call.kwargs))


class ScratchPlacement(Placement):
    """Tiles are inserted into one Mat tile, narrowed by the accumulator's write path, and stay on the chip."""

    def __init__(self, product: Var, shape: tuple[int, int], dtype: DataType) -> None:
        self.base = f"{product.name_hint}_scratch"
        self._shape, self._dtype = shape, dtype

    def start(self, code: Code) -> Expr:
        return code.create(f"{self.base}_init", self._shape, self._dtype, MemorySpace.Mat)

    def put(self, code: Code, name: str, value: Expr, row, col, into: Expr) -> Var:
        offsets = MakeTuple((scalars.index(row), scalars.index(col)))
        return code.let(name, code.call("tile.assemble", [into, value, offsets]))
