"""ConvertToSSA: one definition per variable, with loop carries and branch results made explicit."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.errors import VerificationError, internal_check_span, user_error
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, IterArg, Var
from pypto.ir.memref import MemRef
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import ScalarType, ShapedType, Type
from pypto.ir.visitor import IRMutator
from pypto.passes.context import VerificationLevel, active_verification_level
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity
from pypto.passes.lib.liveness import Liveness
from pypto.passes.lib.naming import DELIMITER, auto_name, base_name, is_automatic
from pypto.passes.lib.walk import defined_vars, iter_stmts
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


@function_pass("ConvertToSSA", produced=[P.SSAForm], invalidated=[P.NormalizedStmtStructure])
def convert_to_ssa(function: Function) -> Function:
    """Give every assignment its own variable.

    Names are ``<base>__ssa_v<n>``, carries ``__iter_v<n>``, loop results ``__rv_v<n>``, branch results
    ``__phi_v<n>``, with one counter per base name. Carries and results are ordered by base name.

    Raises:
        ValueError: a user's variable name contains the reserved ``__``.
    """
    if function.body is None:
        return function
    return _Converter(function).run()


class _Converter(IRMutator):
    """Walks in program order; ``var_map`` holds the current version of every variable."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._versions: dict[str, int] = {}
        self._loop_numbers: dict[str, int] = {}
        self._live = Liveness(function.body)
        self._multiple: set[Var] = _assigned_more_than_once(function)
        self._assigned: set[Var] = {v for s in iter_stmts(function.body) for v in defined_vars(s)}
        self._place = function.span
        self._verifying = active_verification_level() is not VerificationLevel.NONE
        self._out_params: list[Var] = []
        #: Promoted variable -> the Out parameter whose storage it names inside its loop.
        self._storage: dict[Var, tuple[Var, IterArg]] = {}

    # -- names --------------------------------------------------------------------------------------------------

    def _next(self, base: str) -> int:
        number = self._versions.get(base, 0)
        self._versions[base] = number + 1
        return number

    @staticmethod
    def _base(var: Var) -> str:
        name = var.name_hint
        if DELIMITER not in name[1:]:
            return name
        if not is_automatic(name):
            raise user_error(
                f"variable name '{name}' contains the reserved delimiter '{DELIMITER}', which is kept for names made "
                "by the compiler; rename it",
                span=var.span,
            )
        return base_name(name)

    def _new(self, var: Var, role: str, kind: Type) -> Var:
        base = self._base(var)
        return Var(auto_name(base, role, self._next(base)), kind, var.span)

    def visit_mem_ref(self, memref: MemRef) -> Expr:
        # The index of a slot may be a variable that has another version at every use.
        if memref.slot_index_ is None:
            return super().visit_mem_ref(memref)
        return self._rebuild(
            memref,
            base_=self.visit_expr(memref.base_),
            byte_offset_=self.visit_expr(memref.byte_offset_),
            slot_index_=self.visit_expr(memref.slot_index_),
        )

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        self._place = stmt.span
        return super().visit_stmt(stmt)

    def visit_var(self, var: Var) -> Expr:
        found = self.var_map.get(var)
        if found is not None:
            return found
        # Tensors and tiles are left to the SSA verifier, which lists all of them; a scalar without a version would
        # look like a symbolic extent to it.
        if type(var.type) is ScalarType and var in self._assigned and self._verifying:
            message = f"Variable '{var.name_hint}' used outside its defining scope in function '{self._function.name}'"
            finding = Diagnostic(DiagnosticSeverity.Error, "SSAVerify", 6, message, self._place)
            raise VerificationError(f"Verification failed in 'ConvertToSSA': {message} at {self._place}", [finding])
        return var

    # -- function and straight-line code ------------------------------------------------------------------------

    def run(self) -> Function:
        function = self._function
        params = []
        for param, direction in zip(function.params, function.param_directions):
            new = self._new(param, "ssa", self.visit_type(param.type))
            self.var_map[param] = new
            params.append(new)
            if direction is ParamDirection.Out:
                self._out_params.append(param)
        return self._rebuild(
            function,
            params=tuple(params),
            return_types=[self.visit_type(t) for t in function.return_types],
            attrs=self.visit_attrs(function.attrs),
            body=self._body(function.body),
        )

    def _body(self, body: Stmt) -> Stmt:
        result: list[Stmt] = []
        stmts = flatten_to_stmts(body)
        for position, stmt in enumerate(stmts):
            if type(stmt) is YieldStmt:
                internal_check_span(
                    position == len(stmts) - 1, f"YieldStmt at position {position} is not the last of its body",
                    stmt.span,
                )  # fmt: skip
            result.append(self.visit_stmt(stmt))
        return seq(result, body.span)

    visit_seq_stmts = _body

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        value = self.visit_expr(stmt.value)
        storage = self._storage.get(stmt.var)
        if storage is not None and isinstance(value, Call):
            value = _retarget(value, *storage)
        new = self._new(stmt.var, "ssa", self._assigned_type(stmt.var, value))
        self.var_map[stmt.var] = new
        return replace(stmt, var=new, value=value)

    def _assigned_type(self, var: Var, value: Expr) -> Type:
        """The declared type; a variable that is assigned repeatedly follows its value and keeps its MemRef."""
        kind, own = self.visit_type(var.type), value.type
        if var not in self._multiple or not isinstance(kind, ShapedType) or type(own) is not type(kind):
            return kind
        if own.dtype != kind.dtype or len(own.shape) != len(kind.shape):
            return kind
        if kind.memref is not None and own.memref is None:
            changes = {"memref": kind.memref}
            if getattr(own, "memory_space", None) is None:
                changes["memory_space"] = kind.memory_space
            return replace(own, **changes)
        return own

    # -- control flow -------------------------------------------------------------------------------------------

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        assigned_then = self._live.assigned(stmt.then_body)
        assigned_else = self._live.assigned(stmt.else_body)
        assigned = _ordered({*assigned_then, *assigned_else}, self._base)
        before = {var: self.var_map.get(var) for var in assigned}
        live = self._live.live_after(stmt)
        then_body, then_ends = self._branch(stmt.then_body, before)
        else_body, else_ends = self._branch(stmt.else_body, before)
        # An assignment inside a nested branch may leave a variable undefined on some path: then it has no result.
        results = [
            var
            for var in assigned
            if then_ends[var] is not None
            and else_ends[var] is not None
            and (var in live or (var in assigned_then and var in assigned_else))
        ]
        then_values = [then_ends[var] for var in results]
        else_values = [else_ends[var] for var in results]
        new_vars = []
        for var, a, b in zip(results, then_values, else_values):
            new = self._new(var, "phi", (a if before[var] is None or a is not before[var] else b).type)
            new_vars.append(new)
        explicit = []
        for var in stmt.return_vars:
            new = self._new(var, "rv", self.visit_type(var.type))
            self.var_map[var] = new
            explicit.append(new)
        self.var_map.update(zip(results, new_vars))
        has_else = stmt.else_body is not None or bool(results)
        return replace(
            stmt,
            condition=condition,
            then_body=_with_yield(then_body, then_values, stmt),
            else_body=_with_yield(else_body, else_values, stmt) if has_else else None,
            return_vars=(*explicit, *new_vars),
        )

    def _branch(self, body: Stmt | None, before: dict) -> tuple[Stmt, dict[Var, Expr | None]]:
        """The converted body and the version of every assigned variable at its end; the versions before return."""
        new = seq([]) if body is None else self._body(body)
        ends = {var: self.var_map.get(var) for var in before}
        self._restore(before)
        return new, ends

    def _restore(self, before: dict[Var, Expr | None]) -> None:
        for var, version in before.items():
            if version is None:
                self.var_map.pop(var, None)
            else:
                self.var_map[var] = version

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        attrs = self.visit_attrs(stmt.attrs)
        base = self._base(stmt.loop_var)
        number = self._loop_numbers.get(base, 0)
        loop_var = Var(auto_name(base, "idx", 0), self.visit_type(stmt.loop_var.type), stmt.loop_var.span)
        self._loop_numbers[base] = number + 1
        return self._loop(stmt, loop_var, **bounds, attrs=attrs)

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        return self._loop(stmt, None)

    def _loop(self, stmt: ForStmt | WhileStmt, loop_var: Var | None, **fields) -> Stmt:
        own = set(stmt.iter_args)
        if loop_var is not None:
            own.add(stmt.loop_var)
        assigned = self._live.assigned(stmt.body) - own
        before: dict[Var, Expr | None] = {var: self.var_map.get(var) for var in assigned}
        carried = _ordered([v for v in assigned if before[v] is not None], self._base)
        promoted = self._promoted(stmt, [v for v in assigned if before[v] is None])
        explicit = [self._explicit_carry(arg) for arg in stmt.iter_args]
        carries, results = [], []
        for var in _ordered([*carried, *promoted], self._base):
            init = before[var] if before[var] is not None else self.var_map[promoted[var]]
            name = self._base(var)
            arg = IterArg(auto_name(name, "iter", self._next(name)), init.type, init, var.span)
            carries.append((var, arg))
            results.append(Var(auto_name(name, "rv", self._next(name)), init.type, var.span))
            if var in promoted:
                self._storage[var] = (self.var_map[promoted[var]], arg)
        self.var_map.update(carries)
        if loop_var is not None:
            self.var_map[stmt.loop_var] = loop_var
            fields["loop_var"] = loop_var
        else:
            fields["condition"] = self.visit_expr(stmt.condition)
        body = self._body(stmt.body)
        values = [self.var_map[var] for var, _ in carries]
        self._restore(before)
        for var in promoted:
            del self._storage[var]
        explicit_results = []
        for var in stmt.return_vars:
            new = replace(var, type=self.visit_type(var.type))
            self.var_map[var] = new
            explicit_results.append(new)
        self.var_map.update(zip((var for var, _ in carries), results))
        return replace(
            stmt,
            **fields,
            iter_args=(*explicit, *(arg for _, arg in carries)),
            body=_with_yield(body, values, stmt),
            return_vars=(*explicit_results, *results),
        )

    def _explicit_carry(self, arg: IterArg) -> IterArg:
        """A carry written by the user keeps its name."""
        new = replace(arg, type=self.visit_type(arg.type), initValue=self.visit_expr(arg.initValue))
        self.var_map[arg] = new
        return new

    def _promoted(self, loop: Stmt, candidates: Iterable[Var]) -> dict[Var, Var]:
        """Variables first assigned in the loop and read after it -> the Out parameter they start from."""
        live = self._live.live_after(loop)
        found: dict[Var, Var] = {}
        for var in candidates:
            if var not in live or var not in self._live.assigned_transparently(loop.body):
                continue
            for param in self._out_params:
                if param in self.var_map and param.type == var.type:
                    found[var] = param
                    break
        return found

    # -- scopes -------------------------------------------------------------------------------------------------

    def _scope(self, stmt: ScopeStmt, **fields) -> Stmt:
        attrs = self.visit_attrs({k: v for k, v in stmt.attrs.items() if k != "task_id_var"})
        # Only runtime scopes and lane regions let a name escape to the loops around their end.
        restore = None
        if not isinstance(stmt, (RuntimeScopeStmt, SplitAivScopeStmt)):
            restore = self._live.confine(stmt, self.var_map)
        body = self._body(stmt.body)
        if restore is not None:
            restore()
        task_id = stmt.attrs.get("task_id_var")
        if task_id is not None:
            # The variable is seeded with an invalid id before the scope, and the scope fills that version.
            if task_id not in self.var_map:
                self.var_map[task_id] = self._new(task_id, "ssa", task_id.type)
            attrs = {k: self.var_map[task_id] if k == "task_id_var" else attrs[k] for k in stmt.attrs}
        return replace(stmt, **fields, attrs=dict(attrs), body=body)


