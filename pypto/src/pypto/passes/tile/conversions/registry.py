"""The conversion registry and the context that rules build tile code with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, MakeTuple, Var, const_index
from pypto.ir.node import replace
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TensorType, TileType
from pypto.ops.registry import create_op_call, find_op

#: Marks loads made here that later passes may move (``InferTileMemorySpace`` removes it).
MAT_BRIDGE = "__compiler_tensor_to_tile_mat_bridge"


class ConversionContext:
    """Collects the statements that a rule needs before its result."""

    def __init__(self, span: Span, result: Var | None, wants_mat: bool = False) -> None:
        self.span = span
        #: The variable that receives the result, None for an expression statement.
        self.result = result
        #: The result feeds a matrix product: load it to Mat instead of Vec.
        self.wants_mat = wants_mat
        self.stmts: list[Stmt] = []

    def call(self, name: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Call:
        """A call with its deduced type."""
        return create_op_call(name, args, kwargs, self.span)

    def let(self, name: str, value: Expr) -> Var:
        """Bind ``value`` to a new variable before the result."""
        var = Var(name, value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def emit(self, name: str, op: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Var:
        """Bind a call to a new variable before the result."""
        return self.let(name, self.call(op, args, kwargs))

    def scratch(self, name: str, shape: Sequence[Expr | int], dtype: DataType) -> Var:
        """A fresh Vec tile."""
        return self.emit(name, "tile.create", [extents(shape)], {"dtype": dtype, "target_memory": MemorySpace.Vec})

    def load_call(
        self,
        tensor: Expr,
        offsets: Sequence[Expr | int] | None = None,
        shape: Sequence[Expr | int] | None = None,
        valid: Sequence[Expr | int] | None = None,
        space: MemorySpace = MemorySpace.Vec,
    ) -> Call:
        """``tile.load`` of a window (default: the whole tensor); a load to Mat is marked as made by the compiler."""
        kind = tensor.type
        shape = kind.shape if shape is None else shape
        offsets = [0] * len(shape) if offsets is None else offsets
        valid = (kind.valid_shape if shape is kind.shape else shape) if valid is None else valid
        call = self.call(
            "tile.load", [tensor, extents(offsets), extents(shape), extents(valid)], {"target_memory": space}
        )
        return replace(call, attrs={MAT_BRIDGE: True}) if space is MemorySpace.Mat else call

    def tile(self, value: Expr, name: str) -> Expr:
        """``value`` as a tile: a tensor in global memory is loaded whole to Vec."""
        return self.let(name, self.load_call(value)) if isinstance(value.type, TensorType) else value


#: (context, operands, kwargs, original call) -> the value of the call: a tile call, or a variable.
Rule = Callable[[ConversionContext, list[Expr], dict[str, Any], Call], Expr]


@dataclass(frozen=True)
class Conversion:
    """``loads_itself``: operands stay in global memory, the rule decides what is loaded and where to."""

    rule: Rule
    loads_itself: bool = False


_CONVERSIONS: dict[str, Conversion] = {}


def register_op_conversion(source: str, target: str) -> None:
    """``source`` becomes ``target`` with the same operands and the kwargs that ``target`` knows."""

    def rule(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
        return ctx.call(target, args, known_kwargs(target, kwargs))

    _CONVERSIONS[source] = Conversion(rule)


def register_op_conversion_custom(source: str, rule: Rule, *, loads_itself: bool = False) -> None:
    """``source`` is converted by ``rule``."""
    _CONVERSIONS[source] = Conversion(rule, loads_itself)


def op_conversion(*sources: str, loads_itself: bool = False) -> Callable[[Rule], Rule]:
    """Decorator form of :func:`register_op_conversion_custom` for one or more operators."""

    def register(rule: Rule) -> Rule:
        for source in sources:
            register_op_conversion_custom(source, rule, loads_itself=loads_itself)
        return rule

    return register


def find_conversion(name: str) -> Conversion | None:
    """The conversion of an operator, from this registry or from the operator's own ``converts_to``."""
    found = _CONVERSIONS.get(name)
    if found is None:
        definition = find_op(name)
        target = definition.converts_to if definition else None
        if target is not None and target != "custom":
            register_op_conversion(name, target)
            found = _CONVERSIONS[name]
    return found


def has_op_conversion(name: str) -> bool:
    """Whether a tensor operator can be converted."""
    return find_conversion(name) is not None


def known_kwargs(target: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword attributes that operator ``target`` takes."""
    definition = find_op(target)
    return {k: v for k, v in kwargs.items() if definition is None or k in definition.attrs}


def extents(values: Sequence[Expr | int]) -> MakeTuple:
    """A tuple operand of extents or offsets."""
    return MakeTuple(tuple(v if isinstance(v, Expr) else const_index(v) for v in values))


def elements(value: Expr) -> tuple[Expr, ...]:
    """The items of a tuple operand."""
    return value.elements if isinstance(value, MakeTuple) else ()


def is_tile(value: Expr) -> bool:
    """Whether an operand is on chip already."""
    return isinstance(value.type, TileType)
