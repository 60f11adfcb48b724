"""NormalizeReturnOrder: return the written parameters themselves, in the order they are declared."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, ParamDirection, is_incore_type
from pypto.ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ReturnStmt, Stmt
from pypto.ir.types import TensorType, TupleType, Type
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.walk import iter_stmts, map_functions
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_EXPLICIT = (FunctionType.Group, FunctionType.Spmd, FunctionType.Graph)


class _Returns(IRMutator):
    """Rewrites the values of return statements."""

    def __init__(self, rewrite) -> None:
        super().__init__()
        self._rewrite_values = rewrite

    def visit_type(self, kind: Type) -> Type:
        return kind

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        return stmt

    def visit_return_stmt(self, stmt: ReturnStmt) -> Stmt:
        return self._rebuild(stmt, value=self._rewrite_values(stmt.value))


def _explicit_returns(function: Function, lineage: Lineage) -> Function:
    """Returned tensors that are a parameter become the parameter object."""
    if function.body is None or not (is_incore_type(function.func_type) or function.func_type in _EXPLICIT):
        return function
    origins = lineage.origins(function)

    def explicit(values: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(origins.get(v, v) if isinstance(v, Var) and isinstance(v.type, TensorType) else v for v in values)

    return _Returns(explicit).visit_function(function)


def _permutation(function: Function) -> list[int] | None:
    """New position of every returned value when returns follow the declaration order of outputs, else None."""
    if not is_incore_type(function.func_type) or function.body is None:
        return None
    returns = [s for s in iter_stmts(function.body) if type(s) is ReturnStmt and s.value]
    outputs = [p for p, d in zip(function.params, function.param_directions) if d is not ParamDirection.In]
    if not returns or not outputs or len(outputs) > len(returns[0].value):
        return None
    rank = {param: index for index, param in enumerate(outputs)}
    plans = {tuple(_order(r.value, rank)) for r in returns}
    if len(plans) != 1:
        return None
    order = list(plans.pop())
    return None if order == list(range(len(order))) else _inverse(order)


def _order(values: tuple[Expr, ...], rank: dict[Var, int]) -> list[int]:
    """Old indices in their new order: traceable values by parameter order in the slots they held, others in place."""
    slots = [i for i, v in enumerate(values) if v in rank]
    ordered = sorted(slots, key=lambda i: rank[values[i]])
    result = list(range(len(values)))
    for slot, source in zip(slots, ordered):
        result[slot] = source
    return result


def _inverse(order: list[int]) -> list[int]:
    moved_to = [0] * len(order)
    for new, old in enumerate(order):
        moved_to[old] = new
    return moved_to


def _permuted(values, moved_to: list[int]) -> list:
    result = list(values)
    for old, new in enumerate(moved_to):
        result[new] = values[old]
    return result


def _permute_function(function: Function, moved_to: list[int]) -> Function:
    function = _Returns(lambda values: tuple(_permuted(values, moved_to))).visit_function(function)
    if len(function.return_types) == len(moved_to):
        function = replace(function, return_types=_permuted(function.return_types, moved_to))
    return function


class _CallSites(IRMutator):
    """Re-indexes tuple items of calls whose callee was permuted, and the tuple types themselves."""

    def __init__(self, moved: dict[str, list[int]]) -> None:
        super().__init__()
        self._moved = moved
        self._results: dict[Var, list[int]] = {}

    def visit_type(self, kind: Type) -> Type:
        return kind

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        call = stmt.value
        moved_to = self._moved.get(call.op.name) if isinstance(call, (Call, Submit)) and is_user_call(call) else None
        if moved_to is None or not isinstance(stmt.var.type, TupleType):
            self._results.pop(stmt.var, None)
            return super().visit_assign_stmt(stmt)
        kinds = stmt.var.type.types
        tail = kinds[len(moved_to) :]
        kind = TupleType((*_permuted(kinds[: len(moved_to)], moved_to), *tail))
        var = replace(stmt.var, type=kind)
        self.var_map[stmt.var] = var
        self._results[stmt.var] = moved_to
        value = super().visit_call(call) if isinstance(call, Call) else super().visit_submit(call)
        return replace(stmt, var=var, value=replace(value, type=kind))

    def visit_tuple_get_item_expr(self, value: TupleGetItemExpr) -> Expr:
        moved_to = self._results.get(value.tuple) if isinstance(value.tuple, Var) else None
        if moved_to is None or value.index >= len(moved_to):
            return super().visit_tuple_get_item_expr(value)
        return TupleGetItemExpr(self.visit_expr(value.tuple), moved_to[value.index], value.span)


@program_pass("NormalizeReturnOrder", required=(P.SplitIncoreOrch, P.IncoreTileOps), produced=(P.ReturnParamsExplicit,))
def normalize_return_order(program: Program) -> Program:
    """Make write-back returns explicit, permute kernel returns into declaration order, re-index the callers."""
    lineage = Lineage(program)
    program = map_functions(program, lambda f: _explicit_returns(f, lineage))
    moved = {f.name: p for f in program.functions.values() if (p := _permutation(f)) is not None}
    if not moved:
        return program
    sites = _CallSites(moved)

    def rewrite(function: Function) -> Function:
        if function.name in moved:
            function = _permute_function(function, moved[function.name])
        return sites.visit_function(function) if function.body is not None else function

    return map_functions(program, rewrite)
