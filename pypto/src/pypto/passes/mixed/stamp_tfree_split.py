"""StampTfreeSplit: copy the split code and pipe id of a pop onto the free that releases its slot."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.passes.lib.op_facts import FREES, POPS
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, op_name, stmt_call
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_POP_OF = {"system.tfree_to_aic": "tile.tpop_from_aic", "system.tfree_to_aiv": "tile.tpop_from_aiv"}


def _stamped(free: Call, pops: dict[Var, Call]) -> Call:
    tile: Expr = free.args[0]
    pop = pops.get(tile) if isinstance(tile, Var) else None
    wanted = _POP_OF[free.op.name]
    if pop is None:
        raise user_error(
            f"{free.op.name} requires its tile argument to come from {wanted}; free the variable that the pop defined",
            span=free.span,
        )
    if pop.op.name != wanted:
        raise user_error(f"{free.op.name} does not match originating {pop.op.name}", span=free.span)
    kwargs = dict(free.kwargs)
    for key in ("split", "id"):
        own, source = kwargs.get(key), pop.kwargs.get(key)
        if own is not None and key == "id" and own != (source or 0):
            raise user_error(
                f"{free.op.name} id={own} does not match originating {pop.op.name} id={source or 0}", span=free.span
            )
        if source is not None:
            kwargs[key] = source
    return free if kwargs == free.kwargs else replace(free, kwargs=kwargs)


@function_pass("StampTfreeSplit", required=(P.SplitIncoreOrch,))
def stamp_tfree_split(function: Function) -> Function:
    """Give every ``tfree`` the ``split`` and ``id`` of its ``tpop``."""
    if function.body is None:
        return function
    pops: dict[Var, Call] = {}
    frees = False
    for stmt, call in iter_calls(function.body):
        if call.op.name in POPS and type(stmt) is AssignStmt:
            pops[stmt.var] = call
        frees = frees or call.op.name in FREES
    if not frees:
        return function

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        result = []
        for stmt in stmts:
            if op_name(stmt) in FREES:
                call = stmt_call(stmt)
                new = _stamped(call, pops)
                if new is not call:
                    stmt = replace(stmt, expr=new)
            result.append(stmt)
        return stmts if all(a is b for a, b in zip(result, stmts)) else result

    return with_body(function, rebuild_lists(function.body, edit))
