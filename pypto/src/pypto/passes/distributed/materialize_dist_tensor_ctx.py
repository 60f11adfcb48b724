"""MaterializeDistTensorCtx: pass the communication context of every window along with the window."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import ArgDirection, ParamDirection
from pypto.ir.expr import Call, Expr, MakeTuple, Submit, Var
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import CommCtxType, DistributedTensorType
from pypto.ops.registry import op_ref
from pypto.passes.distributed.host import is_host
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.naming import base_name
from pypto.passes.lib.op_facts import VIEWS, is_user_call
from pypto.passes.lib.walk import defined_vars, iter_stmts, map_functions, yielded
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

GET_CTX = "pld.system.get_comm_ctx"


def _is_window(value: Expr) -> bool:
    return isinstance(value.type, DistributedTensorType)


def _window_params(function: Function) -> list[int]:
    return [i for i, p in enumerate(function.params) if _is_window(p)]


def _has_contexts(function: Function) -> bool:
    return any(isinstance(p.type, CommCtxType) for p in function.params)


def _taken_names(function: Function) -> set[str]:
    names = {p.name_hint for p in function.params}
    for stmt in iter_stmts(function.body):
        names.update(v.name_hint for v in defined_vars(stmt))
    return names


class _Contexts:
    """Rewrites one function."""

    def __init__(self, function: Function, callees: dict[str, list[int]], lineage: Lineage) -> None:
        self._function, self._callees, self._lineage = function, callees, lineage
        self._host = is_host(function)
        self._names = _taken_names(function)
        self._tuples: dict[Var, Expr] = {}
        #: Window variable -> context variable.
        self._ctx: dict[Var, Var] = {}
        self._same: dict[Var, Var] = {}

    def run(self) -> Function:
        function = self._function
        if function.name in self._callees:
            contexts = []
            for index in self._callees[function.name]:
                param = function.params[index]
                ctx = Var(self._fresh(f"{base_name(param.name_hint)}_ctx"), CommCtxType.get(), param.span)
                self._ctx[param] = ctx
                contexts.append(ctx)
            function = replace(
                function,
                params=(*function.params, *contexts),
                param_directions=[*function.param_directions, *[ParamDirection.In] * len(contexts)],
            )
        if function.body is None:
            return function
        body = seq(self._list(flatten_to_stmts(function.body)), function.body.span)
        return replace(function, body=body)

    def _fresh(self, name: str) -> str:
        candidate, number = name, 0
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate

    # -- statements ---------------------------------------------------------------------------------------------

    def _list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            result.extend(self._stmt(stmt))
        return result

    def _body(self, body: Stmt) -> Stmt:
        before = dict(self._ctx)
        new = seq(self._list(flatten_to_stmts(body)), body.span)
        self._ctx = before
        return new

    def _stmt(self, stmt: Stmt) -> list[Stmt]:
        kind = type(stmt)
        if kind is AssignStmt:
            return self._assign(stmt)
        if kind is EvalStmt and isinstance(stmt.expr, (Call, Submit)):
            before, call = self._call(stmt.expr)
            return [*before, stmt if call is stmt.expr else replace(stmt, expr=call)]
        if kind is ReturnStmt:
            values, before = [], []
            for value in stmt.value:
                if isinstance(value, (Call, Submit)):
                    made, value = self._call(value)
                    before += made
                values.append(value)
            return [*before, replace(stmt, value=tuple(values))]
        if kind is ForStmt or kind is WhileStmt:
            for arg in stmt.iter_args:
                if _is_window(arg) and isinstance(arg.initValue, Var):
                    self._alias(arg, arg.initValue)
            body = self._body(stmt.body)
            for arg, result, value in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body)):
                if _is_window(arg):
                    if isinstance(value, Var) and self._root(value) is not self._root(arg):
                        raise user_error(
                            f"Rebinding loop-carried DistributedTensor '{arg.name_hint}' to another window is not "
                            "supported: its communication context would change between iterations",
                            span=stmt.span,
                        )
                    self._alias(result, arg)
            return [replace(stmt, body=body)]
        if kind is IfStmt:
            then_body = self._body(stmt.then_body)
            else_body = None if stmt.else_body is None else self._body(stmt.else_body)
            for result, a, b in zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body)):
                if _is_window(result) and isinstance(a, Var) and isinstance(b, Var) and self._root(a) is self._root(b):
                    self._alias(result, a)
            return [replace(stmt, then_body=then_body, else_body=else_body)]
        if isinstance(stmt, ScopeStmt):
            return [replace(stmt, body=self._body(stmt.body))]
        return [stmt]

    def _assign(self, stmt: AssignStmt) -> list[Stmt]:
        value = stmt.value
        before: list[Stmt] = []
        if isinstance(value, Call) and value.op.name == GET_CTX and not self._host:
            ctx = self._context_of(value.args[0])
            if ctx is not None:
                return [replace(stmt, value=ctx)]
        if isinstance(value, (Call, Submit)):
            before, value = self._call(value)
        if isinstance(stmt.value, (Call, Submit, MakeTuple)):
            self._tuples[stmt.var] = stmt.value
        if _is_window(stmt.var):
            source = self._lineage.alias_source(stmt.value, self._tuples)
            if source is None and isinstance(stmt.value, Call) and stmt.value.op.name in VIEWS:
                source = stmt.value.args[0]
            if isinstance(source, Var) and _is_window(source):
                self._alias(stmt.var, source)
        return [*before, stmt if value is stmt.value else replace(stmt, value=value)]

    # -- contexts -----------------------------------------------------------------------------------------------

    def _root(self, var: Var) -> Var:
        while var in self._same:
            var = self._same[var]
        return var

    def _alias(self, var: Var, source: Var) -> None:
        self._same[var] = source

    def _context_of(self, value: Expr) -> Var | None:
        if not isinstance(value, Var):
            return None
        return self._ctx.get(value) or self._ctx.get(self._root(value))

    def _call(self, call: Call | Submit) -> tuple[list[Stmt], Call | Submit]:
        """(context bindings, the call with contexts appended)."""
        indices = self._callees.get(call.op.name) if is_user_call(call) else None
        if not indices:
            return [], call
        before: list[Stmt] = []
        contexts: list[Var] = []
        for index in indices:
            if index >= len(call.args):
                raise self._lost(call, f"argument {index}")
            window = call.args[index]
            ctx = None if self._host else self._context_of(window)
            if ctx is None and self._host and isinstance(window, Var):
                ctx = self._ctx.get(window)
            if ctx is None:
                if not self._host or not _is_window(window):
                    raise self._lost(call, getattr(window, "name_hint", f"argument {index}"))
                ctx = Var(f"{base_name(window.name_hint)}_ctx", CommCtxType.get(), call.span)
                query = make(Call, op_ref(GET_CTX), (window,), {}, {}, CommCtxType.get(), call.span)
                before.append(AssignStmt(ctx, query, call.span))
                self._ctx[window] = ctx
            contexts.append(ctx)
        attrs = call.attrs
        if attrs.get("arg_directions"):
            attrs = {
                **attrs,
                "arg_directions": [*attrs["arg_directions"], *[ArgDirection.Scalar] * len(contexts)],
            }
        return before, replace(call, args=(*call.args, *contexts), attrs=attrs)

    def _lost(self, call: Call | Submit, what: str) -> Exception:
        return user_error(
            f"Cannot determine the communication context of '{what}' in the call of '{call.op.name}' from "
            f"'{self._function.name}'; pass a window parameter, a view of one, or what a callee returned for it",
            span=call.span,
        )


@program_pass(
    "MaterializeDistTensorCtx",
    required=(P.CommDomainScopesMaterialized, P.ReturnParamsExplicit),
    produced=(P.CommDomainScopesMaterialized, P.DistTensorCtxMaterialized),
)
def materialize_dist_tensor_ctx(program: Program) -> Program:
    """Append a ``CommCtxType`` parameter per window parameter and supply it at every call."""
    callees = {
        f.name: indices
        for f in program.functions.values()
        if not is_host(f) and not _has_contexts(f) and (indices := _window_params(f))
    }
    if not callees:
        return program
    lineage = Lineage(program)

    def rewrite(function: Function) -> Function:
        if function.name not in callees and function.body is not None and not _touches(function, callees):
            return function
        return _Contexts(function, callees, lineage).run()

    return map_functions(program, rewrite)


def _touches(function: Function, callees: dict[str, list[int]]) -> bool:
    for stmt in iter_stmts(function.body):
        values = (
            stmt.value if isinstance(stmt, ReturnStmt) else (getattr(stmt, "value", None), getattr(stmt, "expr", None))
        )
        if any(isinstance(v, (Call, Submit)) and v.op.name in callees for v in values if v is not None):
            return True
    return False
