"""UnrollLoops: expand ``pl.unroll`` loops into copies of their body."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import ForKind
from pypto.ir.expr import ConstInt, Expr, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, YieldStmt, attach_leading_comments, flatten_to_stmts
from pypto.passes.lib.rewrite import clone, rebuild_lists, substitute, with_body
from pypto.passes.lib.separate_blocks import separate_blocks
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

MAX_TRIP_COUNT = 1024


@function_pass("UnrollLoops", produced=[P.UnrollResolved])
def unroll_loops(function: Function) -> Function:
    """Expand every loop of kind Unroll.

    Raises:
        ValueError: bounds that are no integer constants, a zero step, or more than 1024 iterations.
    """
    if function.body is None:
        return function
    new = with_body(function, rebuild_lists(function.body, _expand_list))
    return function if new is function else separate_blocks(new)


def _expand_list(stmts: list[Stmt]) -> list[Stmt]:
    if not any(_is_unroll(s) for s in stmts):
        return stmts
    result: list[Stmt] = []
    for stmt in stmts:
        result.extend(_expand(stmt) if _is_unroll(stmt) else [stmt])
    return result


def _is_unroll(stmt: Stmt) -> bool:
    return type(stmt) is ForStmt and stmt.kind is ForKind.Unroll


def _expand(loop: ForStmt) -> list[Stmt]:
    carried: tuple[Expr, ...] = tuple(arg.initValue for arg in loop.iter_args)
    result: list[Stmt] = []
    for value in _iterations(loop):
        var_map: dict[Var, Expr] = {loop.loop_var: ConstInt(value, loop.loop_var.type.dtype, loop.loop_var.span)}
        if loop.iter_args:
            var_map.update(zip(loop.iter_args, carried))
            body = flatten_to_stmts(clone(loop.body, var_map))
            if body and type(body[-1]) is YieldStmt:
                carried = body.pop().value
        else:
            # Before SSA a copy assigns to the same variables again; only the loop variable differs.
            body = flatten_to_stmts(substitute(loop.body, var_map))
        result.extend(body)
    result.extend(AssignStmt(var, value, loop.span) for var, value in zip(loop.return_vars, carried))
    if result and loop.leading_comments:
        first = replace(result[0])
        result[0] = attach_leading_comments(first, [*loop.leading_comments, *first.leading_comments])
    return result


def _iterations(loop: ForStmt) -> range:
    bounds = [const_value(b) for b in (loop.start, loop.stop, loop.step)]
    for name, value in zip(("start", "stop", "step"), bounds):
        if value is None:
            raise user_error(f"pl.unroll needs an integer constant as {name}; use pl.range for runtime bounds",
                             span=loop.span)  # fmt: skip
    if bounds[2] == 0:
        raise user_error("pl.unroll needs a step other than 0", span=loop.span)
    iterations = range(*bounds)
    if len(iterations) > MAX_TRIP_COUNT:
        raise user_error(
            f"pl.unroll trip count {len(iterations)} exceeds maximum allowed {MAX_TRIP_COUNT}; use pl.range",
            span=loop.span,
        )
    return iterations
