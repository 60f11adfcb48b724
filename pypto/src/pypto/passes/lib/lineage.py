"""Which parameter a value is: through aliases, stores, carries, branches, tuples and calls."""

from __future__ import annotations

from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from pypto.ir.types import TensorType
from pypto.passes.lib.op_facts import is_user_call, same_object_arg
from pypto.passes.lib.walk import iter_stmts, yielded


class Lineage:
    """Return lineage of the functions of one program, computed on demand and kept."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._returned: dict[str, list[int | None]] = {}
        self._origins: dict[str, dict[Var, Var]] = {}
        self._busy: set[str] = set()

    def returned_params(self, name: str) -> list[int | None]:
        """Per returned value of a function: index of the parameter it is, or None."""
        found = self._returned.get(name)
        if found is not None:
            return found
        function = self._program.get_function(name)
        if function is None or name in self._busy:
            return []
        self._busy.add(name)
        origin = self.origins(function)
        position = {param: index for index, param in enumerate(function.params)}
        result: list[int | None] = []
        if function.body is None:
            # An external kernel writes its Out and InOut parameters and returns them in order.
            result = _declared_outputs(function)
        else:
            for stmt in iter_stmts(function.body):
                if type(stmt) is ReturnStmt:
                    values = [position.get(self._origin_of(v, origin)) for v in stmt.value]
                    result = values if not result else [a if a == b else None for a, b in zip(result, values)]
        self._busy.discard(name)
        self._returned[name] = result
        return result

    def _origin_of(self, value: Expr | None, origin: dict[Var, Var]) -> Var | None:
        """The parameter that a returned expression is; a call that writes a parameter in place counts."""
        while value is not None and not isinstance(value, Var):
            value = self.alias_source(value, {})
        return origin.get(value) if value is not None and isinstance(value.type, TensorType) else None

    def origins(self, function: Function) -> dict[Var, Var]:
        """Variable -> the parameter object it is, for every tensor of the function that is one."""
        found = self._origins.get(function.name)
        if found is None:
            found = self._trace(function)
            if function.name not in self._busy or function.body is None:
                self._origins[function.name] = found
        return found

    def call_alias(self, call: Call | Submit, index: int) -> Expr | None:
        """The argument that result ``index`` of a user call is, or None."""
        returned = self.returned_params(call.op.name)
        if index >= len(returned) or returned[index] is None or returned[index] >= len(call.args):
            return None
        return call.args[returned[index]]

    def alias_source(self, value: Expr, tuples: dict[Var, Expr]) -> Expr | None:
        """The expression that an assigned value is another name of, or None.

        Args:
            value: right-hand side of an assignment.
            tuples: tuple variables and the call or tuple expression that made them.
        """
        if isinstance(value, Var):
            return value
        if isinstance(value, TupleGetItemExpr):
            made = tuples.get(value.tuple) if isinstance(value.tuple, Var) else value.tuple
            if isinstance(made, MakeTuple):
                return made.elements[value.index]
            if isinstance(made, (Call, Submit)) and is_user_call(made):
                return self.call_alias(made, value.index)
            return None
        if isinstance(value, Call):
            if is_user_call(value):
                return self.call_alias(value, 0)
            arg = same_object_arg(value)
            return value.args[arg] if arg is not None and arg < len(value.args) else None
        return None

    def _trace(self, function: Function) -> dict[Var, Var]:
        origin: dict[Var, Var] = {p: p for p in function.params if isinstance(p.type, TensorType)}
        if function.body is not None:
            self._trace_body(function.body, origin, {})
        return origin

    def _trace_body(self, body: Stmt, origin: dict[Var, Var], tuples: dict[Var, Expr]) -> None:
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is AssignStmt:
                if isinstance(stmt.value, (Call, Submit, MakeTuple)):
                    tuples[stmt.var] = stmt.value
                source = self.alias_source(stmt.value, tuples)
                if source is not None and source in origin:
                    origin[stmt.var] = origin[source]
            elif kind is ForStmt or kind is WhileStmt:
                for arg in stmt.iter_args:
                    if arg.initValue in origin:
                        origin[arg] = origin[arg.initValue]
                self._trace_body(stmt.body, origin, tuples)
                for arg, result, value in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body)):
                    if arg in origin and origin.get(value) is origin[arg]:
                        origin[result] = origin[arg]
            elif kind is IfStmt:
                self._trace_body(stmt.then_body, origin, tuples)
                if stmt.else_body is not None:
                    self._trace_body(stmt.else_body, origin, tuples)
                    for var, a, b in zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body)):
                        if a in origin and origin.get(b) is origin[a]:
                            origin[var] = origin[a]
            elif isinstance(stmt, ScopeStmt):
                self._trace_body(stmt.body, origin, tuples)


def _declared_outputs(function: Function) -> list[int | None]:
    outs = [i for i, d in enumerate(function.param_directions) if d is not ParamDirection.In]
    return [outs[k] if k < len(outs) else None for k in range(len(function.return_types))]
