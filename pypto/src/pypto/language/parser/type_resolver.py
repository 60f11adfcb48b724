"""Type annotations: from the AST of an annotation to an IR type."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import DTYPES, DataType
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Expr, Var, const_index
from pypto.ir.memref import MemRef
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    MemRefType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    Type,
    UnknownType,
    VoidType,
    WindowBufferType,
    scalar_type,
)
from pypto.language.parser.annotation_values import type_of_annotation_object
from pypto.language.parser.diagnostics import ParserTypeError, did_you_mean
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.memref_resolver import MemRefResolver
from pypto.language.parser.type_consistency import check_annotation
from pypto.language.parser.view_resolver import ViewResolver
from pypto.language.typing.dynamic import DynVar

#: Annotations without parameters.
MARKERS: dict[str, Type] = {
    "Ptr": PtrType.get(),
    "PtrType": PtrType.get(),
    "MemRefType": MemRefType.get(),
    "TaskId": scalar_type(DataType.TASK_ID),
    "CommCtx": CommCtxType.get(),
    "CommCtxType": CommCtxType.get(),
    "WindowBufferType": WindowBufferType.get(),
    "PrefetchAsyncContext": PrefetchAsyncContextType.get(),
    "PrefetchAsyncContextType": PrefetchAsyncContextType.get(),
    "AsyncEvent": AsyncEventType.get(),
    "AsyncEventType": AsyncEventType.get(),
    "AsyncSession": AsyncSessionType.get(),
    "AsyncSessionType": AsyncSessionType.get(),
    "UnknownType": UnknownType.get(),
    "VoidType": VoidType.get(),
}
_PARAMETRIC = ("Tensor", "DistributedTensor", "Tile", "Scalar", "Array", "Tuple", "tuple", "Out", "InOut")
_DIRECTIONS = {"Out": ParamDirection.Out, "InOut": ParamDirection.InOut}


def leaf_name(node: ast.expr) -> str | None:
    """``Tensor`` for ``pl.Tensor`` and ``Tensor``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


