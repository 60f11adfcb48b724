"""TypeChecked and the other properties of types: joins agree, views are canonical, arrays stay local."""

from __future__ import annotations

from enum import Enum

from pypto.ir.dtype import DataType
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Var
from pypto.ir.program import Program
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from pypto.ir.tensor_view_semantics import check_canonical_view
from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    same_dim,
)
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import defined_vars, iter_stmts, yielded
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error
from pypto.passes.verifiers.valid_shapes import valid_shape_errors

_RULE = "TypeCheck"


class TypeCheckErrorType(Enum):
    TYPE_KIND_MISMATCH = 101
    DTYPE_MISMATCH = 102
    SHAPE_DIMENSION_MISMATCH = 103
    SHAPE_VALUE_MISMATCH = 104
    SIZE_MISMATCH = 105
    IF_CONDITION_MUST_BE_SCALAR = 106
    FOR_RANGE_MUST_BE_SCALAR = 107
    CONDITION_MUST_BE_BOOL = 108
    TENSOR_PADDING_MISMATCH = 109
    DISTRIBUTED_WINDOW_IDENTITY_MISMATCH = 110
    TILE_VIEW_MISMATCH = 111


_T = TypeCheckErrorType


@PropertyVerifierRegistry.register(IRProperty.TypeChecked)
def verify_types(program: Program) -> list[Diagnostic]:
    """Joined values have one type, conditions are BOOL, bounds scalar, and valid regions lie inside their shapes."""
    check = _Joins()
    for function in defined_functions(program):
        for stmt in iter_stmts(function.body):
            kind = type(stmt)
            if kind is IfStmt:
                check.branch(stmt)
            elif kind is ForStmt:
                check.loop(stmt)
            elif kind is WhileStmt:
                check.condition(stmt, "WhileStmt")
                check.loop(stmt)
    return check.found + valid_shape_errors(program)


