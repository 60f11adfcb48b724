"""DeriveCallDirections: write the runtime direction of every argument onto every call of a task."""

from __future__ import annotations

from pypto.ir.enums import ArgDirection, ForKind, FunctionType, ParamDirection
from pypto.ir.expr import Call, Expr, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TensorType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.rewrite import with_body
from pypto.passes.lib.tensor_roots import tensor_roots
from pypto.passes.lib.walk import iter_calls, map_functions, stmt_call
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)
_ORDER = {ParamDirection.In: 0, ParamDirection.Out: 1, ParamDirection.InOut: 2}


def _raised_wrappers(program: Program, lineage: Lineage) -> dict[str, Function]:
    """Group and Spmd functions whose parameters must say more than they declare, to a fixed point."""
    current = {f.name: f for f in program.functions.values() if f.func_type in _WRAPPERS and f.body is not None}
    roots = {name: tensor_roots(f, lineage) for name, f in current.items()}
    raised: dict[str, Function] = {}
    changed = bool(current)
    while changed:
        changed = False
        for name, function in current.items():
            directions = list(function.param_directions)
            index_of = {param: i for i, param in enumerate(function.params)}
            for _, call in iter_calls(function.body):
                if not is_user_call(call):
                    continue
                callee = current.get(call.op.name) or program.get_function(call.op.name)
                if callee is None:
                    continue
                for arg, direction in zip(call.args, callee.param_directions):
                    for root in roots[name].get(arg, ()) if isinstance(arg, Var) else ():
                        index = index_of.get(root)
                        if index is not None and _ORDER[direction] > _ORDER[directions[index]]:
                            directions[index] = direction
            if directions != function.param_directions:
                current[name] = raised[name] = replace(function, param_directions=directions)
                changed = True
    return raised


class _Directions:
    """Directions of the calls of one function."""

    def __init__(self, program: Program, function: Function, lineage: Lineage) -> None:
        self._program = program
        self._roots = tensor_roots(function, lineage)
        self._inout = {p for p, d in zip(function.params, function.param_directions) if d is ParamDirection.InOut}

    def rewrite(self, stmt: Stmt, written: set[Var], in_loop: bool) -> tuple[Stmt, set[Var]]:
        """(statement with directions, roots that it writes).

        Args:
            written: roots written by earlier siblings here and around.
            in_loop: inside a loop whose iterations run one after the other.
        """
        kind = type(stmt)
        if kind is SeqStmts:
            own: set[Var] = set()
            children = []
            for child in flatten_to_stmts(stmt):
                new, writes = self.rewrite(child, written | own if own else written, in_loop)
                own |= writes
                children.append(new)
            same = all(a is b for a, b in zip(children, stmt.stmts)) and len(children) == len(stmt.stmts)
            return (stmt if same else seq(children, stmt.span)), own
        if kind is AssignStmt or kind is EvalStmt:
            call = stmt_call(stmt)
            if call is None or not is_user_call(call):
                return stmt, set()
            new, writes = self._call(call, written, in_loop)
            if new is call:
                return stmt, writes
            field = "value" if kind is AssignStmt else "expr"
            return replace(stmt, **{field: new}), writes
        if kind is ForStmt or kind is WhileStmt:
            ordered = in_loop or kind is WhileStmt or stmt.kind is not ForKind.Parallel
            body, writes = self.rewrite(stmt.body, written, ordered)
            return (stmt if body is stmt.body else replace(stmt, body=body)), writes
        if kind is IfStmt:
            then_body, writes = self.rewrite(stmt.then_body, written, in_loop)
            else_body = stmt.else_body
            if else_body is not None:
                else_body, more = self.rewrite(else_body, written, in_loop)
                writes = writes | more
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt, writes
            return replace(stmt, then_body=then_body, else_body=else_body), writes
        if isinstance(stmt, ScopeStmt):
            body, writes = self.rewrite(stmt.body, written, in_loop)
            return (stmt if body is stmt.body else replace(stmt, body=body)), writes
        if kind is ReturnStmt:
            return self._return(stmt, written, in_loop)
        return stmt, set()

    def _return(self, stmt: ReturnStmt, written: set[Var], in_loop: bool) -> tuple[Stmt, set[Var]]:
        values, writes, changed = [], set(), False
        for value in stmt.value:
            if isinstance(value, (Call, Submit)) and is_user_call(value):
                new, more = self._call(value, written, in_loop)
                writes |= more
                changed = changed or new is not value
                value = new
            values.append(value)
        return (replace(stmt, value=tuple(values)) if changed else stmt), writes

    def _call(self, call: Call | Submit, written: set[Var], in_loop: bool) -> tuple[Expr, set[Var]]:
        callee = self._program.get_function(call.op.name)
        if callee is None:
            return call, set()
        writes: set[Var] = set()
        directions: list[ArgDirection] = []
        no_dep = set(call.attrs.get("arg_direction_overrides", ()))
        for index, (arg, direction) in enumerate(zip(call.args, callee.param_directions)):
            if not isinstance(arg.type, TensorType):
                directions.append(ArgDirection.Scalar)
                continue
            roots = self._roots.get(arg, frozenset()) if isinstance(arg, Var) else frozenset()
            if direction is ParamDirection.In:
                found = ArgDirection.Input
            elif direction is ParamDirection.InOut or in_loop or roots & written or roots & self._inout:
                found = ArgDirection.InOut
            else:
                found = ArgDirection.OutputExisting
            if direction is not ParamDirection.In:
                writes |= roots
            directions.append(ArgDirection.NoDep if index in no_dep else found)
        if call.attrs.get("arg_directions"):
            return call, writes
        others = {k: v for k, v in call.attrs.items() if k != "arg_directions"}
        return replace(call, attrs={"arg_directions": directions, **others}), writes


@program_pass("DeriveCallDirections", required=(P.SplitIncoreOrch,), produced=(P.CallDirectionsResolved,))
def derive_call_directions(program: Program) -> Program:
    """Raise wrapper parameter directions to what their bodies do, then give every user call ``arg_directions``."""
    lineage = Lineage(program)
    raised = _raised_wrappers(program, lineage)
    if raised:
        program = map_functions(program, lambda f: raised.get(f.name, f))

    def derive(function: Function) -> Function:
        if function.body is None or not any(is_user_call(call) for _, call in iter_calls(function.body)):
            return function
        body, _ = _Directions(program, function, lineage).rewrite(function.body, set(), False)
        return with_body(function, body)

    return map_functions(program, derive)
