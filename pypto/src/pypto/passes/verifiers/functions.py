"""Properties of functions and of the call graph."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import Call, GlobalVar, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    ReturnStmt,
    ScopeStmt,
    SpmdScopeStmt,
    flatten_to_stmts,
)
from pypto.ir.types import TensorType
from pypto.ir.visitor import IRVisitor
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import iter_calls, iter_stmts
from pypto.passes.properties import IRProperty
from pypto.passes.stmt_dependency_analysis import inout_violations
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_register = PropertyVerifierRegistry.register

#: Operators that make a fresh tensor: binding their result to an Out parameter loses the parameter.
_CREATING = frozenset({"tensor.create", "tensor.full", "tensor.arange", "tensor.ci"})


class _GlobalReferences(IRVisitor):
    def __init__(self) -> None:
        self.found: list[Call | Submit] = []

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, GlobalVar):
            self.found.append(call)
        super().visit_call(call)

    def visit_submit(self, submit: Submit) -> None:
        self.found.append(submit)
        super().visit_submit(submit)


def _references(function: Function) -> list[Call | Submit]:
    """Calls and submits of functions, nested ones included."""
    visitor = _GlobalReferences()
    visitor.visit_stmt(function.body)
    return visitor.found


@_register(IRProperty.InlineFunctionsEliminated)
def verify_inline_eliminated(program: Program) -> list[Diagnostic]:
    """No Inline function and no reference to one."""
    rule = "InlineFunctionsEliminated"
    found: list[Diagnostic] = []
    inline = {f.name for f in program.functions.values() if f.func_type is FunctionType.Inline}
    for name in sorted(inline):
        found.append(error(rule, 1, f"Inline function '{name}' remains in the program", program[name].span))
    for function in defined_functions(program):
        for call in _references(function):
            name = call.op.name
            if name in inline or (isinstance(call, Submit) and program.get_function(name) is None):
                message = f"function '{function.name}' still refers to Inline function '{name}'"
                found.append(error(rule, 2, message, call.span))
    return found


@_register(IRProperty.OutParamNotShadowed)
def verify_out_param_not_shadowed(program: Program) -> list[Diagnostic]:
    """An Out or InOut parameter is not bound again to a fresh tensor."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        outs = {
            p for p, d in zip(function.params, function.param_directions) if d is not ParamDirection.In
        }  # fmt: skip
        if not outs:
            continue
        for stmt, call in iter_calls(function.body):
            if type(stmt) is AssignStmt and stmt.var in outs and call.op.name in _CREATING:
                message = (
                    f"parameter '{stmt.var.name_hint}' of function '{function.name}' is bound to a new tensor "
                    f"({call.op.name}), so nothing reaches the caller; give the new tensor another name"
                )
                found.append(error("OutParamNotShadowed", 1, message, stmt.span))
    return found


@_register(IRProperty.InOutUseValid)
def verify_inout_use(program: Program) -> list[Diagnostic]:
    """A tensor passed as InOut or Out is read afterwards through the call's result only.

    Returning the function's own parameter is no read: it names the argument that the caller gets back. Windows of
    distributed tensors are shared memory that several ranks write; they may be passed on as often as needed.
    """
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if function.func_type is not FunctionType.Group:
            found += inout_violations(function.body, program, function)
    return found


def _remaining_scopes(program: Program, scope: type, types: tuple, rule: str, text: str) -> list[Diagnostic]:
    return [
        error(rule, 1, f"{text} ScopeStmt found in function '{function.name}' (should have been outlined)", stmt.span)
        for function in defined_functions(program)
        if function.func_type in types
        for stmt in iter_stmts(function.body)
        if isinstance(stmt, scope)
    ]


@_register(IRProperty.HierarchyOutlined)
def verify_hierarchy_outlined(program: Program) -> list[Diagnostic]:
    """No hierarchy scope in an Opaque function."""
    return _remaining_scopes(program, HierarchyScopeStmt, (FunctionType.Opaque,), "HierarchyOutlined", "Hierarchy")


@_register(IRProperty.SplitIncoreOrch)
def verify_split_incore(program: Program) -> list[Diagnostic]:
    """No InCore scope in an Opaque function."""
    return _remaining_scopes(program, InCoreScopeStmt, (FunctionType.Opaque,), "SplitIncoreOrch", "InCore")


