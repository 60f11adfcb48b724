"""InsertMxScaleAddr: each MX product reads its scales through an address bound to the data tile."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace, is_incore_type
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, EvalStmt, Stmt
from pypto.ops.registry import create_op_call
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, stmt_call
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_FORM = (P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.NormalizedStmtStructure, P.TileMemoryInferred)
#: Operator -> (data, scale) operand positions of the two sides.
_PAIRS = {
    "tile.matmul_mx": ((0, 1), (2, 3)),
    "tile.matmul_mx_bias": ((0, 1), (2, 3)),
    "tile.matmul_mx_acc": ((1, 2), (3, 4)),
}
_SPACES = ((MemorySpace.Left, MemorySpace.LeftScale), (MemorySpace.Right, MemorySpace.RightScale))


@function_pass("InsertMxScaleAddr", required=_FORM, produced=_FORM)
def insert_mx_scale_addr(function: Function) -> Function:
    """Bind ``tile.tget_scale_addr(scale, data)`` before every MX product; bindings are never shared.

    Raises:
        ValueError: a data or scale operand in another memory space than its side of the product needs.
    """
    if function.body is None or not is_incore_type(function.func_type):
        return function
    if not any(call.op.name in _PAIRS for _, call in iter_calls(function.body)):
        return function
    return with_body(function, rebuild_lists(function.body, _rewrite))


def _rewrite(stmts: list[Stmt]) -> list[Stmt]:
    result: list[Stmt] = []
    changed = False
    for stmt in stmts:
        call = stmt_call(stmt)
        if isinstance(call, Call) and call.op.name in _PAIRS:
            changed = True
            args = list(call.args)
            for pair, spaces in zip(_PAIRS[call.op.name], _SPACES):
                bound, value = _bind(call, args, pair, spaces)
                result.append(AssignStmt(bound, value, stmt.span))
                args[pair[1]] = bound
            new = replace(call, args=tuple(args))
            stmt = replace(stmt, value=new) if type(stmt) is AssignStmt else EvalStmt(new, stmt.span)
        result.append(stmt)
    return result if changed else stmts


def _bind(call: Call, args: list[Expr], pair: tuple[int, int], spaces: tuple) -> tuple[Var, Call]:
    data, scale = args[pair[0]], args[pair[1]]
    for operand, space in zip((data, scale), spaces):
        if operand.type.memory_space is not space:
            raise user_error(
                f"{call.op.name}: '{operand.name_hint}' must be in {space.name}, it is in {operand.type.memory_space}",
                span=call.span,
            )
    value = create_op_call("tile.tget_scale_addr", [scale, data], {}, call.span)
    if value.type.memory_space is None:
        value = replace(value, type=replace(value.type, memory_space=spaces[1]))
    return Var(f"{scale.name_hint}_addr", value.type, call.span), value
