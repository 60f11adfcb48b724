"""Parameter directions from what a body does: operator effects and callee directions through every alias."""

from __future__ import annotations

from collections.abc import Callable

from pypto.ir.enums import ArgEffect, ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TensorType
from pypto.passes.lib.op_facts import VIEWS, arg_effect, in_place_arg
from pypto.passes.lib.walk import stmt_call, yielded

Access = tuple[bool, bool]  # (read, written)


class ParamAccess:
    """Which parameters of a function are read and written."""

    def __init__(self, function: Function, callee: Callable[[str], Function | None]) -> None:
        self._callee = callee
        self._root: dict[Var, Var] = {p: p for p in function.params if isinstance(p.type, TensorType)}
        self.read: set[Var] = set()
        self.written: set[Var] = set()
        if function.body is not None:
            self._walk(function.body)

    def _origin(self, value: Expr) -> Var | None:
        return self._root.get(value) if isinstance(value, Var) else None

    def _walk(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is ForStmt or kind is WhileStmt:
                for arg, result in zip(stmt.iter_args, stmt.return_vars):
                    origin = self._origin(arg.initValue)
                    if origin is not None:
                        self._root[arg] = self._root[result] = origin
                self._walk(stmt.body)
            elif kind is IfStmt:
                for branch in (stmt.then_body, stmt.else_body):
                    self._walk(branch)
                    for var, value in zip(stmt.return_vars, yielded(branch)):
                        origin = self._origin(value)
                        if origin is not None:
                            self._root[var] = origin
            elif isinstance(stmt, ScopeStmt):
                self._walk(stmt.body)
            else:
                call = stmt_call(stmt)
                if call is not None:
                    self._call(call)
                if kind is AssignStmt:
                    origin = self._alias(stmt.value)
                    if origin is not None:
                        self._root[stmt.var] = origin

    def _alias(self, value: Expr) -> Var | None:
        if isinstance(value, Var):
            return self._root.get(value)
        if isinstance(value, Call) and not isinstance(value.op, GlobalVar):
            index = 0 if value.op.name in VIEWS else in_place_arg(value)
            return self._origin(value.args[index]) if index is not None and index < len(value.args) else None
        if isinstance(value, TupleGetItemExpr):
            return self._origin(value.tuple)
        return None

    def _call(self, call: Call | Submit) -> None:
        directions = None
        if isinstance(call.op, GlobalVar):
            target = self._callee(call.op.name)
            directions = target.param_directions if target else []
        for index, arg in enumerate(call.args):
            for value in arg.elements if isinstance(arg, MakeTuple) else (arg,):
                origin = self._origin(value)
                if origin is None:
                    continue
                if directions is not None:
                    direction = directions[index] if index < len(directions) else ParamDirection.In
                    effect = _EFFECT_OF[direction]
                elif call.op.name in VIEWS:
                    continue
                elif call.op.name == "tile.store":
                    effect = ArgEffect.Write if index == 2 else ArgEffect.Read  # an atomic store moves nothing in
                else:
                    effect = arg_effect(call, index)
                if effect is not ArgEffect.Write:
                    self.read.add(origin)
                if effect is not ArgEffect.Read:
                    self.written.add(origin)


_EFFECT_OF = {
    ParamDirection.In: ArgEffect.Read,
    ParamDirection.Out: ArgEffect.Write,
    ParamDirection.InOut: ArgEffect.ReadWrite,
}


def raise_directions(function: Function, callee: Callable[[str], Function | None]) -> Function:
    """``In`` parameters that are written become Out, or InOut when they are read as well."""
    if ParamDirection.In not in function.param_directions or function.body is None:
        return function
    access = ParamAccess(function, callee)
    directions = [
        direction
        if direction is not ParamDirection.In or param not in access.written
        else ParamDirection.InOut
        if param in access.read
        else ParamDirection.Out
        for param, direction in zip(function.params, function.param_directions)
    ]
    return function if directions == function.param_directions else replace(function, param_directions=directions)
