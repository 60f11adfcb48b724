"""InlineFunctions: splice the bodies of ``Inline`` functions into their call sites and drop them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from pypto.errors import user_error
from pypto.ir.enums import FunctionType
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SpmdScopeStmt,
    Stmt,
    attach_leading_comments,
    flatten_to_stmts,
)
from pypto.ir.types import TupleType
from pypto.ir.visitor import IRMutator, IRVisitor
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import defined_vars, direct_uses, iter_stmts
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P


@program_pass("InlineFunctions", produced=[P.InlineFunctionsEliminated])
def inline_functions(program: Program) -> Program:
    """Expand statement-level calls of Inline functions.

    Raises:
        ValueError: Inline functions call each other in a cycle.
    """
    inline = {f.name: f for f in program.functions.values() if f.func_type is FunctionType.Inline}
    if not inline:
        return program
    numbers = itertools.count()
    expanded: dict[str, Function] = {}
    for name in _callees_first(inline):
        expanded[name] = _Splicer(expanded, numbers.__next__).run(inline[name])
    kept = [
        _Splicer(expanded, numbers.__next__).run(f)
        for f in program.functions.values()
        if f.func_type is not FunctionType.Inline
    ]
    return Program(kept, program.name, program.span)


class _CalledNames(IRVisitor):
    def __init__(self) -> None:
        self.names: list[str] = []

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, GlobalVar):
            self.names.append(call.op.name)
        super().visit_call(call)


def _callees_first(inline: dict[str, Function]) -> list[str]:
    """Inline functions ordered so that every function follows the ones it calls; an error for a cycle."""
    order: list[str] = []
    path: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise user_error(
                f"Cycle detected in the call graph of Inline functions: {cycle}; an Inline function is expanded at "
                "compile time and cannot call itself",
                span=inline[name].span,
            )
        path.append(name)
        called = _CalledNames()
        called.visit_function(inline[name])
        for callee in called.names:
            if callee in inline:
                visit(callee)
        path.pop()
        order.append(name)

    for name in inline:
        visit(name)
    return order


class _Rename(IRMutator):
    """Copies a body: variables of ``var_map`` are replaced at uses and at definitions."""


class _TupleElements(IRMutator):
    """Replaces ``t[i]`` by the i-th value for the tuple variables of ``values``."""

    def __init__(self, values: dict[Var, tuple[Expr, ...]]) -> None:
        super().__init__()
        self._values = values
        self.var_map = {var: MakeTuple(items, var.span) for var, items in values.items()}

    def visit_tuple_get_item_expr(self, value: TupleGetItemExpr) -> Expr:
        items = self._values.get(value.tuple) if type(value.tuple) is Var else None
        return super().visit_tuple_get_item_expr(value) if items is None else items[value.index]


class _CarryDumps(IRMutator):
    """Adds tensors to the dump lists of the dispatches and kernel scopes that use them."""

    def __init__(self, tagged: list[Var]) -> None:
        super().__init__()
        self._tagged = tagged

    def visit_call(self, call: Call) -> Expr:
        return self._marked(call, call.args) if isinstance(call.op, GlobalVar) else call

    def visit_submit(self, submit: Submit) -> Expr:
        return self._marked(submit, submit.args)

    def visit_in_core_scope_stmt(self, scope: InCoreScopeStmt) -> Stmt:
        return self._marked(scope, _names(scope.body))

    def visit_spmd_scope_stmt(self, scope: SpmdScopeStmt) -> Stmt:
        return self._marked(scope, _names(scope.body))

    def _marked(self, node: Any, used: Iterable[Expr]) -> Any:
        ids, listed = {id(v) for v in used}, node.attrs.get("dump_vars", [])
        known = {id(v) for v in listed}
        found = [v for v in self._tagged if id(v) in ids and id(v) not in known]
        return replace(node, attrs={**node.attrs, "dump_vars": [*listed, *found]}) if found else node


def _names(body: Stmt) -> list[Var]:
    """Every variable that the statements read."""
    return [v for stmt in iter_stmts(body) for v in direct_uses(stmt)]


class _Splicer:
    """Expands the calls of one function."""

    def __init__(self, inline: dict[str, Function], next_number: Callable[[], int]) -> None:
        self._inline = inline
        self._next = next_number
        self._tuples: dict[Var, tuple[Expr, ...]] = {}

    def run(self, function: Function) -> Function:
        if function.body is None:
            return function
        body = rebuild_lists(function.body, self._expand_list)
        if self._tuples:
            body = rebuild_lists(_TupleElements(self._tuples).visit_stmt(body), _drop_self_copies)
        return with_body(function, body)

    def _expand_list(self, stmts: list[Stmt]) -> list[Stmt]:
        if not any(self._callee(s) for s in stmts):
            return stmts
        result: list[Stmt] = []
        for stmt in stmts:
            callee = self._callee(stmt)
            result.extend([stmt] if callee is None else self._splice(stmt, callee))
        return result

    def _callee(self, stmt: Stmt) -> Function | None:
        kind = type(stmt)
        if kind is AssignStmt:
            value = stmt.value
        elif kind is EvalStmt:
            value = stmt.expr
        elif kind is ReturnStmt and len(stmt.value) == 1:
            value = stmt.value[0]
        else:
            return None
        if type(value) is Call and isinstance(value.op, GlobalVar):
            return self._inline.get(value.op.name)
        return None

    def _splice(self, stmt: Stmt, callee: Function) -> list[Stmt]:
        kind = type(stmt)
        call = stmt.value if kind is AssignStmt else stmt.expr if kind is EvalStmt else stmt.value[0]
        prologue, rename = self._bind(call, callee)
        body = [rename.visit_stmt(s) for s in flatten_to_stmts(callee.body)]
        if call.attrs.get("dump_vars"):
            # What the call was asked to dump is dumped where the expanded body hands it to a kernel.
            body = [_CarryDumps(call.attrs["dump_vars"]).visit_stmt(s) for s in body]
        values: tuple[Expr, ...] = ()
        if body and type(body[-1]) is ReturnStmt:
            values = body.pop().value
        result = prologue + body
        if kind is ReturnStmt:
            result.append(replace(stmt, value=values))
        elif kind is AssignStmt and values:
            if isinstance(stmt.var.type, TupleType):
                self._tuples[stmt.var] = values[0].elements if isinstance(values[0], MakeTuple) else values
            elif values[0] is not stmt.var:
                result.append(replace(stmt, value=values[0]))
        if result and stmt.leading_comments and result[0] is not stmt:
            first = replace(result[0])
            result[0] = attach_leading_comments(first, [*stmt.leading_comments, *first.leading_comments])
        return result

    def _bind(self, call: Call, callee: Function) -> tuple[list[Stmt], _Rename]:
        """Parameter copies to emit first, and the renaming of the body for this call site."""
        rename = _Rename()
        prologue: list[Stmt] = []
        rebound = _rebound_params(callee)
        for param, actual in zip(callee.params, call.args):
            if param in rebound and not (rebound[param] and isinstance(actual, Var)):
                # A plain rebinding is local to the callee: work on a copy, the caller's variable keeps its value.
                copy = self._fresh(param)
                prologue.append(AssignStmt(copy, actual, call.span))
                actual = copy
            rename.var_map[param] = actual
        for stmt in iter_stmts(callee.body):
            for var in defined_vars(stmt):
                if var not in rename.var_map:
                    rename.var_map[var] = self._fresh(var)
        return prologue, rename

    def _fresh(self, var: Var) -> Var:
        return replace(var, name_hint=f"{var.name_hint}_inline{self._next()}")


def _rebound_params(function: Function) -> dict[Var, bool]:
    """Parameter -> True when every assignment to it writes through it (its own storage is the result)."""
    params = set(function.params)
    found: dict[Var, bool] = {}
    for stmt in iter_stmts(function.body):
        for var in defined_vars(stmt):
            if var in params:
                through = type(stmt) is AssignStmt and _writes_through(stmt.value, var)
                found[var] = found.get(var, True) and through
    return found


def _writes_through(value: Expr, target: Var) -> bool:
    if not isinstance(value, Call):
        return False
    if isinstance(value.op, GlobalVar):
        return any(arg is target for arg in value.args)
    from pypto.ops.registry import find_op

    definition = find_op(value.op.name)
    index = definition.result_is_arg if definition else None
    return index is not None and index < len(value.args) and value.args[index] is target


def _drop_self_copies(stmts: list[Stmt]) -> list[Stmt]:
    kept = [s for s in stmts if not (type(s) is AssignStmt and s.value is s.var)]
    return kept if len(kept) != len(stmts) else stmts
