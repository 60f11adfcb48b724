"""Statements of one tiled product under construction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, MakeTuple, Var, const_index
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ops.registry import create_op_call
from pypto.passes.lib import scalars


class Code:
    """A statement list with short spellings of the operators that tiling emits."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.stmts: list[Stmt] = []

    def inner(self) -> Code:
        """An empty list for a nested body."""
        return Code(self.span)

    def let(self, name: str, value: Expr) -> Var:
        """Bind ``value`` to a new variable."""
        var = Var(name, value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def bind(self, var: Var | None, name: str, value: Expr) -> Var:
        """Bind ``value`` to ``var``, or to a new variable without one."""
        if var is None:
            return self.let(name, value)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def call(self, name: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Call:
        return create_op_call(name, args, kwargs, self.span)

    def extract(self, name: str, source: Expr, row: Expr | int, col: Expr | int, shape, space: MemorySpace) -> Var:
        args = [source, scalars.index(row), scalars.index(col), extents(shape)]
        return self.let(name, self.call("tile.extract", args, {"target_memory": space}))

    def left(self, name: str, lhs: Expr, row, col, m: int, k: int) -> Var:
        return self.extract(name, lhs, row, col, (m, k), MemorySpace.Left)

    def right(self, name: str, rhs: Expr, row, col, k: int, n: int) -> Var:
        return self.extract(name, rhs, row, col, (k, n), MemorySpace.Right)

    def create(self, name: str, shape: tuple[int, int], dtype, space: MemorySpace) -> Var:
        options = {"dtype": dtype, "target_memory": space}
        return self.let(name, self.call("tile.create", [extents(shape)], options))

    def to_mat(self, name: str, source: Expr) -> Expr:
        """``source`` in Mat."""
        if source.type.memory_space is MemorySpace.Mat:
            return source
        return self.let(name, self.call("tile.move", [source], {"target_memory": MemorySpace.Mat}))


def extents(shape: Iterable[int]) -> MakeTuple:
    """Constants of a shape."""
    return MakeTuple(tuple(const_index(d) for d in shape))
