"""Pattern 1: a step that computes the next value of a carried tensor writes it in place."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.enums import FunctionType, ParamDirection, is_incore_type
from pypto.ir.expr import Call, GlobalVar, TupleGetItemExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.structural import structural_equal
from pypto.passes.lib.access import ParamAccess
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.rewrite import Substitution, rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import bodies, iter_calls, iter_stmts, stmt_call, yielded


@dataclass
class _Merge:
    """One call of ``callee`` whose Out argument ``out`` is a fresh tensor that replaces In argument ``inp``."""

    callee: str
    out: int
    inp: int
    created: AssignStmt
    call: Call


def reuse_carried_tensors(program: Program) -> Program:
    """Merge the In and Out parameter of steps that carry a tensor, where no other call site needs both."""
    functions = {f.name: f for f in program.functions.values()}
    sites = _call_sites(functions)
    lineage = Lineage(program)
    merges: dict[str, _Merge] = {}
    owner: dict[str, str] = {}
    for function in functions.values():
        if function.body is None or is_incore_type(function.func_type) or function.func_type is FunctionType.Group:
            continue
        reads = count_reads(function)
        for stmt in iter_stmts(function.body):
            if not isinstance(stmt, (ForStmt, WhileStmt)) or not stmt.iter_args:
                continue
            for merge in _candidates(stmt, reads, functions, lineage):
                if sites.get(merge.callee) == 1 and merge.callee not in merges:
                    merges[merge.callee] = merge
                    owner[merge.callee] = function.name
    if not merges:
        return program
    for name, merge in merges.items():
        functions[name] = _merge_params(functions[name], merge)
        caller = owner[name]
        functions[caller] = _update_caller(functions[caller], merge)
    return Program(list(functions.values()), program.name, program.span)


def _call_sites(functions: dict[str, Function]) -> dict[str, int]:
    count: dict[str, int] = {}
    for function in functions.values():
        if function.body is not None:
            for _, call in iter_calls(function.body):
                if isinstance(call.op, GlobalVar):
                    count[call.op.name] = count.get(call.op.name, 0) + 1
    return count


def _candidates(loop: ForStmt | WhileStmt, reads, functions: dict[str, Function], lineage: Lineage) -> list[_Merge]:
    stmts = flatten_to_stmts(loop.body)
    values = yielded(loop.body)
    created = {
        s.var: s
        for s in stmts
        if type(s) is AssignStmt and isinstance(s.value, Call) and s.value.op.name == "tensor.create"
    }
    found: list[_Merge] = []
    for position, stmt in enumerate(stmts):
        call = stmt_call(stmt)
        if type(stmt) is not AssignStmt or type(call) is not Call or not isinstance(call.op, GlobalVar):
            continue
        callee = functions.get(call.op.name)
        if callee is None or callee.body is None or not is_incore_type(callee.func_type):
            continue
        results = _results(stmt, stmts[position + 1 :])
        for index, result in results.items():
            slot = next((i for i, v in enumerate(values) if v is result), None)
            if slot is None:
                continue
            returned = lineage.returned_params(callee.name)
            out = returned[index] if index < len(returned) else None
            carry = loop.iter_args[slot]
            inp = next((i for i, a in enumerate(call.args) if a is carry), None)
            if out is None or inp is None or out == inp or call.args[out] not in created:
                continue
            fresh = call.args[out]
            directions = callee.param_directions
            if (
                directions[inp] is ParamDirection.In
                and directions[out] is ParamDirection.Out
                and reads[fresh] == 1
                and reads[carry] == 1
                and fresh.type == carry.type
                and _reads_before_writes(callee, callee.params[inp], callee.params[out])
            ):
                found.append(_Merge(callee.name, out, inp, created[fresh], call))
    return found


def _results(stmt: AssignStmt, rest: list[Stmt]) -> dict[int, Var]:
    """Result index -> variable that holds it."""
    projections = {
        s.value.index: s.var
        for s in rest
        if type(s) is AssignStmt and isinstance(s.value, TupleGetItemExpr) and s.value.tuple is stmt.var
    }
    return projections or {0: stmt.var}


def _reads_before_writes(function: Function, read: Var, written: Var) -> bool:
    """In place is safe: no read of ``read`` can see a write of ``written``.

    Straight-line code must read first; inside a loop both may alternate only over the same window.
    """
    reader = ParamAccess(function, lambda name: None)
    if read in reader.written or written in reader.read:
        return False
    wrote = False
    for stmt in flatten_to_stmts(function.body):
        calls = [stmt_call(stmt)] if not bodies(stmt) else [c for _, c in iter_calls(stmt)]
        reads = [c for c in calls if c is not None and any(a is read for a in c.args)]
        writes = [c for c in calls if c is not None and _writes(c, function, written)]
        if reads and wrote:
            return False
        if reads and writes and bodies(stmt) and not _same_windows(reads, writes):
            return False
        wrote = wrote or bool(writes)
    return True


def _writes(call: Call, function: Function, param: Var) -> bool:
    from pypto.passes.lib.op_facts import in_place_arg

    if isinstance(call.op, GlobalVar):
        return any(a is param for a in call.args)
    index = in_place_arg(call)
    if index is None or index >= len(call.args):
        return False
    target = call.args[index]
    return target is param or getattr(target, "type", None) == param.type


def _same_windows(reads: list[Call], writes: list[Call]) -> bool:
    windows = []
    for call in (*reads, *writes):
        if call.op.name not in ("tile.load", "tile.store"):
            return False
        shape = call.args[2].elements if call.op.name == "tile.load" else call.args[0].type.shape
        windows.append((call.args[1].elements, shape))
    offsets, shape = windows[0]
    return all(
        len(o) == len(offsets)
        and all(structural_equal(a, b) for a, b in zip(o, offsets))
        and len(s) == len(shape)
        and all(structural_equal(a, b) for a, b in zip(s, shape))
        for o, s in windows[1:]
    )


def _merge_params(function: Function, merge: _Merge) -> Function:
    kept, dropped = function.params[merge.inp], function.params[merge.out]
    body = Substitution({dropped: kept}).visit_stmt(function.body)
    keep = [i for i in range(len(function.params)) if i != merge.out]
    directions = [ParamDirection.InOut if i == merge.inp else function.param_directions[i] for i in keep]
    return replace(function, params=tuple(function.params[i] for i in keep), param_directions=directions, body=body)


def _update_caller(function: Function, merge: _Merge) -> Function:
    def update(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            if stmt is merge.created or (type(stmt) is AssignStmt and stmt.var is merge.created.var):
                changed = True
                continue
            call = stmt_call(stmt)
            if call is not None and isinstance(call.op, GlobalVar) and call.op.name == merge.callee:
                args = tuple(a for i, a in enumerate(call.args) if i != merge.out)
                stmt = replace(stmt, value=replace(call, args=args))
                changed = True
            result.append(stmt)
        return result if changed else stmts

    return with_body(function, rebuild_lists(function.body, update))