def _ordered(variables: Iterable[Var], base) -> list[Var]:
    return sorted(variables, key=lambda var: (base(var), var.name_hint, var.unique_id))


def _assigned_more_than_once(function: Function) -> set[Var]:
    seen: set[Var] = set(function.params)
    multiple: set[Var] = set()
    for stmt in iter_stmts(function.body):
        if type(stmt) is AssignStmt:
            (multiple if stmt.var in seen else seen).add(stmt.var)
    return multiple


def _retarget(call: Call, storage: Expr, carry: IterArg) -> Call:
    """A write into the Out parameter behind a promoted variable goes through the loop carry."""
    from pypto.ops.registry import find_op

    definition = find_op(call.op.name)
    index = definition.result_is_arg if definition else None
    if index is None or index >= len(call.args) or call.args[index] is not storage:
        return call
    args = list(call.args)
    args[index] = carry
    return replace(call, args=tuple(args))


def _with_yield(body: Stmt, values: list[Expr], like: Stmt) -> Stmt:
    """``body`` ending in a yield of its own values followed by ``values``; an empty yield disappears."""
    stmts = flatten_to_stmts(body)
    if stmts and type(stmts[-1]) is YieldStmt:
        last = stmts[-1]
        if not values and last.value:
            return body
        own = (*last.value, *values)
        stmts = [*stmts[:-1], replace(last, value=own)] if own else stmts[:-1]
        return seq(stmts, body.span)
    return seq([*stmts, YieldStmt(values, like.span)], body.span) if values else body
