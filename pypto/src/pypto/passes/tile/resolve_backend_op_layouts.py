"""ResolveBackendOpLayouts: operators that need row-major tiles get them; users see their own layouts."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import TileLayout, is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TileType
from pypto.ops.registry import OpDef, create_op_call, find_op
from pypto.passes.context import backend_handler
from pypto.passes.lib.naming import base_name, temp_name
from pypto.passes.lib.rewrite import normalize_body, rebuild_lists, with_body
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_FORM = (P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D)


@function_pass("ResolveBackendOpLayouts", required=_FORM, produced=(*_FORM, P.NormalizedStmtStructure))
def resolve_backend_op_layouts(function: Function) -> Function:
    """Reshape ``[N, 1]`` operands to ``[1, N]`` and move other non-row-major ones; results are restored."""
    handler = backend_handler()
    if handler is None or function.body is None or not is_incore_type(function.func_type):
        return function
    resolver = _Resolver(handler.name)
    return with_body(function, normalize_body(rebuild_lists(function.body, resolver.rewrite)))


class _Resolver:
    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._count = 0

    def _name(self, var: Var, role: str) -> str:
        self._count += 1
        return temp_name(base_name(var.name_hint), role, self._count - 1)

    def rewrite(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            new = self._stmt(stmt) if type(stmt) is AssignStmt else None
            changed = changed or new is not None
            result.extend([stmt] if new is None else new)
        return result if changed else stmts

    def _stmt(self, stmt: AssignStmt) -> list[Stmt] | None:
        call = stmt.value
        if type(call) is not Call or isinstance(call.op, GlobalVar):
            return None
        definition = find_op(call.op.name)
        if definition is None or not definition.layouts or self._not_for_backend(definition):
            return None
        needs = definition.layouts.get("in", ())
        wrong = [
            i
            for i, (arg, need) in enumerate(zip(call.args, needs))
            if need == "row_major" and isinstance(arg.type, TileType) and not _row_major(arg.type)
        ]
        wrong_result = definition.layouts.get("out") == "row_major" and _is_wrong_result(call)
        if not wrong and not wrong_result:
            return None
        before: list[Stmt] = []
        args = list(call.args)
        for index in wrong:
            fixed = _as_row_major(call.args[index])
            var = Var(self._name(stmt.var, f"rm_a{index}"), fixed.type, call.span)
            before.append(AssignStmt(var, fixed, stmt.span))
            args[index] = var
        if wrong_result and not wrong and _column(call.type):
            swapped = _swapped_shape_operand(call)
            if swapped is None:
                return None
            args = swapped
        new = _recreate(call, args)
        if not wrong_result or new.type == call.type:
            return [*before, replace(stmt, value=new, var=stmt.var)]
        temporary = Var(self._name(stmt.var, "row_major"), new.type, call.span)
        restored = _restore(temporary, call.type)
        return [*before, replace(stmt, var=temporary, value=new), replace(stmt, value=restored, leading_comments=[])]

    def _not_for_backend(self, definition: OpDef) -> bool:
        return bool(definition.backends) and self._backend not in definition.backends


def _recreate(call: Call, args: list[Expr]) -> Call:
    new = create_op_call(call.op.name, args, call.kwargs, call.span)
    return replace(new, attrs=call.attrs) if call.attrs else new


def _row_major(kind: TileType) -> bool:
    return kind.get_effective_tile_view().blayout is TileLayout.row_major


def _column(kind: TileType) -> bool:
    return len(kind.shape) == 2 and const_value(kind.shape[1]) == 1


def _is_wrong_result(call: Call) -> bool:
    return isinstance(call.type, TileType) and not _row_major(call.type)


def _as_row_major(value: Expr) -> Call:
    kind = value.type
    if _column(kind):
        return create_op_call("tile.reshape", [value, MakeTuple((kind.shape[1], kind.shape[0]))], {}, value.span)
    options: dict[str, Any] = {
        "target_memory": kind.memory_space,
        "blayout": TileLayout.row_major,
        "slayout": TileLayout.none_box,
    }
    return create_op_call("tile.move", [value], options, value.span)


def _restore(value: Var, kind: TileType) -> Call:
    """``value`` in the shape and layout of ``kind``."""
    if _column(kind):
        return create_op_call("tile.reshape", [value, MakeTuple(kind.shape)], {}, value.span)
    view = kind.get_effective_tile_view()
    options: dict[str, Any] = {
        "target_memory": kind.memory_space,
        "blayout": view.blayout,
        "slayout": view.slayout,
    }
    return create_op_call("tile.move", [value], options, value.span)


def _swapped_shape_operand(call: Call) -> list[Expr] | None:
    """Operands of a generator of an ``[N, 1]`` tile that make it ``[1, N]``; None when it has no shape operand."""
    for index, arg in enumerate(call.args):
        if isinstance(arg, MakeTuple) and len(arg.elements) == 2 and arg.elements[1] is call.type.shape[1]:
            args = list(call.args)
            args[index] = MakeTuple((arg.elements[1], arg.elements[0]), arg.span)
            return args
    return None
