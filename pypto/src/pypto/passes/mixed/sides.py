"""The body of one core of a mixed kernel: keep what runs there, repair what referred to the rest."""

from __future__ import annotations

from collections import Counter

from pypto.errors import InternalError
from pypto.ir.enums import ArgEffect
from pypto.ir.expr import Call, Expr, Submit, Var
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TensorType
from pypto.ops.registry import find_op
from pypto.passes.lib.core_affinity import PLACEMENT, Affinity, stmt_affinity
from pypto.passes.lib.op_facts import FREES, POPS, PUSHES, arg_effect, same_object_arg
from pypto.passes.lib.rewrite import Substitution, clone
from pypto.passes.lib.walk import direct_uses, iter_stmts, stmt_call, used_vars, yielded
from pypto.passes.mixed.crossings import cube_side, vector_side


class Side:
    """Builds the body of ``side`` (CUBE or VECTOR) from the body of a mixed kernel."""

    def __init__(self, function: Function, side: Affinity, origins: dict[Var, Var]) -> None:
        self._function, self._side, self._origins = function, side, origins
        self._affinity: dict[Stmt, Affinity] = {}
        #: Replacement of tensor names whose defining statement is on the other core.
        self._aliases: dict[Var, Expr] = {}
        self._dropped: dict[Var, AssignStmt] = {}

    def build(self) -> list[Stmt]:
        """The statements of this core."""
        stmts = self._list(flatten_to_stmts(self._function.body))
        if self._aliases:
            stmts = flatten_to_stmts(Substitution(dict(self._resolved()), in_types=False).visit_stmt(seq(stmts)))
        params = set(self._function.params)
        stmts = _Carries(params).list(self._restored(stmts, params))
        stmts = remove_dead(stmts)
        stmts = remove_dead(_Carries(params).list(stmts))
        self._check(stmts, params)
        return stmts

    # -- selection ----------------------------------------------------------------------------------------------

    def _list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            kept = self._stmt(stmt)
            if kept and stmt.leading_comments and not kept[0].leading_comments:
                kept[0].leading_comments[:] = stmt.leading_comments
            result.extend(kept)
        return result

    def _stmt(self, stmt: Stmt) -> list[Stmt]:
        affinity = stmt_affinity(stmt, self._affinity)
        call = stmt_call(stmt)
        if call is not None:
            if affinity is Affinity.BOUNDARY:
                return cube_side(stmt) if self._side is Affinity.CUBE else vector_side(stmt)
            if affinity is Affinity.SHARED or affinity & self._side:
                return [_placed(stmt, call)]
            self._drop(stmt, call)
            return []
        if isinstance(stmt, ReturnStmt):
            return [] if self._side is Affinity.CUBE else [stmt]
        if isinstance(stmt, SplitAivScopeStmt):
            return self._list(flatten_to_stmts(stmt.body))
        if not isinstance(stmt, (ForStmt, WhileStmt, IfStmt, ScopeStmt)):
            return [stmt]
        if affinity is not Affinity.SHARED and not affinity & self._side:
            self._drop_compound(stmt)
            return []
        if isinstance(stmt, IfStmt):
            else_body = None if stmt.else_body is None else self._body(stmt.else_body)
            return [replace(stmt, then_body=self._body(stmt.then_body), else_body=else_body)]
        return [replace(stmt, body=self._body(stmt.body))]

    def _body(self, body: Stmt) -> Stmt:
        return seq(self._list(flatten_to_stmts(body)), body.span)

    def _drop(self, stmt: Stmt, call: Call | Submit) -> None:
        if type(stmt) is not AssignStmt:
            return
        self._dropped[stmt.var] = stmt
        if isinstance(stmt.var.type, TensorType) and isinstance(call, Call):
            index = same_object_arg(call)
            if index is not None:
                self._aliases[stmt.var] = call.args[index]

    def _drop_compound(self, stmt: Stmt) -> None:
        for inner in iter_stmts(stmt):
            call = stmt_call(inner)
            if call is not None:
                self._drop(inner, call)
            if isinstance(inner, (ForStmt, WhileStmt)):
                for arg, result in zip(inner.iter_args, inner.return_vars):
                    if isinstance(result.type, TensorType):
                        self._aliases[result] = arg.initValue
            elif isinstance(inner, IfStmt):
                for result in inner.return_vars:
                    if isinstance(result.type, TensorType) and result in self._origins:
                        self._aliases[result] = self._origins[result]

    def _resolved(self):
        for var in self._aliases:
            value: Expr = var
            followed: set[Expr] = set()
            # Before SSA a name may be stored into itself (``out = store(t, at, out)``), so a chain may be a circle.
            while value in self._aliases and value not in followed:
                followed.add(value)
                value = self._aliases[value]
            if value is not var:
                yield var, value

    # -- repair -------------------------------------------------------------------------------------------------

    def _restored(self, stmts: list[Stmt], params: set[Var]) -> list[Stmt]:
        """Bring back definitions of initial values that only the other core kept."""
        missing = [v for v in _undefined(stmts, params, only_inits=True) if v in self._dropped]
        restored: list[Stmt] = []
        seen: set[Var] = set()

        def bring(var: Var) -> None:
            stmt = self._dropped.get(var)
            if stmt is None or var in seen or not is_pure(stmt):
                return
            seen.add(var)
            for used in used_vars(stmt.value):
                bring(used)
            restored.append(stmt)

        for var in missing:
            bring(var)
        return [*restored, *stmts] if restored else stmts

    def _check(self, stmts: list[Stmt], params: set[Var]) -> None:
        missing = set(_undefined(stmts, params))
        if missing:
            # Dynamic extents are variables without a definition in the kernel as well.
            missing -= set(_undefined(flatten_to_stmts(self._function.body), params))
        if missing:
            core = "cube" if self._side is Affinity.CUBE else "vector"
            names = ", ".join(sorted({v.name_hint for v in missing}))
            raise InternalError(
                f"kernel '{self._function.name}': the {core} core reads {names}, which only the other core computes; "
                "move tiles between the cores with tile.move",
                span=self._function.span,
            )


