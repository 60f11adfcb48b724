"""The builder with context managers: ``with ib.function("f") as f: ...``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pypto.errors import user_error
from pypto.ir import stmt as S
from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    CompactMode,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Var, as_expr
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.ir.raw_builder import IRBuilder as RawBuilder
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import TensorType, TensorView, TileType, TileView, Type, UnknownType

_OWN_FILES = (__file__, contextlib.__file__)


def _here() -> Span:
    """File and line of the nearest caller outside this module."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _OWN_FILES:
        frame = frame.f_back
    return UNKNOWN_SPAN if frame is None else Span(frame.f_code.co_filename, frame.f_lineno, -1)


class _Construct:
    """Base of the objects that the context managers yield."""

    def __init__(self, raw: RawBuilder):
        self._raw = raw
        self._result: Any = None

    def get_result(self) -> Any:
        """What was built; RuntimeError while the construct is still open."""
        if self._result is None:
            raise user_error(f"{type(self).__name__}: the construct is not closed yet", kind=RuntimeError)
        return self._result


class _WithOutputs(_Construct):
    """A construct with result variables."""

    def output(self, index: int = 0) -> Var:
        """Result variable ``index``.

        Raises:
            RuntimeError: the construct is still open.
            IndexError: there are not that many results.
        """
        results = self.get_result().return_vars
        if not 0 <= index < len(results):
            raise user_error(f"Return variable index {index} out of range, there are {len(results)}", kind=IndexError)
        return results[index]

    def outputs(self) -> list[Var]:
        """All result variables."""
        return list(self.get_result().return_vars)