class TypeResolver:
    """Resolves annotations of one function.

    Args:
        expr_evaluator: evaluates Python expressions over closure values.
        scope_lookup: name -> IR value of the body, or None.
        span_tracker: locations for errors.
        parse_expression: parser of index expressions over names of the body.
    """

    def __init__(
        self,
        expr_evaluator: ExprEvaluator,
        scope_lookup: Callable[[str], Any] | None = None,
        span_tracker: Any = None,
        parse_expression: Callable[[ast.expr], Expr] | None = None,
    ):
        self.evaluator = expr_evaluator
        #: Without a function around them, annotations are read as text on its own.
        self.standalone = scope_lookup is None
        self.scope_lookup = scope_lookup or (lambda name: None)
        self.span_tracker = span_tracker
        self.parse_expression = parse_expression
        #: INDEX scalar parameters declared so far; they bind symbols of their name in later annotations.
        self.param_symbols: dict[str, Var] = {}
        #: Names of symbols from outside the function that annotations used.
        self.read_symbols: set[str] = set()
        #: Element types of body expressions such as ``x.dtype``, where the language has them.
        self.dtype_lookup: Callable[[ast.expr], DataType | None] | None = None
        self.memrefs = MemRefResolver(self)
        self.views = ViewResolver(self)

    # -- types ---------------------------------------------------------------------------------------------------

    def resolve_type(self, node: ast.expr, nested: bool = False) -> Any:
        """The type of an annotation; a list of types for ``tuple[A, B]``.

        ``nested`` allows tuples inside tuples, which values of a body may be but results of a function may not.

        Raises:
            ParserTypeError: with the place of the offending part.
        """
        name = leaf_name(node)
        if isinstance(node, ast.Subscript):
            return self._parametric(node, nested)
        if isinstance(node, ast.Call):
            return self._legacy_call(node)
        if name in MARKERS and (isinstance(node, ast.Attribute) or name not in self.evaluator.closure_vars):
            return MARKERS[name]
        if isinstance(node, (ast.Attribute, ast.Name)):
            return self._named(node, name or "")
        raise self.fail(f"Unsupported type annotation: {ast.unparse(node)}", node, hint=_ANNOTATION_HINT)

    def resolve_param(self, node: ast.expr) -> tuple[Type, ParamDirection]:
        """Type and direction of a parameter annotation."""
        direction = ParamDirection.In
        if isinstance(node, ast.Subscript) and leaf_name(node.value) in _DIRECTIONS:
            direction = _DIRECTIONS[leaf_name(node.value) or ""]
            node = node.slice
        kind = self.resolve_type(node)
        if isinstance(kind, (list, TupleType)):
            raise self.fail("A parameter type cannot be a tuple", node, hint="Use one parameter per value")
        if direction is ParamDirection.InOut and isinstance(kind, ScalarType):
            raise self.fail("Scalar parameters cannot have InOut direction", node, hint="Pass results in a tensor")
        return kind, direction

    def resolve_return(self, node: ast.expr) -> list[Type]:
        """Types of a return annotation."""
        if isinstance(node, ast.Constant) and node.value is None:
            return []
        kind = self.resolve_type(node)
        if isinstance(kind, list):
            return kind
        return [kind]

    def _parametric(self, node: ast.Subscript, nested: bool) -> Any:
        name = leaf_name(node.value)
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        match name:
            case "Tensor":
                return self._tensor(TensorType, items, node)
            case "DistributedTensor":
                return self._tensor(DistributedTensorType, items, node)
            case "Tile":
                return self._tile(items, node)
            case "Scalar":
                return scalar_type(self.resolve_dtype(self._single(items, node, "pl.Scalar[dtype]")))
            case "Array":
                return self._array(items, node)
            case "Tuple":
                return TupleType(tuple(self._members(items, nested)))
            case "tuple":
                return self._members(items, nested)
            case "Out" | "InOut":
                raise self.fail(f"pl.{name}[...] is only allowed on parameters", node)
        raise self.fail(
            f"Unsupported type annotation: {ast.unparse(node)}",
            node,
            hint=did_you_mean(name or "", _PARAMETRIC) or _ANNOTATION_HINT,
        )

    def _members(self, items: list[ast.expr], nested: bool = False) -> list[Type]:
        members = []
        for item in items:
            kind = self.resolve_type(item, nested)
            if isinstance(kind, list):
                kind = TupleType(tuple(kind))
            if isinstance(kind, TupleType) and not nested:
                raise self.fail("Nested tuple types are not supported", item, hint="Return the values side by side")
            members.append(kind)
        return members

    def _legacy_call(self, node: ast.Call) -> Any:
        name = leaf_name(node.func)
        args = list(node.args) + [k.value for k in node.keywords]
        match name:
            case "Tensor":
                return self._tensor(TensorType, args, node)
            case "DistributedTensor":
                return self._tensor(DistributedTensorType, args, node)
            case "Tile":
                return self._tile(args, node)
            case "Scalar":
                return scalar_type(self.resolve_dtype(self._single(args, node, "pl.Scalar(dtype)")))
            case "Tuple":
                inner = self._single(args, node, "pl.Tuple([...])")
                return TupleType(tuple(self._members(list(getattr(inner, "elts", [inner])))))
        raise self.fail(f"Unsupported type annotation: {ast.unparse(node)}", node, hint=_ANNOTATION_HINT)

    def _named(self, node: ast.expr, name: str) -> Type:
        text = ast.unparse(node)
        found, value = self.evaluator.try_eval_expr(node)
        if found:
            kind = type_of_annotation_object(value)
            if kind is not None:
                return kind
        if name in _PARAMETRIC or name in DTYPES:
            hint = "Write the shape and dtype, e.g. pl.Tensor[[64, 128], pl.FP32]"
            if name in DTYPES or name == "Scalar":
                hint = f"Write pl.Scalar[pl.{name if name in DTYPES else 'FP32'}]"
            raise self.fail(f"Incomplete type annotation: {text}", node, hint=hint)
        raise self.fail(f"Unsupported type annotation: {text}", node, hint=_ANNOTATION_HINT)

    def _tensor(self, cls: type, items: list[ast.expr], node: ast.AST) -> Type:
        label = f"pl.{'Tensor' if cls is TensorType else 'DistributedTensor'}"
        items = [i for i in items if not _is_marker_text(i)]
        if not 2 <= len(items) <= 4:
            raise self.fail(f"{label} requires [shape, dtype], optionally a layout or view and a MemRef", node)
        shape = self._to_ir_shape(self._parse_shape(items[0]))
        dtype = self.resolve_dtype(items[1])
        view: TensorView | None = None
        memref: MemRef | None = None
        if len(items) >= 3:
            third = self.views.tensor_slot(items[2])
            view, memref = (None, third) if isinstance(third, MemRef) else (third, None)
        if len(items) == 4:
            if memref is not None or not self.memrefs.is_memref(items[3]):
                raise self.fail(f"The fourth argument of {label}[...] must be a pl.MemRef", items[3])
            memref = self.resolve_memref(items[3])
        return self._build(node, cls, shape, dtype, memref, view)

    def _tile(self, items: list[ast.expr], node: ast.AST) -> Type:
        if len(items) < 2:
            raise self.fail("pl.Tile requires [shape, dtype]", node)
        shape = self._build_dims(self._parse_shape(items[0]))
        dtype = self.resolve_dtype(items[1])
        space, memref, view_node = self.views.tile_slots(items[2:])
        view = self.views.tile_view(view_node, shape, space)
        if memref is not None and space is None:
            raise self.fail("A tile with a pl.MemRef needs an explicit memory space, e.g. pl.Mem.Vec", node)
        return self._build(node, TileType, shape, dtype, memref, view, space)

    def _array(self, items: list[ast.expr], node: ast.AST) -> Type:
        if len(items) != 2:
            raise self.fail("pl.Array requires [extent, dtype]", node)
        found, extent = self.evaluator.try_eval_expr(items[0])
        if not found or not isinstance(extent, int) or isinstance(extent, bool):
            raise self.fail("The extent of pl.Array must be a compile-time integer", items[0])
        return self._build(node, ArrayType, self.resolve_dtype(items[1]), extent)

    def _build(self, node: ast.AST, cls: type, *fields: Any) -> Any:
        try:
            return cls(*fields)
        except (ValueError, TypeError) as error:
            raise self.fail(str(error).split("\nCheck failed", 1)[0], node) from error

    def _single(self, items: list[ast.expr], node: ast.AST, form: str) -> ast.expr:
        if len(items) != 1:
            raise self.fail(f"{form} takes exactly one argument", node)
        return items[0]

    # -- dtypes and shapes ---------------------------------------------------------------------------------------

    def resolve_dtype(self, node: ast.expr) -> DataType:
        """The element type that ``pl.FP32``, ``FP32`` or a closure variable names."""
        name = leaf_name(node) or ""
        if isinstance(node, ast.Name) and node.id in self.evaluator.closure_vars:
            value = self.evaluator.closure_vars[node.id]
            if not isinstance(value, DataType):
                raise self.fail(f"dtype variable '{node.id}' must be a DataType, got {type(value).__name__}", node)
            return value
        if name in DTYPES and not (isinstance(node, ast.Attribute) and leaf_name(node.value) is None):
            return DTYPES[name]
        found, value = self.evaluator.try_eval_expr(node)
        if not found and self.dtype_lookup is not None:
            value = self.dtype_lookup(node)
        if isinstance(value, DataType):
            return value
        raise self.fail(
            f"Unknown dtype: {ast.unparse(node)}",
            node,
            hint=did_you_mean(name, DTYPES) or f"Use one of: {', '.join('pl.' + n for n in DTYPES)}",
        )

    def _parse_shape(self, node: ast.expr) -> list:
        """Elements of a shape: ints and expressions."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.parse_dim(element) for element in node.elts]
        if isinstance(node, ast.Name) and node.id not in self.evaluator.closure_vars:
            raise self.fail(f"Unknown shape variable '{node.id}'", node)
        value = self.evaluator.eval_expr(node)
        if not isinstance(value, (list, tuple)):
            raise self.fail(f"Shape '{ast.unparse(node)}' must be a list or tuple, got {type(value).__name__}", node)
        return [self._dim_value(v, f"Shape '{ast.unparse(node)}' element {k}", node) for k, v in enumerate(value)]

    def parse_dim(self, node: ast.expr) -> Any:
        """One extent: an int or an index expression."""
        if isinstance(node, ast.Name):
            return self._named_dim(node)
        if any(isinstance(n, ast.Attribute) and n.attr == "yield_" for n in ast.walk(node)):
            raise self.fail("A type annotation cannot contain pl.yield_", node)
        builds = self.parse_expression and _calls_operator(node) and not _declares_symbol(node)
        if not (self._uses_body_names(node) or builds):
            found, value = self.evaluator.try_eval_expr(node)
            if found:
                return self._dim_value(value, f"Shape variable '{ast.unparse(node)}'", node)
        if self.parse_expression is None:
            raise self.fail(
                f"Shape dimension '{ast.unparse(node)}' must be an integer constant or bare variable here", node
            )
        value = self.parse_expression(node)
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int()):
            raise self.fail(f"'{ast.unparse(node)}' must be an index expression", node)
        return value

    def _uses_body_names(self, node: ast.expr) -> bool:
        closure = self.evaluator.closure_vars
        return any(
            isinstance(n, ast.Name)
            and (n.id in self.param_symbols or (n.id not in closure and self.scope_lookup(n.id)))
            for n in ast.walk(node)
        )

    def _named_dim(self, node: ast.Name) -> Any:
        if node.id in self.param_symbols:
            return self.param_symbols[node.id]
        if node.id in self.evaluator.closure_vars:
            self.read_symbols.add(node.id)
            return self._dim_value(self.evaluator.closure_vars[node.id], f"Shape variable '{node.id}'", node)
        value = self.scope_lookup(node.id)
        if isinstance(value, Expr):
            return value
        raise self.fail(
            f"Unknown shape variable '{node.id}'", node, hint="Use an int, a pl.dynamic() symbol or a scalar in scope"
        )

    def _dim_value(self, value: Any, what: str, node: ast.AST) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 0:
                raise self.fail(
                    f"{what} must not be negative, got {value}", node,
                    hint="A size that is known at run time only is a pl.dynamic() symbol",
                )  # fmt: skip
            return value
        if isinstance(value, DynVar):
            return value.var
        if isinstance(value, Expr):
            return value
        raise self.fail(f"{what} must be int or pl.dynamic(), got {type(value).__name__}", node)

    def _to_ir_shape(self, shape: list) -> list:
        """All ints as they are, or, next to expressions, as constants."""
        if all(isinstance(d, int) for d in shape):
            return shape
        return self._build_dims(shape)

    @staticmethod
    def _build_dims(shape: list) -> list:
        return [const_index(d) if isinstance(d, int) else d for d in shape]

    # -- memory --------------------------------------------------------------------------------------------------

    def resolve_memref(self, node: ast.expr) -> MemRef:
        """The memory descriptor of a ``pl.MemRef(...)`` annotation or of a declared name."""
        return self.memrefs.resolve(node)

    def validate_annotation_consistency(self, annotated: Type, inferred: Type, name: str, node: ast.AST | None) -> None:
        """Raise ParserTypeError when an annotation contradicts the inferred type."""
        check_annotation(annotated, inferred, name, self._span(node))

    # -- helpers -------------------------------------------------------------------------------------------------

    def enum_member(self, node: ast.expr, cls: type, what: str, hide: tuple[str, ...] = ()) -> Any:
        """A member of an enum written as ``pl.X.member``, a bare constant, or a closure variable."""
        name = leaf_name(node) or ""
        members = [m for m in cls.__members__ if m not in hide]
        if isinstance(node, ast.Name) and name in self.evaluator.closure_vars and name not in cls.__members__:
            value = self.evaluator.closure_vars[name]
            if not isinstance(value, cls):
                raise self.fail(f"{what} variable '{name}' must be a {cls.__name__}, got {type(value).__name__}", node)
            return value
        if name in cls.__members__:
            return cls.__members__[name]
        found, value = self.evaluator.try_eval_expr(node)
        if found and isinstance(value, cls):
            return value
        raise self.fail(
            f"Unknown {what}: {ast.unparse(node)}", node, hint=f"Use one of: {', '.join('pl.' + m for m in members)}"
        )

    def fail(self, message: str, node: ast.AST | None, hint: str | None = None) -> ParserTypeError:
        return ParserTypeError(message, self._span(node), hint=hint)

    def _span(self, node: ast.AST | None) -> Any:
        return self.span_tracker.get_span(node) if self.span_tracker and node is not None else None


_ANNOTATION_HINT = (
    "Use pl.Tensor[[...], dtype], pl.Tile[[...], dtype], pl.Scalar[dtype], pl.Array[n, dtype] or pl.Tuple[...]"
)


def _calls_operator(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) for n in ast.walk(node))


def _declares_symbol(node: ast.expr) -> bool:
    """``pl.dynamic("N")`` written in place: a dimension of its own."""
    return isinstance(node, ast.Call) and leaf_name(node.func) == "dynamic"


def _is_marker_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("window_buffer=")