def _placed(stmt: Stmt, call: Call | Submit) -> Stmt:
    if PLACEMENT not in call.attrs:
        return stmt
    call = replace(call, attrs={k: v for k, v in call.attrs.items() if k != PLACEMENT})
    return replace(stmt, value=call) if type(stmt) is AssignStmt else replace(stmt, expr=call)


def _undefined(stmts: list[Stmt], params: set[Var], only_inits: bool = False) -> list[Var]:
    """Variables read without a definition."""
    defined = set(params)
    missing: list[Var] = []

    def walk(body: list[Stmt]) -> None:
        for stmt in body:
            if not only_inits:
                missing.extend(v for v in direct_uses(stmt) if v not in defined)
            if isinstance(stmt, (ForStmt, WhileStmt)):
                if only_inits:
                    inits = [a.initValue for a in stmt.iter_args]
                    missing.extend(v for v in inits if isinstance(v, Var) and v not in defined)
                if isinstance(stmt, ForStmt):
                    defined.add(stmt.loop_var)
                defined.update(stmt.iter_args)
                walk(flatten_to_stmts(stmt.body))
                defined.update(stmt.return_vars)
            elif isinstance(stmt, IfStmt):
                walk(flatten_to_stmts(stmt.then_body))
                walk(flatten_to_stmts(stmt.else_body))
                defined.update(stmt.return_vars)
            elif isinstance(stmt, ScopeStmt):
                walk(flatten_to_stmts(stmt.body))
            elif type(stmt) is AssignStmt:
                defined.add(stmt.var)

    walk(stmts)
    return missing


class _Carries:
    """Removes loop carries and if results whose values stayed on the other core."""

    def __init__(self, params: set[Var]) -> None:
        self._visible = set(params)
        self._map: dict[Var, Expr] = {}
        self._replace = Substitution(self._map)

    def list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            new = self._stmt(stmt)
            if self._map:
                new = self._replace.visit_stmt(new)
            result.append(new)
            if type(new) is AssignStmt:
                self._visible.add(new.var)
            elif isinstance(new, (ForStmt, WhileStmt, IfStmt)):
                self._visible.update(new.return_vars)
        return result

    def _stmt(self, stmt: Stmt) -> Stmt:
        if self._map:
            stmt = self._replace.visit_stmt(stmt)
        if isinstance(stmt, (ForStmt, WhileStmt)):
            return self._loop(stmt)
        if isinstance(stmt, IfStmt):
            return self._branch(stmt)
        if isinstance(stmt, ScopeStmt):
            return replace(stmt, body=self._nested(stmt.body))
        return stmt

    def _nested(self, body: Stmt) -> Stmt:
        return seq(self.list(flatten_to_stmts(body)), body.span)

    def _loop(self, stmt: ForStmt | WhileStmt) -> Stmt:
        inner_defs = set(stmt.iter_args)
        if isinstance(stmt, ForStmt):
            inner_defs.add(stmt.loop_var)
        self._visible |= inner_defs
        body = self._nested(stmt.body)
        values = yielded(body)
        condition_reads = set(used_vars(stmt.condition)) if isinstance(stmt, WhileStmt) else set()
        gone = []
        for index, (arg, value) in enumerate(zip(stmt.iter_args, values)):
            missing = isinstance(value, Var) and value not in self._visible
            lost_init = isinstance(arg.initValue, Var) and arg.initValue not in self._visible
            if (value is arg or missing or lost_init) and arg not in condition_reads:
                gone.append(index)
        if not gone:
            return replace(stmt, body=body)
        keep = [i for i in range(len(stmt.iter_args)) if i not in gone]
        replaced = {}
        for index in gone:
            init = stmt.iter_args[index].initValue
            replaced[stmt.iter_args[index]] = init
            replaced[stmt.return_vars[index]] = init
        self._map.update(replaced)
        body = self._replace.visit_stmt(_select_yield(body, keep))
        return replace(
            stmt,
            body=body,
            iter_args=tuple(stmt.iter_args[i] for i in keep),
            return_vars=tuple(stmt.return_vars[i] for i in keep),
        )

    def _branch(self, stmt: IfStmt) -> Stmt:
        then_body = self._nested(stmt.then_body)
        else_body = None if stmt.else_body is None else self._nested(stmt.else_body)
        keep = []
        for index, values in enumerate(zip(yielded(then_body), yielded(else_body))):
            if all(not isinstance(v, Var) or v in self._visible for v in values):
                if isinstance(values[0], Var) and values[0] is values[1]:
                    self._map[stmt.return_vars[index]] = values[0]
                else:
                    keep.append(index)
        if len(keep) < len(stmt.return_vars):
            then_body = _select_yield(then_body, keep)
            else_body = _select_yield(else_body, keep)
        return replace(
            stmt,
            then_body=then_body,
            else_body=else_body,
            return_vars=tuple(stmt.return_vars[i] for i in keep),
        )


