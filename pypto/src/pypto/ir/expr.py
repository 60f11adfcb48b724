"""Expressions. Python operators on them build scalar operator nodes (``pypto.ir.scalar_ops``)."""

from __future__ import annotations

import importlib
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pypto.ir.dtype import DataType
from pypto.ir.node import IRNode, Node, NodeTuple, OverloadedMeta, force_setattr
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import ScalarType, TupleType, Type, UnknownType, scalar_type

_next_id = itertools.count(1).__next__


class Op(Node, frozen=True, eq=False, gc=False):
    """Reference to an operator by name; two references of one name are equal call targets."""

    name: str

    def get_attr(self, key: str) -> Any:
        return self._attrs()[key]

    def has_attr(self, key: str) -> bool:
        return key in self._attrs()

    def get_attr_keys(self) -> list[str]:
        return list(self._attrs())

    def _attrs(self) -> dict:
        # The definitions stand on a higher floor; only this public accessor looks up to them.
        definition = importlib.import_module("pypto.ops.registry").find_op(self.name)
        return definition.attrs if definition else {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    __str__ = __repr__


class GlobalVar(Op, frozen=True, eq=False, gc=False):
    """Names a function of the same program."""


class Expr(IRNode, frozen=True, eq=False, gc=False):
    """Base of expressions: every one has ``type`` and ``span``.

    ``==`` builds an ``Eq`` node, so never use ``in`` or ``==`` on lists of expressions; identity is ``is`` and
    dictionaries and sets work by identity.
    """

    if TYPE_CHECKING:
        type: Any
        span: Span

    __hash__ = object.__hash__


class Var(Expr, frozen=True, eq=False, gc=False):
    """A variable; identity is the object, ``name_hint`` is only for printing."""

    IGNORED: ClassVar[tuple[str, ...]] = ("name_hint", "span", "unique_id")

    name_hint: str
    type: Type
    span: Span = UNKNOWN_SPAN
    unique_id: int = msgspec.field(default_factory=_next_id)


class IterArg(Var, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Loop-carried value, visible in the loop body only."""

    initValue: Any = None

    @staticmethod
    def _normalize(name_hint, type, initValue, span=UNKNOWN_SPAN) -> tuple:
        return name_hint, type, span, _next_id(), initValue


class ConstInt(Expr, frozen=True, eq=False, gc=False):
    """Integer constant (64-bit value)."""

    value: int
    dtype: DataType
    span: Span = UNKNOWN_SPAN

    @property
    def type(self) -> ScalarType:
        return scalar_type(self.dtype)


class ConstFloat(Expr, frozen=True, eq=False, gc=False):
    """Floating-point constant."""

    value: float
    dtype: DataType
    span: Span = UNKNOWN_SPAN

    @property
    def type(self) -> ScalarType:
        return scalar_type(self.dtype)


class ConstBool(Expr, frozen=True, eq=False, gc=False):
    """Boolean constant."""

    value: bool
    span: Span = UNKNOWN_SPAN

    @property
    def dtype(self) -> DataType:
        return DataType.BOOL

    @property
    def type(self) -> ScalarType:
        return scalar_type(DataType.BOOL)


class Call(Expr, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Call of an operator or of a function of the program.

    ``kwargs`` are the language-level keyword arguments, ``attrs`` compiler metadata. Forms: ``(op, args, span)``,
    ``(op, args, type, span)``, ``(op, args, kwargs, span)``, ``(op, args, kwargs, type, span)``,
    ``(op, args, kwargs, attrs, type, span)``.
    """

    op: Op
    args: tuple
    kwargs: dict
    attrs: dict
    type: Type
    span: Span

    def __post_init__(self) -> None:
        if type(self.args) is not NodeTuple:
            force_setattr(self, "args", NodeTuple(self.args))

    @staticmethod
    def _normalize(op, args, *rest, kwargs=None, attrs=None, type=None, span=None) -> tuple:
        for value in rest:
            if isinstance(value, Span):
                span = value
            elif isinstance(value, Type):
                type = value
            elif kwargs is None:
                kwargs = value
            else:
                attrs = value
        attrs = dict(attrs or {})
        args = NodeTuple(args)
        directions = attrs.get("arg_directions")
        if directions and len(directions) != len(args):
            raise TypeError(f"attrs['arg_directions'] size ({len(directions)}) must match args size ({len(args)})")
        return op, args, dict(kwargs or {}), attrs, type or UnknownType.get(), span or UNKNOWN_SPAN

    @property
    def arg_directions(self) -> list:
        """Directions of the arguments, ``[]`` until derived."""
        return list(self.attrs.get("arg_directions", ()))


class Submit(Expr, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Asynchronous task launch; its value is the callee's results followed by the task id."""

    op: Op
    args: tuple
    deps: tuple
    kwargs: dict
    attrs: dict
    type: Type
    span: Span
    core_num: Any = None
    sync_start: bool = False
    allow_early_resolve: bool = False
    predicate: Any = None

    def __post_init__(self) -> None:
        for name in ("args", "deps"):
            if type(getattr(self, name)) is not NodeTuple:
                force_setattr(self, name, NodeTuple(getattr(self, name)))

    @staticmethod
    def _normalize(
        op,
        args,
        deps,
        *rest,
        kwargs=None,
        attrs=None,
        type=None,
        span=None,
        core_num=None,
        sync_start=False,
        allow_early_resolve=False,
        predicate=None,
    ) -> tuple:
        rest = list(rest)
        maps = []
        while rest and not isinstance(rest[0], Type):
            maps.append(rest.pop(0))
        if maps:
            kwargs = maps[0]
            attrs = maps[1] if len(maps) > 1 else attrs
        if rest:
            type = rest.pop(0)
        if rest:
            span = rest.pop(0)
        tail = [core_num, sync_start, allow_early_resolve, predicate]
        tail[: len(rest)] = rest
        core_num, sync_start, allow_early_resolve, predicate = tail
        if sync_start and core_num is None:
            raise ValueError("sync_start needs core_num")
        if core_num is not None:
            core_num = as_dim(core_num)
            kind = core_num.type
            if not (isinstance(kind, ScalarType) and kind.dtype.is_int()):
                raise TypeError("core_num must be an integer expression")
        deps = NodeTuple(deps)
        if any(d is None for d in deps):
            raise TypeError("a dependency must not be None")
        return (
            op,
            NodeTuple(args),
            deps,
            dict(kwargs or {}),
            dict(attrs or {}),
            type or UnknownType.get(),
            span or UNKNOWN_SPAN,
            core_num,
            sync_start,
            allow_early_resolve,
            predicate,
        )

    @property
    def arg_directions(self) -> list:
        """Directions of the arguments, ``[]`` until derived."""
        return list(self.attrs.get("arg_directions", ()))


class MakeTuple(Expr, frozen=True, eq=False, gc=False):
    """Tuple of expressions."""

    elements: tuple
    span: Span = UNKNOWN_SPAN

    def __post_init__(self) -> None:
        if type(self.elements) is not NodeTuple:
            force_setattr(self, "elements", NodeTuple(self.elements))

    @property
    def type(self) -> TupleType:
        return TupleType(tuple(e.type for e in self.elements))


class TupleGetItemExpr(Expr, frozen=True, eq=False, gc=False):
    """Element ``index`` of a tuple value."""

    tuple: Any
    index: int
    span: Span = UNKNOWN_SPAN

    def __post_init__(self) -> None:
        kind = self.tuple.type
        if not isinstance(kind, TupleType):
            raise ValueError(f"TupleGetItemExpr needs a tuple value, got {type(kind).__name__}")
        if not 0 <= self.index < len(kind.types):
            raise ValueError(f"tuple index {self.index} out of range for a tuple of {len(kind.types)} elements")

    @property
    def type(self) -> Type:
        return self.tuple.type.types[self.index]


class BinaryExpr(Expr, frozen=True, eq=False, gc=False):
    """Base of binary scalar operators; constructing one directly promotes and checks nothing."""

    left: Any
    right: Any
    dtype: DataType
    span: Span = UNKNOWN_SPAN

    @property
    def type(self) -> ScalarType:
        return scalar_type(self.dtype)


class UnaryExpr(Expr, frozen=True, eq=False, gc=False):
    """Base of unary scalar operators; for ``Cast`` the dtype is the target."""

    operand: Any
    dtype: DataType
    span: Span = UNKNOWN_SPAN

    @property
    def type(self) -> ScalarType:
        return scalar_type(self.dtype)


def _operator_class(name: str, base: type) -> type:
    return type(base)(
        name, (base,), {"__module__": __name__, "__doc__": f"Scalar operator {name}."}, frozen=True, eq=False, gc=False
    )


Add = _operator_class("Add", BinaryExpr)
Sub = _operator_class("Sub", BinaryExpr)
Mul = _operator_class("Mul", BinaryExpr)
FloorDiv = _operator_class("FloorDiv", BinaryExpr)
FloorMod = _operator_class("FloorMod", BinaryExpr)
FloatDiv = _operator_class("FloatDiv", BinaryExpr)
Min = _operator_class("Min", BinaryExpr)
Max = _operator_class("Max", BinaryExpr)
Pow = _operator_class("Pow", BinaryExpr)
Eq = _operator_class("Eq", BinaryExpr)
Ne = _operator_class("Ne", BinaryExpr)
Lt = _operator_class("Lt", BinaryExpr)
Le = _operator_class("Le", BinaryExpr)
Gt = _operator_class("Gt", BinaryExpr)
Ge = _operator_class("Ge", BinaryExpr)
And = _operator_class("And", BinaryExpr)
Or = _operator_class("Or", BinaryExpr)
Xor = _operator_class("Xor", BinaryExpr)
BitAnd = _operator_class("BitAnd", BinaryExpr)
BitOr = _operator_class("BitOr", BinaryExpr)
BitXor = _operator_class("BitXor", BinaryExpr)
BitShiftLeft = _operator_class("BitShiftLeft", BinaryExpr)
BitShiftRight = _operator_class("BitShiftRight", BinaryExpr)
Abs = _operator_class("Abs", UnaryExpr)
Neg = _operator_class("Neg", UnaryExpr)
Not = _operator_class("Not", UnaryExpr)
BitNot = _operator_class("BitNot", UnaryExpr)
Cast = _operator_class("Cast", UnaryExpr)

BINARY_CLASSES: tuple[type, ...] = (
    Add, Sub, Mul, FloorDiv, FloorMod, FloatDiv, Min, Max, Pow, Eq, Ne, Lt, Le, Gt, Ge,
    And, Or, Xor, BitAnd, BitOr, BitXor, BitShiftLeft, BitShiftRight,
)  # fmt: skip
UNARY_CLASSES: tuple[type, ...] = (Abs, Neg, Not, BitNot, Cast)


def as_expr(value: Any, span: Span = UNKNOWN_SPAN) -> Expr:
    """``value`` as an expression: numbers become constants (int INDEX, float FP32, bool BOOL), DSL values unwrap.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return ConstBool(value, span)
    if isinstance(value, int):
        return ConstInt(value, DataType.INDEX, span)
    if isinstance(value, float):
        return ConstFloat(value, DataType.FP32, span)
    unwrap = getattr(value, "unwrap", None)
    if unwrap is not None:
        return unwrap()
    raise TypeError(f"Cannot convert {type(value).__name__} to IR expression")


def as_dim(value: Any) -> Expr:
    """:func:`as_expr` for extents, offsets and counts, where a bool is refused."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        raise TypeError("a dimension must be an integer or an expression, got bool")
    return as_expr(value)


def const_index(value: int, span: Span = UNKNOWN_SPAN) -> ConstInt:
    """``ConstInt(value, INDEX)``."""
    return ConstInt(value, DataType.INDEX, span)


def const_value(expr: Any) -> int | None:
    """The value of an integer constant or of an int, else None."""
    return expr.value if isinstance(expr, ConstInt) else expr if isinstance(expr, int) else None