class FunctionBuilder(_Construct):
    """An open function."""

    def param(
        self, name: str, type: Type, span: Span | None = None, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        """Add a parameter."""
        return self._raw.func_arg(name, type, span or _here(), direction)

    def return_type(self, type: Type) -> None:
        """Add a return type."""
        self._raw.return_type(type)


class _LoopBuilder(_WithOutputs):
    def __init__(self, raw: RawBuilder):
        super().__init__(raw)
        self._iter_args: list[IterArg] = []
        self._return_vars = 0

    def iter_arg(self, name: str, init_value: Any, type: Type | None = None, span: Span | None = None) -> IterArg:
        """Add a carried value; its type is that of the initial value.

        Raises:
            ValueError: ``type`` is given and differs.
        """
        span = span or _here()
        init = as_expr(init_value, span)
        _check_type(f"iter_arg '{name}'", init.type, type)
        arg = IterArg(name, init.type if type is None else type, init, span)
        self._raw.add_iter_arg(arg)
        self._iter_args.append(arg)
        return arg

    def return_var(self, name: str, type: Type | None = None, span: Span | None = None) -> Var:
        """Add a result; its type is that of the iter_arg of the same position.

        Raises:
            ValueError: ``type`` differs from it, or there is neither.
        """
        index = self._return_vars
        inferred = self._iter_args[index].type if index < len(self._iter_args) else None
        if inferred is None and type is None:
            raise user_error(f"return_var '{name}' has no iter_arg of its position: give its type")
        if inferred is not None:
            _check_type(f"return_var '{name}'", inferred, type)
        var = Var(name, type or inferred, span or _here())
        self._raw.add_return_var(var)
        self._return_vars += 1
        return var


class ForLoopBuilder(_LoopBuilder):
    """An open counted loop."""


class WhileLoopBuilder(_LoopBuilder):
    """An open while loop."""

    def set_condition(self, condition: Expr) -> None:
        """Replace the condition, for conditions on the carried values."""
        self._raw.set_while_loop_condition(condition)


class IfStmtBuilder(_WithOutputs):
    """An open branch."""

    def else_(self, span: Span | None = None) -> None:
        """What follows belongs to the else part; ValueError the second time."""
        self._raw.begin_else(span or _here())

    def return_var(self, name: str, type: Type, span: Span | None = None) -> None:
        """Add a result."""
        self._raw.add_return_var(Var(name, type, span or _here()))


class ScopeBuilder(_Construct):
    """An open scope."""


class ProgramBuilder(_Construct):
    """An open program."""

    def declare_function(self, name: str) -> GlobalVar:
        """A reference to a function that may be added later."""
        return self._raw.declare_function(name)

    def get_global_var(self, name: str) -> GlobalVar:
        """The reference to a declared function; RuntimeError when it was not declared."""
        return self._raw.get_global_var(name)

    def add_function(self, func: Function) -> None:
        """Add a function."""
        self._raw.add_function(func)


def _check_type(what: str, inferred: Type, given: Type | None) -> None:
    if given is not None and given != inferred:
        raise user_error(f"Type mismatch for {what}: the value has {inferred}, but {given} was given")


class IRBuilder:
    """Builds functions and programs with context managers. ``span=None`` means the caller's line."""

    def __init__(self) -> None:
        self._raw = RawBuilder()

    @contextlib.contextmanager
    def _construct(self, builder: _Construct, end: Callable[[Span], Any], span: Span | None) -> Iterator[Any]:
        depth = self._raw.depth - 1
        try:
            yield builder
        except BaseException:
            self._raw.discard(depth)
            raise
        builder._result = end(span or _here())

    # -- constructs -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def function(
        self,
        name: str,
        span: Span | None = None,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: dict[str, Any] | None = None,
        requires_runtime_binding: bool = False,
    ) -> Iterator[FunctionBuilder]:
        """Build a function; RuntimeError inside another one."""
        self._raw.begin_function(name, span or _here(), type, level, role, attrs, requires_runtime_binding)
        with self._construct(FunctionBuilder(self._raw), self._raw.end_function, span) as builder:
            yield builder

    @contextlib.contextmanager
    def for_loop(
        self,
        loop_var: Var,
        start: Any,
        stop: Any,
        step: Any,
        span: Span | None = None,
        kind: ForKind = ForKind.Sequential,
        attrs: dict[str, Any] | None = None,
    ) -> Iterator[ForLoopBuilder]:
        """Build a counted loop."""
        self._raw.begin_for_loop(loop_var, start, stop, step, span or _here(), kind, attrs)
        with self._construct(ForLoopBuilder(self._raw), self._raw.end_for_loop, span) as builder:
            yield builder

    @contextlib.contextmanager
    def while_loop(self, condition: Any, span: Span | None = None) -> Iterator[WhileLoopBuilder]:
        """Build a while loop."""
        self._raw.begin_while_loop(condition, span or _here())
        with self._construct(WhileLoopBuilder(self._raw), self._raw.end_while_loop, span) as builder:
            yield builder

    @contextlib.contextmanager
    def if_stmt(self, condition: Any, span: Span | None = None) -> Iterator[IfStmtBuilder]:
        """Build a branch."""
        self._raw.begin_if(condition, span or _here())
        with self._construct(IfStmtBuilder(self._raw), self._raw.end_if, span) as builder:
            yield builder

    @contextlib.contextmanager
    def scope(
        self,
        scope_kind: ScopeKind,
        span: Span | None = None,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Any = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> Iterator[ScopeBuilder]:
        """Build a scope; ValueError when the argument that its kind needs is missing."""
        self._raw.begin_scope(
            scope_kind, span or _here(), level, role, split, name_hint, core_num, sync_start, manual, attrs
        )
        with self._construct(ScopeBuilder(self._raw), self._raw.end_scope, span) as builder:
            yield builder

    @contextlib.contextmanager
    def program(self, name: str, span: Span | None = None) -> Iterator[ProgramBuilder]:
        """Build a program."""
        self._raw.begin_program(name, span or _here())
        with self._construct(ProgramBuilder(self._raw), self._raw.end_program, span) as builder:
            yield builder

    # -- statements -------------------------------------------------------------------------------------------------

    def var(self, name: str, type: Type, span: Span | None = None) -> Var:
        """A variable, not emitted."""
        return Var(name, type, span or _here())

    def assign(self, var: Var, value: Any, span: Span | None = None) -> S.Stmt:
        """Emit ``var = value``."""
        return self._raw.assign(var, value, span or _here())

    def let(self, name: str, value: Any, type: Type | None = None, span: Span | None = None) -> Var:
        """Emit an assignment to a new variable of the value's type and return the variable.

        Raises:
            TypeError: ``type`` is of another class than the type of the value.
            ValueError: the value calls a function with several results.
        """
        span = span or _here()
        expr = self._with_callee_type(as_expr(value, span))
        if type is not None and type.__class__ is not expr.type.__class__:
            raise user_error(
                f"let '{name}': type {type} is incompatible with the value's type {expr.type}", span=span,
                kind=TypeError,
            )  # fmt: skip
        var = Var(name, expr.type if type is None else type, span)
        self._raw.assign(var, expr, span)
        return var

    def _with_callee_type(self, expr: Expr) -> Expr:
        """A call of unknown type with the return type that its callee declares in the open program."""
        if not (isinstance(expr, Call) and isinstance(expr.op, GlobalVar) and isinstance(expr.type, UnknownType)):
            return expr
        types = self._raw.get_function_return_types(expr.op)
        if not types:
            return expr
        if len(types) > 1:
            raise user_error(f"function '{expr.op.name}' returns {len(types)} values, let takes one", span=expr.span)
        return Call(expr.op, expr.args, kwargs=expr.kwargs, attrs=expr.attrs, type=types[0], span=expr.span)

    def make_tuple(self, elements: Sequence[Any], span: Span | None = None) -> MakeTuple:
        """A tuple of expressions, not emitted."""
        span = span or _here()
        return MakeTuple([as_expr(e, span) for e in elements], span)

    def emit(self, stmt: S.Stmt) -> S.Stmt:
        """Emit a statement."""
        return self._raw.emit(stmt)

    def return_stmt(self, values: Any = None, span: Span | None = None) -> S.Stmt:
        """Emit a return of nothing, of one value, or of a sequence of values."""
        if values is None:
            values = []
        elif not isinstance(values, (list, tuple)):
            values = [values]
        return self._raw.return_(values, span or _here())

    def eval_stmt(self, expr: Expr, span: Span | None = None) -> S.Stmt:
        """Emit an expression evaluated for its effect."""
        return self._raw.eval_stmt(expr, span or _here())

    def break_stmt(self, span: Span | None = None) -> S.Stmt:
        """Emit a break."""
        return self._raw.break_stmt(span or _here())

    def continue_stmt(self, span: Span | None = None) -> S.Stmt:
        """Emit a continue."""
        return self._raw.continue_stmt(span or _here())

    def inline_stmt(
        self, body: str, language: InlineLanguage = InlineLanguage.Python, span: Span | None = None
    ) -> S.Stmt:
        """Emit opaque source text."""
        return self._raw.inline_stmt(body, language, span or _here())

    def add_function_attrs(self, attrs: dict[str, Any]) -> None:
        """Merge attributes into the open function; ValueError outside one and for a duplicate key."""
        self._raw.add_function_attrs(attrs)

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Comments for the next emitted statement."""
        self._raw.push_pending_leading_comments(comments)

    def pop_pending_leading_comments(self) -> list[str]:
        """The comments of the last push that no statement took."""
        return self._raw.pop_pending_leading_comments()

    def in_function(self) -> bool:
        return self._raw.in_function()

    def in_loop(self) -> bool:
        return self._raw.in_loop()

    def in_if(self) -> bool:
        return self._raw.in_if()

    # -- types ------------------------------------------------------------------------------------------------------

    def memref(self, *args: Any, span: Span | None = None, **named: Any) -> MemRef:
        """``memref(memory_space, addr, size, id)`` or ``memref(addr, size, id)`` (named ``mem_<id>``).

        Raises:
            TypeError: another number of arguments.
        """
        values = list(args)
        for key in ("memory_space", "addr", "size", "id"):
            if key in named:
                values.insert(0, named.pop(key)) if key == "memory_space" else values.append(named.pop(key))
        if named:
            raise TypeError(f"memref got unexpected keyword arguments {sorted(named)}")
        span = span or _here()
        if values and isinstance(values[0], MemorySpace):
            if len(values) != 4:
                raise TypeError("memref with a memory space takes (memory_space, addr, size, id)")
            space, addr, size, number = values
            return MemRef(space, as_expr(addr, span), size, number, span=span)
        if len(values) != 3:
            raise TypeError("memref without a memory space accepts exactly three positional arguments (addr, size, id)")
        return MemRef(*values, span=span)

    def tile_view(
        self,
        valid_shape: Sequence[Any] | None = None,
        stride: Sequence[Any] | None = None,
        start_offset: Any = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        span: Span | None = None,
        compact: CompactMode = CompactMode.null,
    ) -> TileView:
        """A tile view; ``span`` is the location of the constants that ints become."""
        span = span or _here()
        valid_shape, stride = ([as_expr(d, span) for d in dims or ()] for dims in (valid_shape, stride))
        start_offset = None if start_offset is None else as_expr(start_offset, span)
        return TileView(valid_shape, stride, start_offset, blayout, slayout, fractal, pad, compact)

    def tensor_view(self, stride: Sequence[Any], layout: TensorLayout, span: Span | None = None) -> TensorView:
        """A tensor view."""
        return TensorView(stride, layout)

    def tensor_type(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
        span: Span | None = None,
    ) -> TensorType:
        """A tensor type."""
        return TensorType(shape, dtype, memref, tensor_view)

    def tile_type(
        self,
        shape: Sequence[Any],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
        span: Span | None = None,
    ) -> TileType:
        """A tile type."""
        return TileType(shape, dtype, memref, tile_view, memory_space)


__all__ = [
    "ForLoopBuilder", "FunctionBuilder", "IRBuilder", "IfStmtBuilder", "ProgramBuilder", "ScopeBuilder",
    "WhileLoopBuilder",
]  # fmt: skip