@_register(IRProperty.ClusterOutlined)
def verify_cluster_outlined(program: Program) -> list[Diagnostic]:
    """No cluster or spmd scope in functions that dispatch, none inside InCore functions."""
    types = (FunctionType.Opaque, FunctionType.Orchestration, FunctionType.InCore)
    found = _remaining_scopes(program, ClusterScopeStmt, types, "ClusterOutlined", "Cluster")
    return found + _remaining_scopes(program, SpmdScopeStmt, types, "ClusterOutlined", "Spmd")


@_register(IRProperty.OrchestrationReferencesResolved)
def verify_orchestration_references(program: Program) -> list[Diagnostic]:
    """Orchestration code calls functions of the program only."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if function.func_type is not FunctionType.Orchestration:
            continue
        for call in _references(function):
            if program.get_function(call.op.name) is None and "." not in call.op.name:  # operators have dotted names
                message = f"function '{function.name}' calls the undefined function '{call.op.name}'"
                found.append(error("OrchestrationReferencesResolved", 1, message, call.span))
    return found


@_register(IRProperty.ReturnParamsExplicit)
def verify_return_params_explicit(program: Program) -> list[Diagnostic]:
    """A returned tensor that writes back a parameter is that parameter."""
    from pypto.passes.lib.lineage import Lineage

    types = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Group, FunctionType.Spmd,
             FunctionType.Graph)  # fmt: skip
    found: list[Diagnostic] = []
    lineage = Lineage(program)
    for function in defined_functions(program):
        if function.func_type not in types:
            continue
        params = set(function.params)
        returns = [s for s in flatten_to_stmts(function.body) if type(s) is ReturnStmt]
        for stmt in returns:
            for value in stmt.value:
                if isinstance(value, Var) and isinstance(value.type, TensorType) and value not in params:
                    param = lineage.origins(function).get(value)
                    if param is not None:
                        message = (
                            f"function '{function.name}' returns '{value.name_hint}', which writes back parameter "
                            f"'{param.name_hint}', instead of the parameter itself"
                        )
                        found.append(error("ReturnParamsExplicit", 1, message, stmt.span))
    return found


@_register(IRProperty.ManualDepsOnSubmitOnly)
def verify_manual_deps(program: Program) -> list[Diagnostic]:
    """Dependencies of a launch are fields of a Submit, never attributes of a plain call of a function."""
    return [
        error(
            "ManualDepsOnSubmitOnly",
            1,
            f"call of '{call.op.name}' in function '{function.name}' carries attrs['manual_dep_edges']; a launch with "
            "dependencies is a Submit",
            stmt.span,
        )
        for function in defined_functions(program)
        for stmt, call in iter_calls(function.body)
        if type(call) is Call and isinstance(call.op, GlobalVar) and "manual_dep_edges" in call.attrs
    ]


@_register(IRProperty.RuntimeScopesMaterialized)
def verify_runtime_scopes(program: Program) -> list[Diagnostic]:
    """Every orchestration function has explicit runtime scopes."""
    return [
        error("RuntimeScopesMaterialized", 1, f"orchestration function '{f.name}' still has auto_scope", f.span)
        for f in program.functions.values()
        if f.func_type is FunctionType.Orchestration and f.attrs.get("auto_scope") is not False
    ]


@_register(IRProperty.IterArgCarryClassified)
def verify_iter_arg_carry(program: Program) -> list[Diagnostic]:
    """Every carried slot of an orchestration loop says how it is carried."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if function.func_type is not FunctionType.Orchestration:
            continue
        for stmt in iter_stmts(function.body):
            if type(stmt) is not ForStmt:
                continue
            for index in range(len(stmt.iter_args)):
                if f"iter_arg_rebind_{index}" not in stmt.attrs:
                    message = f"carried value {index} of a loop in function '{function.name}' is not classified"
                    found.append(error("IterArgCarryClassified", 1, message, stmt.span))
    return found


@_register(IRProperty.GraphOutlined)
def verify_graph_outlined(program: Program) -> list[Diagnostic]:
    """No graph region in any function."""
    return [
        error("GraphOutlined", 1, f"graph region found in function '{function.name}'", stmt.span)
        for function in defined_functions(program)
        for stmt in iter_stmts(function.body)
        if isinstance(stmt, ScopeStmt) and stmt.attrs.get("graph")
    ]
