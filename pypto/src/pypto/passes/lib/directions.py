"""How a body accesses its parameters: read, written, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, Submit, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ReturnStmt, Stmt
from pypto.ir.visitor import attr_exprs
from pypto.passes.lib.op_facts import in_place_arg
from pypto.passes.lib.walk import direct_uses, iter_stmts, stmt_call, used_vars

_BOOKKEEPING = ("dump_vars", "arg_direction_overrides_vars", "task_id_var")


def infer_directions(
    candidates: Iterable[Var], body: Stmt, callee: Callable[[str], Function | None]
) -> dict[Var, ParamDirection]:
    """Direction of each candidate: Out when every use is a destination, InOut when it is read as well, else In.

    Destinations are the operand that ``tile.store`` or ``tensor.assemble`` returns and a callee's Out slot. Names that
    a write gives to the same storage count as the candidate. A use of an unknown kind counts as a read.
    """
    root: dict[Var, Var] = {v: v for v in candidates}
    written: set[Var] = set()
    read: set[Var] = set()
    for stmt in iter_stmts(body):
        call = stmt_call(stmt)
        if call is not None:
            _call(call, root, written, read, callee)
            index = None if isinstance(call.op, GlobalVar) else in_place_arg(call)
            if type(stmt) is AssignStmt and index is not None and index < len(call.args):
                origin = root.get(call.args[index])
                if origin is not None:
                    root[stmt.var] = origin
        elif type(stmt) is AssignStmt and isinstance(stmt.value, Var):
            if stmt.value in root:
                root[stmt.var] = root[stmt.value]
        elif type(stmt) is not ReturnStmt:
            read.update(root[v] for v in direct_uses(stmt) if v in root)
    directions = {}
    for var in candidates:
        if var in written and not isinstance(var, IterArg):
            directions[var] = ParamDirection.InOut if var in read else ParamDirection.Out
        else:
            directions[var] = ParamDirection.In
    return directions


def _call(
    call: Call | Submit,
    root: dict[Var, Var],
    written: set[Var],
    read: set[Var],
    callee: Callable[[str], Function | None],
) -> None:
    reads: list[Var] = []
    if isinstance(call.op, GlobalVar):
        target = callee(call.op.name)
        directions = target.param_directions if target else []
        for index, arg in enumerate(call.args):
            direction = directions[index] if index < len(directions) else ParamDirection.In
            if direction is not ParamDirection.In and isinstance(arg, Var) and arg in root:
                written.add(root[arg])
                if direction is ParamDirection.InOut:
                    read.add(root[arg])
            else:
                used_vars(arg, reads)
    else:
        destination = in_place_arg(call) if call.op.name in ("tile.store", "tensor.assemble") else None
        for index, arg in enumerate(call.args):
            if index == destination and isinstance(arg, Var) and arg in root:
                written.add(root[arg])
                if call.kwargs.get("atomic"):  # adds to what is there
                    read.add(root[arg])
            else:
                used_vars(arg, reads)
    attrs = {k: v for k, v in call.attrs.items() if k not in _BOOKKEEPING}
    extra: list[Expr] = attr_exprs(attrs)
    if isinstance(call, Submit):
        extra += [*call.deps, *(e for e in (call.core_num, call.predicate) if e is not None)]
    for expr in extra:
        used_vars(expr, reads)
    read.update(root[v] for v in reads if v in root)
