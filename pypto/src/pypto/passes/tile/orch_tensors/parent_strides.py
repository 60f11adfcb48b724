"""Patterns 2 and 4: kernel parameters bound to windows of a larger tensor get that tensor's strides."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, ParamDirection, TensorLayout, is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var, const_index, const_value
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TensorType, TensorView, same_dims
from pypto.passes.lib import scalars
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import in_place_arg
from pypto.passes.lib.rewrite import Retype
from pypto.passes.lib.walk import iter_stmts, stmt_call

Strides = tuple[Expr, ...]


def use_parent_strides(program: Program) -> Program:
    """Give parameters the row-major strides of the tensor that every call site's window lies in."""
    functions = {f.name: f for f in program.functions.values()}
    wanted = _Wanted(program)
    for function in functions.values():
        if function.body is not None and not is_incore_type(function.func_type):
            wanted.read(function)
    changed = False
    for (name, index), strides in wanted.agreed().items():
        new = _with_strides(functions[name], index, strides)
        changed = changed or new is not functions[name]
        functions[name] = new
    return Program(list(functions.values()), program.name, program.span) if changed else program


class _Wanted:
    """Strides per parameter, as each call site needs them; None where a site passes something else."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lineage = Lineage(program)
        self._sites: dict[tuple[str, int], list[Strides | None]] = {}

    def read(self, function: Function) -> None:
        defined: dict[Var, Expr] = {}
        assembled = self._assembled(function)
        for stmt in iter_stmts(function.body):
            if type(stmt) is AssignStmt:
                defined[stmt.var] = stmt.value
            call = stmt_call(stmt)
            if call is None or not isinstance(call.op, GlobalVar):
                continue
            callee = self._program.get_function(call.op.name)
            if callee is None or not is_incore_type(callee.func_type) or function.func_type is FunctionType.Group:
                continue
            for index, arg in enumerate(call.args):
                if not isinstance(arg, Var) or not isinstance(arg.type, TensorType):
                    continue
                if index >= len(callee.params):
                    continue
                if callee.param_directions[index] is ParamDirection.In:
                    strides = _slice_strides(defined.get(arg))
                else:
                    strides = self._out_strides(stmt, call, index, assembled)
                self._sites.setdefault((callee.name, index), []).append(strides)

    def agreed(self) -> dict[tuple[str, int], Strides]:
        """Parameters for which all call sites want the same strides."""
        result: dict[tuple[str, int], Strides] = {}
        for key, sites in self._sites.items():
            first = sites[0]
            if first is not None and all(s is not None and same_dims(s, first) for s in sites):
                result[key] = first
        return result

    def _assembled(self, function: Function) -> dict[Var, TensorType]:
        """Value -> the tensor it is assembled into."""
        found: dict[Var, TensorType] = {}
        for stmt in iter_stmts(function.body):
            call = stmt_call(stmt)
            if call is not None and call.op.name == "tensor.assemble" and isinstance(call.args[1], Var):
                found[call.args[1]] = call.args[0].type
        self._projections = {
            (s.value.tuple, s.value.index): s.var
            for s in iter_stmts(function.body)
            if type(s) is AssignStmt and isinstance(s.value, TupleGetItemExpr) and isinstance(s.value.tuple, Var)
        }
        return found

    def _out_strides(
        self, stmt: Stmt, call: Call | Submit, index: int, assembled: dict[Var, TensorType]
    ) -> Strides | None:  # fmt: skip
        returned = self._lineage.returned_params(call.op.name)
        if type(stmt) is not AssignStmt or index not in returned:
            return None
        position = returned.index(index)
        result = self._projections.get((stmt.var, position))
        if result is None and position == 0 and isinstance(stmt.var.type, TensorType):
            result = stmt.var
        parent = assembled.get(result) if result is not None else None
        if parent is None or len(parent.shape) != len(call.args[index].type.shape):
            return None
        return row_major(parent)


def row_major(kind: TensorType) -> Strides | None:
    view = kind.tensor_view
    if view is not None and view.layout is not TensorLayout.ND:
        return None
    if view is not None and view.stride:
        return view.stride
    strides: list[Expr] = [const_index(1)]
    for extent in reversed(kind.shape[1:]):
        strides.append(scalars.mul(extent, strides[-1]))
    strides.reverse()
    return tuple(strides) if all(const_value(s) is not None for s in strides) else None


def _slice_strides(value: Expr | None) -> Strides | None:
    """Strides of a window that ``tensor.slice`` takes, None for any other value."""
    if not (isinstance(value, Call) and value.op.name == "tensor.slice"):
        return None
    parent = value.args[0].type
    strides = row_major(parent) if isinstance(parent, TensorType) else None
    if strides is None:
        return None
    dropped = {const_value(d) for d in value.args[4].elements} if len(value.args) > 4 else set()
    return tuple(s for axis, s in enumerate(strides) if axis not in dropped)


def _with_strides(function: Function, index: int, strides: Strides) -> Function:
    """The function with strides on one parameter and on what its stores return; the rest of the view stays."""
    param = function.params[index]
    kind = param.type
    view = kind.tensor_view
    if len(strides) != len(kind.shape) or (view is not None and (view.stride or view.layout is not TensorLayout.ND)):
        return function
    valid, pad = (view.valid_shape, view.pad) if view is not None else ((), None)
    default = make(TensorView, strides, TensorLayout.ND, valid, pad) if pad is not None else TensorView(
        stride=strides, layout=TensorLayout.ND, valid_shape=valid)  # fmt: skip
    new_type = replace(kind, tensor_view=default)
    types = {param: new_type}
    for stmt in iter_stmts(function.body):
        if type(stmt) is AssignStmt and isinstance(stmt.value, Call) and not isinstance(stmt.value.op, GlobalVar):
            target = in_place_arg(stmt.value)
            if target is not None and target < len(stmt.value.args) and stmt.value.args[target] in types:
                if isinstance(stmt.var.type, TensorType):
                    types[stmt.var] = new_type
    return RetypeCalls(types).visit_function(function)


class RetypeCalls(Retype):
    """Also gives the call behind a retyped variable its type."""

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        kind = self._types.get(stmt.var)
        new = super().visit_assign_stmt(stmt)
        if kind is not None and isinstance(new.value, Call):
            return replace(new, value=replace(new.value, type=kind))
        return new
