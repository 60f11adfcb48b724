"""InjectGMPipeBuffer: give kernels whose pipe runs through GM a workspace parameter."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection, TensorLayout, is_orchestration_like
from pypto.ir.expr import Call, GlobalVar, MakeTuple, Submit, Var, const_index
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt
from pypto.ir.types import TensorType
from pypto.passes.context import backend_handler
from pypto.passes.lib.op_facts import INIT_PIPES
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, map_functions
from pypto.passes.mixed.crossings import op_call
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

#: Code generation finds the parameter by this name and the placeholder by this prefix.
PARAM = "__gm_pipe_buffer"
PLACEHOLDER = "gm_pipe_buffer_"


def _tensor() -> TensorType:
    return TensorType((const_index(1),), DataType.FP32)


def _affected(program: Program) -> set[str]:
    """Kernels that open a pipe, and everything but orchestration that calls them."""
    calls: dict[str, set[str]] = {}
    found: set[str] = set()
    for function in program.functions.values():
        if function.body is None or any(p.name_hint == PARAM for p in function.params):
            continue
        names = {call.op.name for _, call in iter_calls(function.body)}
        if names & INIT_PIPES:
            found.add(function.name)
        if not _is_caller_only(function):
            calls[function.name] = names
    changed = bool(found)
    while changed:
        changed = False
        for name, callees in calls.items():
            if name not in found and callees & found:
                found.add(name)
                changed = True
    return found


def _is_caller_only(function: Function) -> bool:
    """Functions that allocate the workspace instead of receiving it."""
    return is_orchestration_like(function.func_type) or function.func_type is FunctionType.Opaque


def _with_workspace(function: Function, affected: set[str]) -> Function:
    param = Var(PARAM, _tensor(), function.span)
    function = replace(
        function,
        params=(*function.params, param),
        param_directions=[*function.param_directions, ParamDirection.Out],
    )
    return _forward(function, affected, lambda stmt: (param, []))


class _Placeholders:
    """One ``tensor.create`` in front of every call site of an orchestration function."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, stmt: Stmt) -> tuple[Var, list[Stmt]]:
        kind = _tensor()
        var = Var(f"{PLACEHOLDER}{self._count}", kind, stmt.span)
        self._count += 1
        kwargs = {"dtype": DataType.FP32, "layout": TensorLayout.ND, "manual_dep": True}
        create = op_call("tensor.create", (MakeTuple((const_index(1),)),), kwargs, kind, stmt.span)
        return var, [AssignStmt(var, create, stmt.span)]


def _forward(function: Function, affected: set[str], workspace) -> Function:
    """Pass the workspace as last argument of every affected call."""

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            field, value = _value_of(stmt)
            if not _targets(value, affected):
                result.append(stmt)
                continue
            changed = True
            var, before = workspace(stmt)
            call = replace(value, args=(*value.args, var))
            result.extend(before)
            new = (call,) if field == "value" and type(stmt) is ReturnStmt else call
            result.append(replace(stmt, **{field: new}))
        return result if changed else stmts

    return with_body(function, rebuild_lists(function.body, edit))


def _value_of(stmt: Stmt):
    if type(stmt) is AssignStmt:
        return "value", stmt.value
    if type(stmt) is EvalStmt:
        return "expr", stmt.expr
    if type(stmt) is ReturnStmt and len(stmt.value) == 1:
        return "value", stmt.value[0]
    return "", None


def _targets(value, affected: set[str]) -> bool:
    return isinstance(value, (Call, Submit)) and isinstance(value.op, GlobalVar) and value.op.name in affected


@program_pass(
    "InjectGMPipeBuffer",
    required=(P.SSAForm, P.MixedKernelExpanded, P.NormalizedStmtStructure),
    produced=(P.SSAForm, P.MixedKernelExpanded, P.NormalizedStmtStructure),
)
def inject_gm_pipe_buffer(program: Program) -> Program:
    """Where pipes run through GM, append ``__gm_pipe_buffer`` to kernels and wrappers and allocate it above them."""
    handler = backend_handler()
    if handler is None or not handler.requires_gm_pipe_buffer():
        return program
    affected = _affected(program)
    if not affected:
        return program

    def rewrite(function: Function) -> Function:
        if function.body is None:
            return function
        if function.name in affected:
            return _with_workspace(function, affected)
        return _forward(function, affected, _Placeholders()) if _is_caller_only(function) else function

    return map_functions(program, rewrite)