class _Joins:
    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def _report(self, code: TypeCheckErrorType, message: str, span: Span) -> None:
        self.found.append(error(_RULE, code, message, span))

    def condition(self, stmt: IfStmt | WhileStmt, what: str) -> None:
        kind = stmt.condition.type
        if isinstance(kind, UnknownType):
            return
        if not isinstance(kind, ScalarType):
            self._report(_T.IF_CONDITION_MUST_BE_SCALAR, f"{what} condition must be a scalar", stmt.span)
        elif kind.dtype != DataType.BOOL:
            message = f"{what} condition dtype must be BOOL, got {kind.dtype}; write a comparison such as x != 0"
            self._report(_T.CONDITION_MUST_BE_BOOL, message, stmt.span)

    def branch(self, stmt: IfStmt) -> None:
        self.condition(stmt, "IfStmt")
        if not stmt.return_vars or stmt.else_body is None:
            return
        then_values, else_values = yielded(stmt.then_body), yielded(stmt.else_body)
        if not (len(then_values) == len(else_values) == len(stmt.return_vars)):
            message = (
                f"IfStmt size mismatch: {len(stmt.return_vars)} results, then yields {len(then_values)}, "
                f"else yields {len(else_values)}"
            )
            self._report(_T.SIZE_MISMATCH, message, stmt.span)
            return
        for var, a, b in zip(stmt.return_vars, then_values, else_values):
            self.same(a.type, b.type, "IfStmt", f"the values that both branches yield for '{var.name_hint}'", stmt.span)
            self.same(a.type, var.type, "IfStmt", f"result '{var.name_hint}' and the yielded value", stmt.span)

    def loop(self, stmt: ForStmt | WhileStmt) -> None:
        what = type(stmt).__name__
        if isinstance(stmt, ForStmt):
            for name in ("start", "stop", "step"):
                kind = getattr(stmt, name).type
                if not isinstance(kind, (ScalarType, UnknownType)):
                    self._report(_T.FOR_RANGE_MUST_BE_SCALAR, f"ForStmt {name} must be a scalar", stmt.span)
        values = yielded(stmt.body)
        if not stmt.iter_args:
            return
        if values and len(values) != len(stmt.iter_args):
            message = f"{what} size mismatch: {len(stmt.iter_args)} carried values, {len(values)} yielded"
            self._report(_T.SIZE_MISMATCH, message, stmt.span)
            return
        for index, arg in enumerate(stmt.iter_args):
            name = arg.name_hint
            self.same(arg.initValue.type, arg.type, what, f"the initial value and carry '{name}'", stmt.span)
            if index < len(values):
                self.same(arg.initValue.type, values[index].type, what, f"the initial and yielded '{name}'", stmt.span)
            if index < len(stmt.return_vars):
                self.same(arg.type, stmt.return_vars[index].type, what, f"carry '{name}' and its result", stmt.span)

    def same(self, a: Type, b: Type, what: str, which: str, span: Span) -> None:
        """Report the first difference of two types that must agree."""
        if a is b or isinstance(a, UnknownType) or isinstance(b, UnknownType):
            return
        if type(a) is not type(b):
            names = f"{type(a).__name__} and {type(b).__name__}"
            self._report(_T.TYPE_KIND_MISMATCH, f"Type kind mismatch in {what}: {names} for {which}", span)
        elif isinstance(a, TupleType):
            if len(a.types) != len(b.types):
                self._report(_T.SIZE_MISMATCH, f"Tuple size mismatch in {what} for {which}", span)
                return
            for x, y in zip(a.types, b.types):
                self.same(x, y, what, which, span)
        elif isinstance(a, (ScalarType, ShapedType)):
            if a.dtype != b.dtype:
                self._report(_T.DTYPE_MISMATCH, f"Dtype mismatch in {what}: {a.dtype} and {b.dtype} for {which}", span)
            elif isinstance(a, ShapedType):
                self._shapes(a, b, what, which, span)

    def _shapes(self, a, b, what: str, which: str, span: Span) -> None:
        if len(a.shape) != len(b.shape):
            message = f"Shape dimension mismatch in {what}: {len(a.shape)} and {len(b.shape)} axes for {which}"
            self._report(_T.SHAPE_DIMENSION_MISMATCH, message, span)
            return
        for name, x, y in (("Shape", a.shape, b.shape), ("Valid shape", *_valid(a, b))):
            for axis, (m, n) in enumerate(zip(x, y)):
                if not same_dim(m, n):
                    message = f"{name} value mismatch in {what} on axis {axis} for {which}"
                    self._report(_T.SHAPE_VALUE_MISMATCH, message, span)
                    return
        if isinstance(a, TensorType):
            pads = [t.tensor_view.pad if t.tensor_view else None for t in (a, b)]
            null = [p is None or p.name == "null" for p in pads]
            if pads[0] is not pads[1] and not all(null):
                self._report(_T.TENSOR_PADDING_MISMATCH, f"Tensor padding mismatch in {what} for {which}", span)
            if isinstance(a, DistributedTensorType) and a.window_buffer is not b.window_buffer:
                message = f"Distributed window identity mismatch in {what} for {which}"
                self._report(_T.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, message, span)
        elif isinstance(a, TileType) and (a.memory_space is b.memory_space or None in (a.memory_space, b.memory_space)):
            x, y = a.get_effective_tile_view(), b.get_effective_tile_view()
            if a.tile_view is b.tile_view and a.memory_space is b.memory_space:
                return
            fields = ("blayout", "slayout", "fractal", "pad", "compact")
            if a.memory_space is not b.memory_space:
                fields = ("pad", "compact")
            if any(getattr(x, f) is not getattr(y, f) and getattr(x, f) != getattr(y, f) for f in fields):
                self._report(_T.TILE_VIEW_MISMATCH, f"Effective TileView mismatch in {what} for {which}", span)


def _valid(a, b) -> tuple[tuple, tuple]:
    if isinstance(a, ArrayType):
        return (), ()
    return a.valid_shape, b.valid_shape


def _any_array(kind: Type) -> bool:
    return isinstance(kind, ArrayType) or (isinstance(kind, TupleType) and any(_any_array(t) for t in kind.types))


@PropertyVerifierRegistry.register(IRProperty.ArrayNotEscaped)
def verify_array_not_escaped(program: Program) -> list[Diagnostic]:
    """No array crosses a function boundary."""
    found: list[Diagnostic] = []
    for function in program.functions.values():
        for param in function.params:
            if _any_array(param.type):
                message = f"ArrayType parameter '{param.name_hint}' of function '{function.name}': arrays are local"
                found.append(error("ArrayNotEscaped", 1, message, param.span))
        if any(_any_array(t) for t in function.return_types):
            message = f"ArrayType in a return type of function '{function.name}': arrays are local"
            found.append(error("ArrayNotEscaped", 2, message, function.span))
    return found


