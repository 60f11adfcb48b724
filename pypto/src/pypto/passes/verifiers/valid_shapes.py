"""Valid regions inside types: one extent per dimension, none negative, none larger than the dimension."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.arith import Analyzer
from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, Expr, Lt, Submit, Var, const_index, const_value
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.types import ScalarType, TensorType, TileType, TupleType, Type
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import defined_vars, iter_stmts, stmt_call
from pypto.passes.verifiers.base import error

_RULE = "TypeCheck"
_RANK, _EXTENT = 103, 104


def valid_shape_errors(program: Program) -> list[Diagnostic]:
    """Errors of the types of parameters, returned values, variables and call results.

    An extent is wrong only when that is certain for every value of its variables.
    """
    found: list[Diagnostic] = []
    analyzer = Analyzer()
    for function in program.functions.values():
        for where, kind, span in _types(function):
            _check(kind, where, span, analyzer, found)
    return found


def _types(function: Function) -> Iterator[tuple[str, Type, Span]]:
    name = function.name
    for position, kind in enumerate(function.return_types):
        yield f"Function '{name}' return type[{position}]", kind, function.span
    for param in function.params:
        yield f"Var '{param.name_hint}'", param.type, param.span
    for stmt in iter_stmts(function.body):
        variables = defined_vars(stmt)
        for var in variables:
            yield f"{type(var).__name__} '{var.name_hint}'", var.type, var.span
        call = stmt_call(stmt)
        if isinstance(call, (Call, Submit)) and not any(v.type is call.type or v.type == call.type for v in variables):
            yield "Call result", call.type, stmt.span


def _check(kind: Type, where: str, span: Span, analyzer: Analyzer, found: list[Diagnostic]) -> None:
    if isinstance(kind, TupleType):
        for position, item in enumerate(kind.types):
            _check(item, f"{where} TupleType element[{position}]", span, analyzer, found)
        return
    if not isinstance(kind, (TensorType, TileType)):
        return
    view = kind.tensor_view if isinstance(kind, TensorType) else kind.tile_view
    if view is None or not view.valid_shape:
        return
    name, shape = type(kind).__name__, kind.shape
    if len(view.valid_shape) != len(shape):
        message = (
            f"{where} has invalid {name} valid_shape rank mismatch: got rank {len(view.valid_shape)}, "
            f"physical shape has rank {len(shape)}"
        )
        found.append(error(_RULE, _RANK, message, span))
        return
    for axis, (extent, size) in enumerate(zip(view.valid_shape, shape)):
        wrong = _wrong(extent, size, analyzer)
        if wrong is not None:
            message = f"{where} has invalid {name} valid_shape dimension {axis} {wrong}"
            found.append(error(_RULE, _EXTENT, message, span))


def _wrong(extent: Expr, size: Expr, analyzer: Analyzer) -> str | None:
    """What is certainly wrong with a valid extent."""
    low, high = const_value(extent), const_value(size)
    if low is not None and low < 0:
        return f"negative extent {low}"
    if low is not None and high is not None:
        return f"extent {low} exceeds the physical shape extent {high}" if low > high else None
    if extent is size or not (_is_integer(extent) and _is_integer(size)):
        return None
    if isinstance(extent, Var) and high is not None:
        return None
    if analyzer.can_prove(Lt(extent, const_index(0), DataType.BOOL)):
        return f"provably negative extent {extent}"
    if analyzer.can_prove(Lt(size, extent, DataType.BOOL)):
        return f"extent {extent} exceeds the physical shape extent {size}"
    return None


def _is_integer(expr: Expr) -> bool:
    return isinstance(expr.type, ScalarType) and expr.type.dtype.is_int()
