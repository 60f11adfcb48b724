"""Pattern 3: a kernel loop that assembles a tile and stores it afterwards stores each piece instead."""

from __future__ import annotations

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call, Expr, IterArg, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, flatten_to_stmts, seq
from pypto.ops.registry import create_op_call
from pypto.passes.lib import scalars
from pypto.passes.lib.rewrite import Substitution, rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls, map_functions, yielded


def store_from_loops(program: Program) -> Program:
    """Rewrite the loops of every InCore function."""
    return map_functions(program, _rewrite)


def _rewrite(function: Function) -> Function:
    if function.body is None or not is_incore_type(function.func_type):
        return function
    if not any(c.op.name == "tile.assemble" for _, c in iter_calls(function.body)):
        return function
    reads = count_reads(function)

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        for position, stmt in enumerate(stmts):
            if type(stmt) is ForStmt and len(stmt.iter_args) == 1:
                new = _as_stores(stmts, position, reads)
                if new is not None:
                    return new
        return stmts

    return with_body(function, rebuild_lists(function.body, edit))


def _as_stores(stmts: list[Stmt], position: int, reads) -> list[Stmt] | None:
    """``buf = create; rv = for(assemble); out' = store(rv, off, out)`` as ``out' = for(store)``."""
    loop = stmts[position]
    carry, result = loop.iter_args[0], loop.return_vars[0]
    created = next((s for s in stmts[:position] if type(s) is AssignStmt and s.var is carry.initValue), None)
    if created is None or not _is_call(created.value, "tile.create") or reads[created.var] != 1:
        return None
    body = flatten_to_stmts(loop.body)
    piece = next((s for s in body if type(s) is AssignStmt and s.var is yielded(loop.body)[0]), None)
    if piece is None or not _is_call(piece.value, "tile.assemble") or piece.value.args[0] is not carry:
        return None
    if reads[carry] != 1 or reads[piece.var] != 1 or reads[result] != 1:
        return None
    store = next(
        (s for s in stmts[position + 1 :] if type(s) is AssignStmt and _is_call(s.value, "tile.store")
         and s.value.args[0] is result), None,
    )  # fmt: skip
    if store is None or len(store.value.args) != 3 or store.value.kwargs:
        return None
    out, base = store.value.args[2], store.value.args[1].elements
    between = _between(stmts, position, store)
    if any(out is v for s in between for v in _mentions(s)) or len(base) != len(piece.value.args[2].elements):
        return None
    if any(const_value(b) != 0 for b in base):
        offsets = tuple(scalars.add(b, o) for b, o in zip(base, piece.value.args[2].elements))
    else:
        offsets = piece.value.args[2].elements
    target = IterArg(carry.name_hint, out.type, out, carry.span)
    source = piece.value.args[1]
    call = create_op_call(
        "tile.store", [source, replace(piece.value.args[2], elements=offsets), target], {}, piece.value.span
    )  # fmt: skip
    stored = Var(piece.var.name_hint, call.type, piece.var.span)
    rewrite = Substitution({piece.var: stored})
    new_body = [
        replace(s, var=stored, value=call) if s is piece else rewrite.visit_stmt(s) for s in body
    ]  # fmt: skip
    new_loop = replace(
        loop, iter_args=(target,), body=seq(new_body, loop.body.span), return_vars=(store.var,)
    )  # fmt: skip
    return [new_loop if s is loop else s for s in stmts if s is not created and s is not store]


def _is_call(value: Expr, name: str) -> bool:
    return isinstance(value, Call) and value.op.name == name


def _between(stmts: list[Stmt], position: int, last: Stmt) -> list[Stmt]:
    found = []
    for stmt in stmts[position + 1 :]:
        if stmt is last:
            break
        found.append(stmt)
    return found


def _mentions(stmt: Stmt) -> list[Var]:
    from pypto.passes.lib.walk import all_uses

    return list(all_uses(stmt))
