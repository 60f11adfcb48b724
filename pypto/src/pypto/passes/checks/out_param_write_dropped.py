"""Warning: an Out parameter's name is bound to a value that never reaches the parameter."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Submit, TupleGetItemExpr, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from pypto.passes.context import DiagnosticPhase
from pypto.passes.diagnostics import Diagnostic, DiagnosticCheck, DiagnosticCheckRegistry, DiagnosticSeverity
from pypto.passes.lib.walk import iter_stmts, used_vars, yielded

_RULE = "OutParamWriteDropped"


@DiagnosticCheckRegistry.register(
    DiagnosticCheck.OutParamWriteDropped, DiagnosticSeverity.Warning, DiagnosticPhase.PRE_PIPELINE
)
def check_dropped_writes(program: Program) -> list[Diagnostic]:
    """Assignments to Out and InOut parameters whose value does not come from the parameter."""
    found: list[Diagnostic] = []
    for function in program.functions.values():
        if function.body is not None:
            _check(function, found)
    return found


def _check(function: Function, found: list[Diagnostic]) -> None:
    outs = {p: d for p, d in zip(function.params, function.param_directions) if d is not ParamDirection.In}
    if not outs:
        return
    sources = _sources(function)
    reported: set[Var] = set()
    for stmt in iter_stmts(function.body):
        if type(stmt) is not AssignStmt or stmt.var not in outs or stmt.var in reported:
            continue
        if not _flows_from(stmt.value, stmt.var, sources):
            reported.add(stmt.var)
            name = stmt.var.name_hint
            message = (
                f"{outs[stmt.var].name} parameter '{name}' of function '{function.name}' is bound to a value that is "
                f"never written to it, so the caller sees nothing; write '{name}[:] = <expr>' to store the value"
            )
            found.append(Diagnostic(DiagnosticSeverity.Warning, _RULE, 0, message, stmt.span))


def _sources(function: Function) -> dict[Var, list[Expr]]:
    """Variable -> the expressions that may be its value."""
    sources: dict[Var, list[Expr]] = {}
    for stmt in iter_stmts(function.body):
        if type(stmt) is AssignStmt:
            sources.setdefault(stmt.var, []).append(stmt.value)
        elif isinstance(stmt, IfStmt):
            for body in (stmt.then_body, stmt.else_body):
                for var, value in zip(stmt.return_vars, yielded(body)):
                    sources.setdefault(var, []).append(value)
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            for arg, var, value in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body)):
                sources.setdefault(arg, []).append(arg.initValue)
                sources.setdefault(var, []).append(value)
    return sources


def _flows_from(value: Expr, param: Var, sources: dict[Var, list[Expr]]) -> bool:
    """Whether ``value`` is the storage of ``param``, directly or through writes, calls, aliases and carries."""
    seen: set[Var] = set()
    pending: list[Expr] = [value]
    while pending:
        current = pending.pop()
        if current is param:
            return True
        if not isinstance(current, (Var, IterArg)):
            pending.extend(_origins(current))
        elif current not in seen:
            seen.add(current)
            pending.extend(sources.get(current, ()))
    return False


def _origins(value: Expr) -> Iterable[Expr]:
    """Expressions whose storage may be that of ``value``."""
    if isinstance(value, TupleGetItemExpr):
        return (value.tuple,)
    if isinstance(value, MakeTuple):
        return value.elements
    if isinstance(value, Submit) or (isinstance(value, Call) and isinstance(value.op, GlobalVar)):
        return [a for a in value.args if isinstance(a, Var)]
    if isinstance(value, Call):
        from pypto.ops.registry import find_op

        definition = find_op(value.op.name)
        if value.op.name.startswith("pld."):
            # Collectives write their target in place whatever operand it is.
            return used_vars(value)
        index = definition.result_is_arg if definition else None
        return () if index is None else value.args[index : index + 1]
    return ()