@PropertyVerifierRegistry.register(IRProperty.TileTypeCoherence)
def verify_tile_type_coherence(program: Program) -> list[Diagnostic]:
    """Tile views equal to the implicit view are stored as absent; the constructor of TileType guarantees it."""
    from pypto.ir.types import implicit_tile_view

    found: list[Diagnostic] = []
    for function in defined_functions(program):
        for stmt in iter_stmts(function.body):
            for var in defined_vars(stmt):
                kind = var.type
                if isinstance(kind, TileType) and kind.tile_view is not None:
                    if kind.get_effective_tile_view() == implicit_tile_view(kind.shape, kind.memory_space):
                        message = f"tile '{var.name_hint}' spells out the implicit view of its memory space"
                        found.append(error("TileTypeCoherence", 1, message, var.span))
    return found


@PropertyVerifierRegistry.register(IRProperty.AssignTypeSymmetry)
def verify_assign_type_symmetry(program: Program) -> list[Diagnostic]:
    """A singly assigned variable has the type of its value, memory references left aside."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        assigns = [s for s in iter_stmts(function.body) if type(s) is AssignStmt]
        count: dict[Var, int] = {}
        for stmt in assigns:
            count[stmt.var] = count.get(stmt.var, 0) + 1
        for stmt in assigns:
            if count[stmt.var] == 1 and not _symmetric(stmt.var.type, stmt.value.type):
                parts = _differing_parts(stmt.var.type, stmt.value.type)
                message = (
                    f"variable '{stmt.var.name_hint}' has type {stmt.var.type} but its value has "
                    f"{stmt.value.type}{f' ({parts} differ)' if parts else ''} in function '{function.name}'"
                )
                found.append(error("AssignTypeSymmetry", 1, message, stmt.span))
    return found


def _symmetric(a: Type, b: Type) -> bool:
    if isinstance(a, UnknownType) or isinstance(b, UnknownType):
        return type(a) is type(b)
    return _without_memref(a) == _without_memref(b)


def _differing_parts(a: Type, b: Type) -> str:
    """Names of the fields in which two types of one kind differ."""
    if type(a) is not type(b):
        return ""
    names = ("shape", "dtype", "memory_space", "tile_view", "tensor_view")
    return ", ".join(n for n in names if getattr(a, n, None) != getattr(b, n, None))


def _without_memref(kind: Type) -> Type:
    from pypto.ir.node import replace

    if isinstance(kind, TupleType):
        return TupleType(tuple(_without_memref(t) for t in kind.types))
    if isinstance(kind, (TensorType, TileType)) and kind.memref is not None:
        return replace(kind, memref=None)
    return kind


def verify_tensor_view_canonical(program: Program, require_materialized: bool = False) -> list[Diagnostic]:
    """Tensor views have packed or wider strides (absent ones in the weak form only) and no logical NZ layout.

    Args:
        require_materialized: the form after MaterializeTensorStrides: a present view must have strides.
    """
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        variables = [*function.params, *(v for s in iter_stmts(function.body) for v in defined_vars(s))]
        for var in variables:
            kind = var.type
            if not isinstance(kind, TensorType) or kind.tensor_view is None:
                continue
            view = kind.tensor_view
            if view.layout is TensorLayout.NZ:
                message = f"tensor '{var.name_hint}' has the tile-only layout NZ in function '{function.name}'"
                found.append(error("TensorViewCanonical", 1, message, var.span))
            elif not view.stride:
                if require_materialized:
                    message = (
                        f"the stride is empty in the view of tensor '{var.name_hint}' in function '{function.name}'; "
                        "MaterializeTensorStrides fills it in"
                    )
                    found.append(error("TensorViewCanonical", 2, message, var.span))
            elif reason := check_canonical_view(kind.shape, view.stride, view.layout)[1]:
                message = f"view of tensor '{var.name_hint}': {reason} in function '{function.name}'"
                found.append(error("TensorViewCanonical", 3, message, var.span))
    return found


PropertyVerifierRegistry.register(IRProperty.TensorViewCanonical)(
    lambda program: verify_tensor_view_canonical(program, require_materialized=True)
)
