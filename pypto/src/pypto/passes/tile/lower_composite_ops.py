"""LowerCompositeOps: operators without an instruction become sequences of ones that have one."""

from __future__ import annotations

from pypto.ir.expr import Call, GlobalVar
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt
from pypto.passes.lib.naming import base_name
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass
from pypto.passes.tile import composite  # noqa: F401  (registers the recipes)
from pypto.passes.tile.composite.recipes import RECIPES, Steps


@function_pass("LowerCompositeOps")
def lower_composite_ops(function: Function) -> Function:
    """Expand ``tile.sin``, ``tile.cos`` and the collectives of kernels; the last statement keeps the variable."""
    if function.body is None or not any(_recipe(c, function) for _, c in iter_calls(function.body)):
        return function
    count = 0

    def expand(stmts: list[Stmt]) -> list[Stmt]:
        nonlocal count
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            if type(stmt) is ReturnStmt and any(_recipe(v, function) for v in stmt.value if type(v) is Call):
                changed = True
                values = []
                for value in stmt.value:
                    recipe = _recipe(value, function) if type(value) is Call else None
                    if recipe is not None:
                        steps = Steps("t", count, value.span)
                        value = recipe(steps, value)
                        if isinstance(value, Call):
                            value = steps.let("result", value)
                        count = steps.count
                        result.extend(steps.stmts)
                    values.append(value)
                result.append(replace(stmt, value=tuple(values)))
                continue
            call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
            recipe = _recipe(call, function) if type(call) is Call else None
            if recipe is None:
                result.append(stmt)
                continue
            changed = True
            name = base_name(stmt.var.name_hint) if type(stmt) is AssignStmt else "t"
            steps = Steps(name, count, call.span)
            value = recipe(steps, call)
            count = steps.count
            result.extend(steps.stmts)
            if type(stmt) is AssignStmt:
                result.append(replace(stmt, value=value))
            elif isinstance(value, Call):
                result.append(replace(stmt, expr=value))
        return result if changed else stmts

    return with_body(function, rebuild_lists(function.body, expand))


def _recipe(call, function: Function):
    if call is None or isinstance(call.op, GlobalVar):
        return None
    recipe = RECIPES.get(call.op.name)
    return recipe if recipe is not None and recipe.applies(function) else None
