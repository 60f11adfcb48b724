"""Moving scopes into functions of their own: captures, results, directions, names and the dispatch left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pypto.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from pypto.ir.memref import MemRef
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
    attach_leading_comments,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TupleType, Type, UnknownType, scalar_type
from pypto.ir.visitor import IRMutator, type_exprs
from pypto.passes.lib.directions import infer_directions
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.naming import auto_name, base_name
from pypto.passes.lib.op_facts import in_place_arg
from pypto.passes.lib.rewrite import Substitution
from pypto.passes.lib.uses import count_reads, count_reads_below
from pypto.passes.lib.walk import defined_vars, direct_uses, iter_stmts, used_vars

_SUBMIT_ATTRS = ("task_id_var", "manual_dep_edges", "predicate", "allow_early_resolve")
_VERSION = re.compile(r"^(.+?)__(?:\w+_)?v(\d+)$")


class Namespace:
    """Function names of a program while scopes are moved out of it."""

    def __init__(self, program: Program) -> None:
        self.functions: dict[str, Function] = {f.name: f for f in program.functions.values()}
        self._owner: dict[str, str] = {}

    def get_function(self, name: str) -> Function | None:
        return self.functions.get(name)

    def choose(self, hint: str, owner: str) -> str:
        """``hint``, numbered when ``owner`` used it already, prefixed by ``owner`` when another function did."""
        name = hint
        if name in self.functions and self._owner.get(name) != owner:
            name = f"{owner}_{hint}"
        base, number = name, 0
        while name in self.functions:
            name, number = f"{base}_{number}", number + 1
        return name

    def add(self, function: Function, owner: str) -> None:
        self.functions[function.name] = function
        self._owner[function.name] = owner


@dataclass
class Target:
    """What a scope becomes."""

    name: str
    func_type: FunctionType
    attrs: dict[str, Any] = field(default_factory=dict)
    #: Attributes of a plain dispatch; ``core_num`` and ``sync_start`` are fields of a Submit.
    launch: dict[str, Any] = field(default_factory=dict)
    level: Any = None
    role: Any = None
    #: A stored capture comes back as a result (not for hierarchy scopes, whose buffers the caller sees anyway).
    export_stores: bool = True


#: Decides about a scope: the function it becomes, or None to leave it in place.
Choose = Callable[[ScopeStmt], "Target | None"]
#: Last look at a new function and the launch attributes of its dispatch: (function, launch, captures) -> both.
Finish = Callable[[Function, dict, "list[Expr]"], "tuple[Function, dict]"]


class Outliner(IRMutator):
    """Moves the scopes that ``choose`` accepts out of one function in SSA form."""

    def __init__(self, function: Function, names: Namespace, choose: Choose, finish: Finish | None = None) -> None:
        super().__init__()
        self._function = function
        self._names = names
        self._choose = choose
        self._finish = finish
        self._reads = count_reads(function)
        self._own: set[Var] = set(function.params)
        self._versions: dict[str, int] = {}
        for stmt in iter_stmts(function.body):
            self._own.update(defined_vars(stmt))
            if isinstance(stmt, ScopeStmt) and stmt.attrs.get("task_id_var") is not None:
                self._own.add(stmt.attrs["task_id_var"])
        for var in self._own:
            match = _VERSION.match(var.name_hint)
            if match:
                base = match.group(1)
                self._versions[base] = max(self._versions.get(base, -1), int(match.group(2)))
        self._tuples = 0
        self._local: list[dict[Var, Expr | None]] = []
        self.outlined: list[Function] = []

    def run(self) -> Function:
        """The function with dispatches where its scopes were; ``outlined`` lists the new functions."""
        self._local.append({})
        body = self.visit_stmt(self._function.body)
        return self._rebuild(self._function, body=body)

    # -- walking ------------------------------------------------------------------------------------------------

    def _nested(self, body: Stmt | None) -> Stmt | None:
        """A body whose renamings of captured variables end with it."""
        if body is None:
            return None
        self._local.append({})
        new = self.visit_stmt(body)
        for var, old in self._local.pop().items():
            if old is None:
                self.var_map.pop(var, None)
            else:
                self.var_map[var] = old
        return new

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        return self._rebuild(
            stmt,
            condition=self.visit_expr(stmt.condition),
            then_body=self._nested(stmt.then_body),
            else_body=self._nested(stmt.else_body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        return self._rebuild(
            stmt,
            **{name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")},
            iter_args=self.visit_iter_args(stmt.iter_args),
            loop_var=self.visit_def(stmt.loop_var),
            attrs=self.visit_attrs(stmt.attrs),
            body=self._nested(stmt.body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        return self._rebuild(
            stmt,
            iter_args=self.visit_iter_args(stmt.iter_args),
            condition=self.visit_expr(stmt.condition),
            body=self._nested(stmt.body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_seq_stmts(self, stmt) -> Stmt:
        children: list[Stmt] = []
        for child in stmt.stmts:
            new = self.visit_stmt(child)
            if isinstance(child, ScopeStmt) and not isinstance(new, ScopeStmt) and children:
                task_id = child.attrs.get("task_id_var")
                if task_id is not None and _seeds(children[-1], task_id):
                    children.pop()  # the launch defines the id now
            children.append(new)
        same = len(children) == len(stmt.stmts) and all(a is b for a, b in zip(children, stmt.stmts))
        return stmt if same else seq(children, stmt.span)

    def _scope(self, stmt: ScopeStmt, **fields: Any) -> Stmt:
        target = self._choose(stmt)
        if target is None:
            return super()._scope(stmt, **fields)
        return self._outline(stmt, target)

    # -- one scope ----------------------------------------------------------------------------------------------

    def _outline(self, scope: ScopeStmt, target: Target) -> Stmt:
        body = flatten_to_stmts(scope.body)
        captured, defined = self._captures(scope.body)
        params, rename = self._params(captured)
        stores = _captured_stores(scope.body, set(captured)) if target.export_stores else []
        rebound = {v for v in captured if v in defined}
        inside = Substitution(dict(rename))
        for var in rebound:
            stored = next((s for s in stores if _stored_var(s) is var), None)
            if stored is None:
                raise InternalError(
                    f"scope captures '{var.name_hint}' and binds it again by something other than a store; "
                    "ConvertToSSA must run first",
                    span=scope.span,
                )
        new_body = self._body(body, inside, rename, stores, rebound)
        targets = _first_store_per_target(stores)
        ordinary = self._ordinary_results(scope, defined, {_stored_var(s) for s in targets})
        values: list[Expr] = [inside.visit_expr(v) for v in ordinary]
        values += [rename[_store_target(s)] for s in reversed(targets)]
        function = self._function_of(target, params, values, new_body, scope)
        function = self._with_returns(function)
        if target.export_stores:
            directions = infer_directions(function.params, function.body, self._names.get_function)
            function = replace(
                function,
                param_directions=[
                    ParamDirection.In if type(c) is not Var else directions[p]
                    for c, p in zip(captured, function.params)
                ],
            )
        launch = dict(target.launch)
        args = [self.visit_expr(v) for v in captured]
        if self._finish is not None:
            function, launch = self._finish(function, launch, args)
        self._names.add(function, self._function.name)
        self.outlined.append(function)
        results: list[tuple[Var, Var | None]] = [(v, None) for v in ordinary]
        results += [(_stored_var(s), _store_target(s)) for s in reversed(targets)]
        return self._launch_stmts(scope, function, args, captured, launch, results)

    def _captures(self, body: Stmt) -> tuple[list[Var], dict[Var, None]]:
        """(variables of the parent that the body reads, in order of first use; variables it defines, in order)."""
        defined: dict[Var, None] = {}
        captured: dict[Var, None] = {}
        in_types: list[Var] = []
        for stmt in iter_stmts(body):
            carries = stmt.iter_args if type(stmt) is WhileStmt else ()  # read by the condition
            for var in direct_uses(stmt):
                if var not in defined and var in self._own and not any(var is c for c in carries):
                    captured[var] = None
            for var in defined_vars(stmt):
                defined[var] = None
                for expr in type_exprs(var.type):
                    in_types.extend(_plain_vars(expr))
            if isinstance(stmt, ScopeStmt) and stmt.attrs.get("task_id_var") is not None:
                defined[stmt.attrs["task_id_var"]] = None
        # A scalar of the parent that only a type mentions has to come along as well.
        pending = [*in_types, *(v for c in captured for e in type_exprs(c.type) for v in _plain_vars(e))]
        for var in pending:
            if var in self._own and var not in captured and var not in defined:
                captured[var] = None
        return list(captured), defined

    def _params(self, captured: list[Var]) -> tuple[list[Var], dict[Var, Expr]]:
        rename: dict[Var, Expr] = {}
        types = Substitution(rename)
        params: list[Var] = []
        # Scalars first: types of other captures may mention them.
        for var in captured:
            if not type_exprs(var.type):
                rename[var] = Var(var.name_hint, var.type, var.span)
        for var in captured:
            if var not in rename:
                rename[var] = Var(var.name_hint, types.visit_type(var.type), var.span)
            params.append(rename[var])  # type: ignore[arg-type]
        return params, rename

    def _body(
        self, body: list[Stmt], inside: Substitution, rename: dict, stores: list[Stmt], rebound: set[Var]
    ) -> list[Stmt]:
        """The statements over the parameters; the first store into a capture is followed by its alias."""
        aliased = {id(s) for s in _first_store_per_target(stores)}
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, ScopeStmt) and any(_holds(stmt, s) for s in stores):
                inner = self._body(flatten_to_stmts(stmt.body), inside, rename, stores, rebound)
                attrs = inside.visit_attrs(stmt.attrs)
                result.append(replace(stmt, body=seq(inner, stmt.body.span), attrs=attrs))
            elif type(stmt) is AssignStmt and stmt.var in rebound:
                # Not in SSA form: the name of a capture is bound again, the parameter keeps its own.
                value = inside.visit_expr(stmt.value)
                stored = Var(base_name(stmt.var.name_hint) + "__store", stmt.var.type, stmt.var.span)
                inside.var_map[stmt.var] = stored
                result.append(replace(stmt, var=stored, value=value))
            elif id(stmt) in aliased and type(stmt) is EvalStmt:
                value = inside.visit_expr(stmt.expr)
                stored = Var(base_name(_store_target(stmt).name_hint) + "__store", value.type, stmt.span)
                result.append(AssignStmt(stored, value, stmt.span, list(stmt.leading_comments)))
            else:
                new = inside.visit_stmt(stmt)
                result.append(new)
                if id(stmt) in aliased and type(new) is AssignStmt:
                    alias = Var(base_name(_store_target(stmt).name_hint) + "__store", new.var.type, stmt.span)
                    result.append(AssignStmt(alias, new.var, stmt.span))
        return result

    def _ordinary_results(self, scope: ScopeStmt, defined: dict[Var, None], stored: set[Var]) -> list[Var]:
        inner = count_reads_below(scope.body)
        visible = set(_visible_definitions(scope.body))
        return [v for v in defined if v in visible and v not in stored and self._reads[v] > inner[v]]

    def _function_of(
        self, target: Target, params: list[Var], values: list[Expr], body: list[Stmt], scope: ScopeStmt
    ) -> Function:
        statements = [*body, ReturnStmt(values, scope.span)]
        return Function(
            target.name,
            params,
            [v.type for v in values],
            seq(statements, scope.body.span),
            scope.span,
            type=target.func_type,
            level=target.level,
            role=target.role,
            attrs=target.attrs,
        )

    def _with_returns(self, function: Function) -> Function:
        """Results that write through a parameter are that parameter."""
        stmts = flatten_to_stmts(function.body)
        last = stmts[-1]
        if not last.value:
            return replace(function, body=seq(stmts[:-1], function.body.span))
        origins = Lineage(self._names).origins(function)  # type: ignore[arg-type]
        values = tuple(origins.get(v, v) if isinstance(v, Var) else v for v in last.value)
        return replace(
            function,
            body=seq([*stmts[:-1], replace(last, value=values)], function.body.span),
            return_types=[v.type for v in values],
        )

    # -- the dispatch -------------------------------------------------------------------------------------------

    def _launch_stmts(
        self,
        scope: ScopeStmt,
        function: Function,
        args: list[Expr],
        captured: list[Var],
        launch: dict,
        results: list[tuple[Var, Var | None]],
    ) -> Stmt:
        task_id = scope.attrs.get("task_id_var")
        submit = any(scope.attrs.get(key) for key in _SUBMIT_ATTRS)
        attrs = self._call_attrs(scope, captured)
        types: list[Type] = list(function.return_types)
        if submit:
            id_type = scalar_type(DataType.TASK_ID)
            kind: Type = TupleType((*types, id_type)) if types else id_type
            predicate = scope.attrs.get("predicate")
            call: Call | Submit = make(
                Submit,
                GlobalVar(function.name),
                tuple(args),
                tuple(self.visit_expr(d) for d in scope.attrs.get("manual_dep_edges") or ()),
                {},
                attrs,
                kind,
                scope.span,
                launch.get("core_num"),
                bool(launch.get("sync_start")),
                bool(scope.attrs.get("allow_early_resolve")),
                None if predicate is None else self.visit_expr(predicate),
            )
        else:
            kind = types[0] if len(types) == 1 else TupleType(tuple(types)) if types else UnknownType.get()
            call = make(
                Call, GlobalVar(function.name), tuple(args), {}, {**attrs, **launch}, kind, scope.span
            )  # fmt: skip
        new_vars = [self._result_var(var, target) for var, target in results]
        stmts = self._bind(call, new_vars, task_id, submit, scope)
        for (var, target), new in zip(results, new_vars):
            if target is not None:
                self._rename_locally(target, new)
            if var is not target:  # a bare store names its target itself
                self.var_map[var] = new
        if scope.leading_comments and stmts:
            attach_leading_comments(stmts[0], list(scope.leading_comments))
        return seq(stmts, scope.span)

    def _bind(
        self, call: Call | Submit, results: list[Var], task_id: Var | None, submit: bool, scope: ScopeStmt
    ) -> list[Stmt]:
        span = scope.span
        if not submit and len(results) <= 1:
            return [AssignStmt(results[0], call, span) if results else EvalStmt(call, span)]
        if submit and not results:  # the value is the task id itself
            return [EvalStmt(call, span) if task_id is None else AssignStmt(self.visit_def(task_id), call, span)]
        whole = Var(auto_name("ret", "tmp", self._tuples), call.type, span)
        self._tuples += 1
        stmts: list[Stmt] = [AssignStmt(whole, call, span)]
        for index, var in enumerate(results):
            stmts.append(AssignStmt(var, TupleGetItemExpr(whole, index, span), span))
        if task_id is not None:
            stmts.append(AssignStmt(self.visit_def(task_id), TupleGetItemExpr(whole, len(results), span), span))
        return stmts

    def _call_attrs(self, scope: ScopeStmt, captured: list[Var]) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        overridden = scope.attrs.get("arg_direction_overrides_vars")
        if overridden:
            attrs["arg_direction_overrides"] = [
                i for i, var in enumerate(captured) if any(var is o for o in overridden)
            ]  # fmt: skip
        dumped = scope.attrs.get("dump_vars")
        if dumped:
            attrs["dump_vars"] = [self.visit_expr(v) for v in dumped]
        return attrs

    def _result_var(self, var: Var, target: Var | None) -> Var:
        if target is None:
            return Var(var.name_hint, self.visit_type(var.type), var.span)
        base = base_name(target.name_hint)
        if base not in self._versions:
            return Var(var.name_hint, self.visit_type(var.type), var.span)
        number = self._versions[base] = self._versions[base] + 1
        return Var(auto_name(base, "ssa", number), self.visit_type(var.type), var.span)

    def _rename_locally(self, var: Var, new: Var) -> None:
        """From here to the end of the enclosing body, ``var`` (its storage was written) is read as ``new``."""
        self._local[-1].setdefault(var, self.var_map.get(var))
        self.var_map[var] = new


def _holds(scope: Stmt, wanted: Stmt) -> bool:
    return any(s is wanted for s in iter_stmts(scope))


def _seeds(stmt: Stmt, task_id: Var) -> bool:
    """``task_id = system.task_invalid()``."""
    return (
        type(stmt) is AssignStmt
        and stmt.var is task_id
        and isinstance(stmt.value, Call)
        and stmt.value.op.name == "system.task_invalid"
    )


def _plain_vars(expr: Expr) -> list[Var]:
    return [] if isinstance(expr, MemRef) else used_vars(expr)


def _store_target(stmt: Stmt) -> Var:
    call = stmt.value if type(stmt) is AssignStmt else stmt.expr
    return call.args[in_place_arg(call)]


def _stored_var(stmt: Stmt) -> Var:
    """The variable that names the tensor after a store; a bare store keeps the name of its target."""
    return stmt.var if type(stmt) is AssignStmt else _store_target(stmt)


def _captured_stores(body: Stmt, captured: set[Var]) -> list[Stmt]:
    """``r = tile.store(.., c)`` or a bare ``tile.store(.., c)`` with a captured ``c``, in order; not inside loops."""
    found: list[Stmt] = []
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, ScopeStmt):
            found.extend(_captured_stores(stmt.body, captured))
            continue
        call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
        if isinstance(call, Call) and call.op.name == "tile.store" and len(call.args) > 2:
            if call.args[2] in captured:
                found.append(stmt)
    return found


def _first_store_per_target(stores: list[Stmt]) -> list[Stmt]:
    seen: set[Var] = set()
    found: list[Stmt] = []
    for stmt in stores:
        target = _store_target(stmt)
        if target not in seen:
            seen.add(target)
            found.append(stmt)
    return found


def _visible_definitions(body: Stmt) -> list[Var]:
    """Variables that stay visible after ``body``: those of its own level and of scopes inside it."""
    found: list[Var] = []
    for stmt in flatten_to_stmts(body):
        if type(stmt) is AssignStmt:
            found.append(stmt.var)
        elif isinstance(stmt, (IfStmt, ForStmt, WhileStmt)):
            found.extend(stmt.return_vars)
        elif isinstance(stmt, ScopeStmt):
            found.extend(_visible_definitions(stmt.body))
            if stmt.attrs.get("task_id_var") is not None:
                found.append(stmt.attrs["task_id_var"])
    return found
