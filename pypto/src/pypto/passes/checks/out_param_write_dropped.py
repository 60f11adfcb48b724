"""Warning: an Out parameter's name is bound to a value that never reaches the parameter."""

from __future__ import annotations

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
        if not _flows_from(stmt.value, stmt.var, sources, set()):
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


def _flows_from(value: Expr, param: Var, sources: dict[Var, list[Expr]], seen: set[Var]) -> bool:
    """Whether ``value`` is the storage of ``param``, directly or through writes, calls, aliases and carries."""
    if isinstance(value, (Var, IterArg)):
        if value is param:
            return True
        if value in seen:
            return False
        seen.add(value)
        return any(_flows_from(source, param, sources, seen) for source in sources.get(value, ()))
    if isinstance(value, TupleGetItemExpr):
        return _flows_from(value.tuple, param, sources, seen)
    if isinstance(value, MakeTuple):
        return any(_flows_from(e, param, sources, seen) for e in value.elements)
    if isinstance(value, Submit) or (isinstance(value, Call) and isinstance(value.op, GlobalVar)):
        return any(_flows_from(a, param, sources, seen) for a in value.args if isinstance(a, Var))
    if isinstance(value, Call):
        from pypto.ops.registry import find_op

        definition = find_op(value.op.name)
        if value.op.name.startswith("pld."):
            # Collectives write their target in place whatever operand it is.
            return any(_flows_from(v, param, sources, seen) for v in used_vars(value))
        index = definition.result_is_arg if definition else None
        return index is not None and index < len(value.args) and _flows_from(value.args[index], param, sources, seen)
    return False
