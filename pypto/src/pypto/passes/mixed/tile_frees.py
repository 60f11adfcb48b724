"""Release of popped tiles: one ``tfree`` per ``tpop``, right after the last statement that reads the tile."""

from __future__ import annotations

from pypto.ir.expr import Call, Var
from pypto.ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, YieldStmt
from pypto.ir.types import UnknownType
from pypto.passes.lib.op_facts import FREES, POPS, VIEWS, same_object_arg
from pypto.passes.lib.rewrite import rebuild_lists
from pypto.passes.lib.walk import all_uses, op_name
from pypto.passes.mixed.crossings import op_call

_FREE = {"tile.tpop_from_aic": "system.tfree_to_aic", "tile.tpop_from_aiv": "system.tfree_to_aiv"}


def add_frees(body: Stmt) -> Stmt:
    """``body`` with every popped tile freed once, never before its last reader."""
    return rebuild_lists(body, _free_list)


def _free_list(stmts: list[Stmt]) -> list[Stmt]:
    pops = [s for s in stmts if type(s) is AssignStmt and op_name(s) in POPS]
    if not pops:
        return stmts
    frees = {s.expr.args[0]: s for s in stmts if type(s) is EvalStmt and op_name(s) in FREES}
    order = {id(s): i for i, s in enumerate(stmts)}
    after: dict[int, list[Stmt]] = {}
    moved: set[int] = set()
    for pop in pops:
        last = _last_reader(pop, stmts, order)
        free = frees.get(pop.var)
        if free is not None and order[id(free)] > last:
            continue
        if free is not None:
            moved.add(id(free))
        else:
            call = op_call(_FREE[op_name(pop)], (pop.var,), {}, UnknownType.get(), pop.span)
            free = EvalStmt(call, pop.span)
        after.setdefault(last, []).append(free)
    if not after:
        return stmts
    result: list[Stmt] = []
    for index, stmt in enumerate(stmts):
        if id(stmt) not in moved:
            result.append(stmt)
        result.extend(after.get(index, ()))
    return result


def _last_reader(pop: AssignStmt, stmts: list[Stmt], order: dict[int, int]) -> int:
    """Index of the last statement of the list that reads the popped tile or a window on it."""
    start = last = order[id(pop)]
    chain: set[Var] = {pop.var}
    for index in range(start + 1, len(stmts)):
        stmt = stmts[index]
        if isinstance(stmt, (YieldStmt, ReturnStmt)) or op_name(stmt) in FREES:
            continue
        if not chain.isdisjoint(all_uses(stmt)):
            last = index
            if type(stmt) is AssignStmt and _continues(stmt, chain):
                chain.add(stmt.var)
    return last


def _continues(stmt: AssignStmt, chain: set[Var]) -> bool:
    """The assigned variable is another name of, or a window on, a tile of the chain."""
    value = stmt.value
    if isinstance(value, Var):
        return value in chain
    if not isinstance(value, Call):
        return False
    index = 0 if value.op.name in VIEWS else same_object_arg(value)
    return index is not None and index < len(value.args) and value.args[index] in chain
