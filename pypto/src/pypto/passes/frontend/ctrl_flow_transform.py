"""CtrlFlowTransform: remove ``break`` and ``continue`` from code that runs on a core."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, is_incore_type
from pypto.ir.expr import Add, And, ConstBool, Expr, Gt, Lt, Not, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import scalar_type
from pypto.passes.lib.naming import auto_name, base_name
from pypto.passes.lib.rewrite import substitute, with_body
from pypto.passes.lib.separate_blocks import separate_blocks
from pypto.passes.lib.walk import defined_vars, iter_stmts, used_vars
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


@function_pass("CtrlFlowTransform", produced=[P.StructuredCtrlFlow])
def ctrl_flow_transform(function: Function) -> Function:
    """Rewrite loops of InCore-type functions and of InCore scopes in other functions.

    ``continue`` turns the rest of the body into the other branch; a loop with ``break`` becomes a while loop over an
    explicit index and a flag. Loops outside InCore code are left as they are: the task graph runs them as written.
    """
    if function.body is None:
        return function
    transform = _Transform()
    if is_incore_type(function.func_type):
        body = transform.body(function.body)
    else:
        body = transform.scopes_only(function.body)
    # What followed a jump is there once per path.
    return function if body is function.body else separate_blocks(with_body(function, body))


class _Transform:
    """The rewrite of one function; it numbers the variables it makes."""

    def __init__(self) -> None:
        self._count = 0

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    def scopes_only(self, body: Stmt) -> Stmt:
        """Rewrite inside InCore scopes."""
        return self._map_bodies(body, incore=False)

    def body(self, body: Stmt) -> Stmt:
        """Rewrite every loop of ``body``, inner loops first."""
        return self._map_bodies(body, incore=True)

    def _map_bodies(self, body: Stmt, *, incore: bool) -> Stmt:
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        for stmt in old:
            new.extend(self._stmt(stmt, incore=incore))
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    def _stmt(self, stmt: Stmt, *, incore: bool) -> list[Stmt]:
        if isinstance(stmt, IfStmt):
            then_body = self._map_bodies(stmt.then_body, incore=incore)
            else_body = None if stmt.else_body is None else self._map_bodies(stmt.else_body, incore=incore)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return [stmt]
            return [replace(stmt, then_body=then_body, else_body=else_body)]
        if not isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
            return [stmt]
        body = self._map_bodies(stmt.body, incore=incore or isinstance(stmt, InCoreScopeStmt))
        if body is not stmt.body:
            stmt = replace(stmt, body=body)
        if not incore or isinstance(stmt, ScopeStmt):
            return [stmt]
        return self._loop(stmt)

    def _loop(self, loop: ForStmt | WhileStmt) -> list[Stmt]:
        stmts = flatten_to_stmts(loop.body)
        if _jumps(stmts, ContinueStmt):
            stmts = self._lower_continue(stmts, loop.iter_args)
            loop = replace(loop, body=seq(stmts, loop.body.span))
        sequential = isinstance(loop, WhileStmt) or loop.kind is ForKind.Sequential
        if sequential and _jumps(stmts, BreakStmt):
            return self._without_break(loop, stmts)
        return [loop]

    # -- continue -----------------------------------------------------------------------------------------------

    def _lower_continue(self, stmts: list[Stmt], carried: tuple) -> list[Stmt]:
        return self._lower(stmts, ContinueStmt, [YieldStmt(carried)] if carried else [], carried, ends=())

    def _lower(
        self, stmts: list[Stmt], jump: type, leave: list[Stmt], carried: tuple, ends: tuple[Stmt, ...]
    ) -> list[Stmt]:
        """``stmts`` without ``jump``: where it stood come the statements ``leave``, and what follows is skipped.

        The statements after a branch that may jump move into its paths that do not. With ``carried`` values every
        path ends in a yield, and the branch gets results that the loop body yields. ``ends`` close both paths of a
        branch that jumps itself.
        """
        for position, stmt in enumerate(stmts):
            if type(stmt) is jump:
                return [*stmts[:position], *leave]
            if isinstance(stmt, IfStmt) and _jumps([stmt], jump):
                rest = stmts[position + 1 :]
                then_stmts = self._path(stmt.then_body, rest, stmt.return_vars, jump, leave, carried, ends)
                else_stmts = self._path(stmt.else_body, rest, stmt.return_vars, jump, leave, carried, ends)
                if ends and not carried and _jumps_here(stmt, jump):
                    then_stmts, else_stmts = [*then_stmts, *ends], [*else_stmts, *ends]
                results: tuple[Var, ...] = ()
                if carried:
                    results = tuple(
                        Var(auto_name(base_name(a.name_hint), "phi", self._number()), a.type, a.span) for a in carried
                    )
                # The paths have taken over the branch's own results (see _path).
                branch = replace(
                    stmt,
                    then_body=seq(then_stmts, stmt.span),
                    else_body=seq(else_stmts, stmt.span),
                    return_vars=results,
                )
                tail: list[Stmt] = [YieldStmt(results, stmt.span)] if carried else []
                return [*stmts[:position], branch, *tail]
            if isinstance(stmt, ScopeStmt) and _jumps([stmt], jump):
                # A scope runs once: the jump inside it skips the rest of the scope and what follows it.
                inner = self._lower([*flatten_to_stmts(stmt.body), *stmts[position + 1 :]], jump, leave, carried, ends)
                return [*stmts[:position], replace(stmt, body=seq(inner, stmt.span))]
        return stmts

    def _path(
        self,
        body: Stmt | None,
        rest: list[Stmt],
        results: tuple[Var, ...],
        jump: type,
        leave: list[Stmt],
        carried: tuple,
        ends: tuple,
    ) -> list[Stmt]:
        """One path through a branch and on through ``rest``, which reads what the branch yields for ``results``."""
        stmts = flatten_to_stmts(body)
        if results and stmts and type(stmts[-1]) is YieldStmt:
            values = dict(zip(results, stmts.pop().value))
            rest = [substitute(s, dict(values)) for s in rest]
        return self._lower([*stmts, *rest], jump, leave, carried, ends)

    # -- break --------------------------------------------------------------------------------------------------

    def _without_break(self, loop: ForStmt | WhileStmt, stmts: list[Stmt]) -> list[Stmt]:
        flag = Var(auto_name("break", "tmp", self._number()), scalar_type(DataType.BOOL), loop.span)
        not_left = Not(flag, DataType.BOOL, loop.span)
        leave: list[Stmt] = [AssignStmt(flag, ConstBool(True, loop.span), loop.span)]
        if loop.iter_args:
            leave.append(YieldStmt(loop.iter_args, loop.span))
        start_flag = AssignStmt(flag, ConstBool(False, loop.span), loop.span)
        if isinstance(loop, WhileStmt):
            body = self._lower(stmts, BreakStmt, leave, loop.iter_args, (YieldStmt((), loop.span),))
            condition = And(loop.condition, not_left, DataType.BOOL, loop.span)
            new = replace(loop, condition=condition, body=seq(body, loop.body.span))
            return _keep_comments(loop, [start_flag, new])
        index = Var(auto_name(base_name(loop.loop_var.name_hint), "idx", self._number()), loop.loop_var.type, loop.span)
        prologue: list[Stmt] = [AssignStmt(index, loop.start, loop.span), start_flag]
        stop, step = (self._fixed(bound, loop, prologue) for bound in (loop.stop, loop.step))
        stmts = flatten_to_stmts(substitute(seq(stmts, loop.span), {loop.loop_var: index}))
        body = self._lower(stmts, BreakStmt, leave, loop.iter_args, (YieldStmt((), loop.span),))
        advance = IfStmt(
            not_left,
            AssignStmt(index, Add(index, step, loop.loop_var.type.dtype, loop.span), loop.span),
            None,
            (),
            loop.span,
        )
        tail: list[Stmt] = [body.pop()] if body and type(body[-1]) is YieldStmt else []
        step_value = const_value(step)
        compare = Gt if step_value is not None and step_value < 0 else Lt
        condition = And(
            compare(index, stop, DataType.BOOL, loop.span), not_left, DataType.BOOL, loop.span
        )  # fmt: skip
        new = WhileStmt(condition, loop.iter_args, seq([*body, advance, *tail]), loop.return_vars, loop.span)
        return _keep_comments(loop, [*prologue, new])

    def _fixed(self, bound: Expr, loop: ForStmt, prologue: list[Stmt]) -> Expr:
        """``bound`` as it was before the loop: bound to a name when the body assigns one of its variables."""
        read = set(used_vars(bound))
        if not read or not any(v in read for s in iter_stmts(loop.body) for v in defined_vars(s)):
            return bound
        name = Var(auto_name("bound", "tmp", self._number()), bound.type, loop.span)
        prologue.append(AssignStmt(name, bound, loop.span))
        return name


def _keep_comments(old: Stmt, new: list[Stmt]) -> list[Stmt]:
    if old.leading_comments:
        new[0] = attach_leading_comments(replace(new[0]), list(old.leading_comments))
        if getattr(new[-1], "leading_comments", None):
            new[-1] = replace(new[-1], leading_comments=[])
    return new


def _jumps_here(branch: IfStmt, jump: type) -> bool:
    """Whether a path of ``branch`` jumps itself, not only through a branch inside it."""
    return any(type(s) is jump for body in (branch.then_body, branch.else_body) for s in flatten_to_stmts(body))


def _jumps(stmts: list[Stmt], jump: type) -> bool:
    """Whether one of ``stmts`` holds a jump that belongs to the loop around them."""
    for stmt in stmts:
        if type(stmt) is jump:
            return True
        if type(stmt) is SeqStmts and _jumps(list(stmt.stmts), jump):
            return True
        if isinstance(stmt, IfStmt) and (
            _jumps(flatten_to_stmts(stmt.then_body), jump) or _jumps(flatten_to_stmts(stmt.else_body), jump)
        ):
            return True
        if isinstance(stmt, ScopeStmt) and _jumps(flatten_to_stmts(stmt.body), jump):
            return True
    return False
