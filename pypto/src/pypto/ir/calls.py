"""Building calls with argument directions, and the types of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import Expr, Op, Var
from pypto.ir.span import Span, capture_span
from pypto.ir.substitution import _Substituter
from pypto.ir.types import TensorType, TileType, TupleType, Type, UnknownType, same_dim

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar_dir = ArgDirection.Scalar


def make_call(
    op: Op,
    args: Sequence[Any],
    *,
    directions: Sequence[ArgDirection] | None = None,
    kwargs: dict[str, Any] | None = None,
    type: Type | None = None,
    span: Span | None = None,
) -> E.Call:
    """A call with its argument directions.

    Args:
        op: an operator or a ``GlobalVar``.
        args: expressions or Python numbers.
        directions: one per argument, as constants of this module (``input``, ``output``, ...) or ArgDirection members.
        kwargs: keyword arguments of the operator.
        type: result type, unknown when None.
        span: source location, the caller's when None.

    Raises:
        ValueError: another number of directions than arguments.
    """
    span = span or capture_span()
    exprs = tuple(E.as_expr(a, span) for a in args)
    attrs: dict[str, Any] = {}
    if directions is not None:
        if len(directions) != len(exprs):
            raise user_error(
                f"make_call: directions length ({len(directions)}) must match args length ({len(exprs)})", span=span
            )
        attrs["arg_directions"] = list(directions)
    return E.Call(op, exprs, kwargs=kwargs or {}, attrs=attrs, type=type or UnknownType.get(), span=span)


def set_call_attrs(call: E.Call, attrs: dict[str, Any]) -> E.Call:
    """A copy of ``call`` with other attributes."""
    return E.Call(call.op, call.args, kwargs=call.kwargs, attrs=attrs, type=call.type, span=call.span)


class _DimBinding:
    """Dimension variables of a callee's signature and the extents that a call gives them."""

    def __init__(self) -> None:
        self.extents: dict[Var, Expr] = {}
        self.conflicts: set[Var] = set()

    def bind(self, declared: Type, given: Type) -> None:
        if isinstance(declared, TupleType) and isinstance(given, TupleType):
            for a, b in zip(declared.types, given.types):
                self.bind(a, b)
            return
        if not isinstance(declared, (TensorType, TileType)) or not isinstance(given, (TensorType, TileType)):
            return
        pairs = []
        if len(declared.shape) == len(given.shape):
            pairs += zip(declared.shape, given.shape)
        if len(declared.valid_shape) == len(given.valid_shape):
            pairs += zip(declared.valid_shape, given.valid_shape)
        for dim, extent in pairs:
            if type(dim) is not Var:
                continue
            if dim in self.extents and not same_dim(self.extents[dim], extent):
                self.conflicts.add(dim)
            self.extents.setdefault(dim, extent)


def deduce_call_return_type(
    callee_params: Sequence[Var], args: Sequence[Expr], return_types: Sequence[Type]
) -> list[Type]:
    """Return types of a call: dimension variables of the signature become the extents of the arguments.

    A scalar parameter used as an extent stands for its argument. A variable that two arguments bind to different
    extents stays; types without such variables are the same objects.
    """
    binding = _DimBinding()
    for param, arg in zip(callee_params, args):
        binding.extents.setdefault(param, arg)
        binding.bind(param.type, arg.type)
    pairs = [(var, extent) for var, extent in binding.extents.items() if var not in binding.conflicts]
    substituter = _Substituter([(var, extent) for var, extent in pairs if var is not extent])
    return [substituter.visit_type(kind) for kind in return_types]