def _select_yield(body: Stmt, keep: list[int]) -> Stmt:
    stmts = flatten_to_stmts(body)
    if not stmts:
        return body
    last = stmts[-1]
    if isinstance(last, YieldStmt):
        values = tuple(last.value[i] for i in keep)
        tail = [make(YieldStmt, values, last.span, last.leading_comments)] if values else []
        return seq([*stmts[:-1], *tail], body.span)
    if isinstance(last, ScopeStmt):
        return seq([*stmts[:-1], replace(last, body=_select_yield(last.body, keep))], body.span)
    return body


# -- dead code --------------------------------------------------------------------------------------------------


def is_pure(stmt: Stmt) -> bool:
    """Removing the statement changes nothing but its own result."""
    if type(stmt) is not AssignStmt:
        return False
    value = stmt.value
    if isinstance(value, Submit):
        return False
    if not isinstance(value, Call):
        return True
    name = value.op.name
    definition = find_op(name)
    if (
        definition is None
        or name in POPS
        or name in PUSHES
        or name in FREES
        or not name.startswith(("tile.", "tensor."))
    ):
        return False
    return all(arg_effect(value, i) is ArgEffect.Read for i in range(len(value.args)))


def remove_dead(stmts: list[Stmt]) -> list[Stmt]:
    """Remove pure statements whose result nobody reads, and loops and branches that hold nothing."""
    reads: Counter[Var] = Counter()
    for stmt in stmts:
        for node in iter_stmts(stmt):
            reads.update(direct_uses(node))
    return _sweep(stmts, reads)


def _sweep(stmts: list[Stmt], reads: Counter[Var]) -> list[Stmt]:
    kept: list[Stmt] = []
    for stmt in reversed(stmts):
        if type(stmt) is AssignStmt and not reads[stmt.var] and is_pure(stmt):
            reads.subtract(direct_uses(stmt))
            continue
        if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
            body = _sweep(flatten_to_stmts(stmt.body), reads)
            if _holds_nothing(body) and not any(reads[v] for v in getattr(stmt, "return_vars", ())):
                for node in body:
                    reads.subtract(direct_uses(node))
                reads.subtract(direct_uses(stmt))
                continue
            stmt = replace(stmt, body=seq(body, stmt.body.span))
        elif isinstance(stmt, IfStmt):
            then_body = _sweep(flatten_to_stmts(stmt.then_body), reads)
            else_body = _sweep(flatten_to_stmts(stmt.else_body), reads)
            if _holds_nothing(then_body) and _holds_nothing(else_body) and not any(reads[v] for v in stmt.return_vars):
                for node in (*then_body, *else_body):
                    reads.subtract(direct_uses(node))
                reads.subtract(direct_uses(stmt))
                continue
            new_else = seq(else_body, stmt.else_body.span) if else_body else None
            stmt = replace(stmt, then_body=seq(then_body, stmt.then_body.span), else_body=new_else)
        kept.append(stmt)
    kept.reverse()
    return kept


def _holds_nothing(body: list[Stmt]) -> bool:
    return all(isinstance(s, YieldStmt) for s in body)


def private_copy(stmts: list[Stmt], params: tuple[Var, ...]) -> tuple[list[Stmt], tuple[Var, ...]]:
    """Statements and parameters with identities of their own, so that two functions share no variable."""
    mapping: dict[Var, Expr] = {p: replace(p) for p in params}
    new_params = tuple(mapping[p] for p in params)
    if not stmts:
        return [], new_params
    return flatten_to_stmts(clone(seq(stmts), mapping)), new_params
