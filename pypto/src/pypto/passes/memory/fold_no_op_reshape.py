"""FoldNoOpReshape: a reshape that changes neither buffer nor layout becomes a plain alias."""

from __future__ import annotations

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call, ConstInt, Expr, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TileType
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


def _extent(value: Expr) -> tuple:
    """Constants compare by value; every runtime extent looks the same to the buffer type."""
    return ("const", value.value) if isinstance(value, ConstInt) else ("dynamic", id(value))


def buffer_signature(kind: TileType) -> tuple:
    """Everything that decides the declared type of a tile buffer, but not its address or size."""
    view = kind.get_effective_tile_view()
    return (
        kind.memory_space, kind.dtype, tuple(_extent(d) for d in kind.shape), view.blayout, view.slayout, view.fractal,
        view.pad, view.compact, tuple(_extent(d) for d in view.valid_shape),
    )  # fmt: skip


def _is_no_op(stmt: Stmt) -> bool:
    call = stmt.value if type(stmt) is AssignStmt else None
    if not isinstance(call, Call) or call.op.name != "tile.reshape" or not isinstance(call.args[0], Var):
        return False
    source, result = call.args[0].type, stmt.var.type
    return (
        isinstance(source, TileType)
        and isinstance(result, TileType)
        and source.memref is not None
        and result.memref is not None
        and source.memref.base_ is result.memref.base_
        and buffer_signature(source) == buffer_signature(result)
    )


class _Folder(IRMutator):
    def visit_type(self, kind):
        return kind

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        return self._rebuild(stmt, value=stmt.value.args[0]) if _is_no_op(stmt) else stmt


@function_pass("FoldNoOpReshape", required=(P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D))
def fold_no_op_reshape(function: Function) -> Function:
    """Fold ``x = tile.reshape(y, ...)`` into ``x = y`` in kernels, where both name the same typed buffer."""
    if not is_incore_type(function.func_type) or function.body is None:
        return function
    if not any(_is_no_op(stmt) for stmt, _ in iter_calls(function.body)):
        return function
    return _Folder().visit_function(function)
