"""ConvertTensorToTileOps: InCore functions compute on tiles; results leave through Out parameters."""

from __future__ import annotations

from pypto.errors import UnsupportedFeatureError
from pypto.ir.enums import FunctionType, ParamDirection, TensorLayout, is_incore_type
from pypto.ir.expr import Call, GlobalVar, MakeTuple, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ReturnStmt, Stmt, flatten_to_stmts
from pypto.ir.types import TensorType
from pypto.ops.registry import create_op_call
from pypto.passes.lib.access import raise_directions
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, stmt_call
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.conversions.body import lower_body
from pypto.passes.tile.conversions.store_coherence import check_store_coherence, use_bulk_stores

_FORM = (P.SSAForm, P.NormalizedStmtStructure)
_WRAPPERS = (FunctionType.Spmd, FunctionType.Group)


@program_pass(
    "ConvertTensorToTileOps",
    required=(*_FORM, P.SplitIncoreOrch),
    produced=(*_FORM, P.IncoreTileOps, P.AivSplitValid),
    invalidated=(P.AivSplitValid,),
)
def convert_tensor_to_tile_ops(program: Program) -> Program:
    """Lower tensor operators of InCore functions, then hand their new Out parameters to every caller.

    Raises:
        ValueError: a kernel mixes bulk and scalar stores to one tensor, or an operand that no rule accepts.
    """
    functions = {f.name: f for f in program.functions.values()}
    added: dict[str, list[Var]] = {}
    for function in program.functions.values():
        if function.body is None or not is_incore_type(function.func_type):
            continue
        _reject_blocked_layouts(function)
        prepared = use_bulk_stores(function)
        check_store_coherence(prepared)
        functions[function.name], outs = lower_body(prepared)
        if outs:
            added[function.name] = outs
    for function in program.functions.values():
        if function.func_type in _WRAPPERS and function.body is not None and added:
            functions[function.name], outs = _forward(functions[function.name], added)
            if outs:
                added[function.name] = outs
    for function in program.functions.values():
        if function.func_type not in _WRAPPERS and not is_incore_type(function.func_type) and added:
            functions[function.name] = _create_outputs(functions[function.name], added)
    _raise_all(functions)
    new = list(functions.values())
    if all(a is b for a, b in zip(new, program.functions.values())):
        return program
    return Program(new, program.name, program.span)


def _reject_blocked_layouts(function: Function) -> None:
    for param in function.params:
        view = param.type.tensor_view if isinstance(param.type, TensorType) else None
        if view is not None and view.layout not in (TensorLayout.ND, TensorLayout.DN):
            raise UnsupportedFeatureError(
                f"parameter '{param.name_hint}' of kernel '{function.name}' has layout {view.layout.name}: tensors "
                "that hold a fractal order in global memory are not supported yet"
            )


def _forward(wrapper: Function, added: dict[str, list[Var]]) -> tuple[Function, list[Var]]:
    """A wrapper takes the outputs of the kernel it forwards to and passes them on."""
    outs: list[Var] = []

    def extend(stmts: list[Stmt]) -> list[Stmt]:
        result = []
        for stmt in stmts:
            call = stmt_call(stmt)
            extra = added.get(call.op.name) if call is not None and isinstance(call.op, GlobalVar) else None
            if extra and not outs:
                outs.extend(Var(v.name_hint, v.type, v.span) for v in extra)
                result.append(_with_args(stmt, call, outs))
            else:
                result.append(stmt)
        return result if outs else stmts

    body = rebuild_lists(wrapper.body, extend)
    if not outs:
        return wrapper, []
    extended = replace(
        with_body(wrapper, body),
        params=(*wrapper.params, *outs),
        param_directions=[*wrapper.param_directions, *([ParamDirection.Out] * len(outs))],
    )
    return extended, outs


def _create_outputs(caller: Function, added: dict[str, list[Var]]) -> Function:
    """Create the outputs of extended functions before each call."""
    if caller.body is None or not any(c.op.name in added for _, c in iter_calls(caller.body)):
        return caller

    def extend(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            call = stmt_call(stmt)
            extra = added.get(call.op.name) if call is not None and isinstance(call.op, GlobalVar) else None
            if not extra:
                result.append(stmt)
                continue
            changed = True
            created: list[Var] = []
            for out in extra:
                value = create_op_call(
                    "tensor.create",
                    [MakeTuple(out.type.shape)],
                    {"dtype": out.type.dtype, "layout": _layout(out.type)},
                    stmt.span,
                )
                created.append(Var(out.name_hint, value.type, stmt.span))
                result.append(AssignStmt(created[-1], value, stmt.span))
            result.append(_with_args(stmt, call, created))
        return result if changed else stmts

    return with_body(caller, rebuild_lists(caller.body, extend))


def _layout(kind: TensorType) -> TensorLayout:
    return kind.tensor_view.layout if kind.tensor_view is not None else TensorLayout.ND


def _with_args(stmt: Stmt, call: Call | Submit, extra: list[Var]) -> Stmt:
    new = replace(call, args=(*call.args, *extra))
    return replace(stmt, value=new) if isinstance(stmt, AssignStmt) else replace(stmt, expr=new)


def _raise_all(functions: dict[str, Function]) -> None:
    """Raise the directions of written parameters, callees before callers."""
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name not in functions:
            return
        done.add(name)
        function = functions[name]
        if function.body is None:
            return
        for _, call in iter_calls(function.body):
            if isinstance(call.op, GlobalVar):
                visit(call.op.name)
        for stmt in flatten_to_stmts(function.body):
            if isinstance(stmt, ReturnStmt):
                for value in stmt.value:
                    if isinstance(value, (Call, Submit)) and isinstance(value.op, GlobalVar):
                        visit(value.op.name)
        functions[name] = raise_directions(functions[name], functions.get)

    for name in list(functions):
        visit(name)
