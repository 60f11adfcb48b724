"""The Python function of an operator: from Python values to a call.

Every function is derived from an operator definition: its public signature is the rule's (or the ``front``'s), plus
``span=``. Operands may be expressions, numbers, sequences (shapes, offsets, indices) or DSL values with ``unwrap``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pypto.ir.callers import caller_span
from pypto.ir.dtype import DataType
from pypto.ir.enums import PadValue
from pypto.ir.expr import Call, Expr, MakeTuple, as_dim, as_expr
from pypto.ir.node import replace
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import ShapedType, TensorType, TileType, TupleType
from pypto.ops.padding import pad_policy
from pypto.ops.registry import OpDef, OpParam, create_op_call, find_op, kwarg_value
from pypto.ops.scalars import as_datatype, element_scalar

_SPAN_PARAMETER = inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Span | None")


def tuple_operand(value: Any, span: Span = UNKNOWN_SPAN) -> Expr:
    """A shape, offset or index operand: a sequence as a MakeTuple; tuple expressions are kept."""
    if _is_tuple_expression(value):
        return value
    return MakeTuple([tuple_operand(m, span) if _is_sequence(m) else as_dim(m) for m in value], span)


def _is_tuple_expression(value: Any) -> bool:
    return isinstance(value, Expr) and (isinstance(value, MakeTuple) or isinstance(value.type, TupleType))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def operand(param: OpParam, value: Any, first: Any, span: Span) -> Expr:
    """One Python argument as the operand a parameter wants; ``first`` is the converted first operand."""
    if param.kind == "indices" and not _is_sequence(value) and not _is_tuple_expression(value):
        return tuple_operand([value], span)
    if param.kind in ("shape", "indices", "tuple") or (param.variadic and _is_sequence(value)):
        if not _is_sequence(value) and not _is_tuple_expression(value):
            raise TypeError(f"{param.name} must be a list or a tuple, got {type(value).__name__}")
        return tuple_operand(value, span)
    if param.element and isinstance(getattr(first, "type", None), ShapedType):
        if not isinstance(getattr(value, "type", None), (TensorType, TileType)):
            return element_scalar(_unwrapped(value), first.type.dtype, span)
    if isinstance(value, (bool, int, float)) and not _SCALAR_KINDS.intersection(param.kind.split("|")):
        raise TypeError(
            f"{param.name} must be a {param.kind.replace('|', ' or a ')}, got {type(value).__name__} {value}"
        )
    return as_expr(value, span)


#: Kinds of operands that a Python number can stand for.
_SCALAR_KINDS = {"scalar", "memref", "handle"}


def _unwrapped(value: Any) -> Any:
    unwrap = getattr(value, "unwrap", None)
    return value if unwrap is None else unwrap()


def _attribute(types: tuple[type, ...], value: Any) -> Any:
    """A Python argument as attribute value: enum codes, element type codes and pad numbers are normalised."""
    if DataType in types:
        return as_datatype(value)
    if PadValue in types:
        return pad_policy(value, allow_null=True)
    if tuple in types and isinstance(value, list):
        return tuple(value)
    return kwarg_value(value)


def _default_front(definition: OpDef, *, verbatim: bool = False) -> Callable[..., tuple]:
    """Binding of a call against the rule's signature; ``verbatim`` stores given attributes even at their default."""
    signature = definition.signature
    params = {p.name: p for p in definition.params}
    attrs = definition.attrs

    def front(*args: Any, **kwargs: Any) -> tuple:
        bound = signature.bind(*args, **kwargs).arguments
        operands: list[Any] = []
        values: dict[str, Any] = {}
        for name, value in bound.items():
            spec = attrs.get(name)
            if spec is None:
                if params[name].variadic:
                    operands.extend(value)
                elif value is not None or not params[name].optional:
                    operands.append(value)
            elif value is not None:
                values[name] = _attribute(spec.type, value)
        for name, spec in attrs.items():
            if name not in values and spec.keep and not spec.required:
                values[name] = kwarg_value(spec.default)
        stored = lambda n: verbatim or attrs[n].keep or values[n] != attrs[n].default  # noqa: E731
        kept = {n: values[n] for n in attrs if n in values and stored(n)}
        return operands, kept

    return front


def _take_span(args: tuple, kwargs: dict) -> tuple[tuple, Span | None]:
    """``span=``, or a Span among the positional arguments."""
    span = kwargs.pop("span", None)
    if any(isinstance(a, Span) for a in args):
        span = span or next(a for a in args if isinstance(a, Span))
        args = tuple(a for a in args if not isinstance(a, Span))
    return args, span


def emit(definition: OpDef, operands: Sequence[Any], attrs: dict[str, Any], span: Span) -> Call:
    """The call of an operator on Python operands (already in IR order) and attribute values."""
    params = definition.params
    converted: list[Expr] = []
    for index, value in enumerate(operands):
        param = params[min(index, len(params) - 1)] if params else OpParam("operand", "handle")
        converted.append(operand(param, value, converted[0] if converted else None, span))
    return create_op_call(definition.name, converted, attrs, span)


def plain_function(definition: OpDef) -> Callable[..., Expr]:
    """The function that printed text calls by the operator's own name: IR operands and attributes, in rule order."""
    front = _default_front(definition, verbatim=True)
    return _function(definition, front, definition.signature, definition.name.rpartition(".")[2])


def public_function(definition: OpDef) -> Callable[..., Expr]:
    """The Python function of an operator."""
    front = definition.front or _default_front(definition)
    signature = definition.signature if definition.front is None else inspect.signature(front)
    return _function(definition, front, signature, definition.python_name)


def _function(
    definition: OpDef, front: Callable[..., tuple], signature: inspect.Signature, name: str
) -> Callable[..., Expr]:
    scalar_form = definition.scalar_form
    kinds = [(n, p.kind) for n, p in signature.parameters.items()]
    keyword_only = [n for n, kind in kinds if kind is inspect.Parameter.KEYWORD_ONLY]
    positional = sum(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for _, kind in kinds)

    def function(*args: Any, **kwargs: Any) -> Expr:
        args, span = _take_span(args, kwargs)
        span = span or caller_span()
        if scalar_form is not None:
            rhs = args[1] if len(args) > 1 else kwargs.get("rhs")
            if rhs is not None and not _is_shaped(rhs):
                return _scalar_call(definition, scalar_form, args, kwargs, span)
        if len(args) > positional and definition.positional_attrs:
            kwargs = {**dict(zip(keyword_only, args[positional:])), **kwargs}
            args = args[:positional]
        return _built(definition, front(*args, **kwargs), span)

    function.__name__ = name
    function.__qualname__ = f"{definition.name.rpartition('.')[0]}.{name}"
    function.__doc__ = definition.doc
    shown = [p for p in signature.parameters.values() if p.name not in definition.hidden]
    function.__signature__ = _with_span(signature.replace(parameters=shown))  # type: ignore[attr-defined]
    return function


def _built(definition: OpDef, parts: tuple, span: Span) -> Expr:
    """The call a front describes: ``(operands, attrs)``, ``(name, operands, attrs)`` of the operator that the
    keywords select, or ``(operands, attrs, type)`` when the caller states the type."""
    if isinstance(parts[0], str):
        selected = find_op(parts[0])
        assert selected is not None
        return emit(selected, parts[1], parts[2], span)
    call = emit(definition, parts[0], parts[1], span)
    return call if len(parts) == 2 else replace(call, type=parts[2])


def _with_span(signature: inspect.Signature) -> inspect.Signature:
    parameters = [p for p in signature.parameters.values() if p.name != "span"]
    at = next((i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_KEYWORD), len(parameters))
    return signature.replace(parameters=[*parameters[:at], _SPAN_PARAMETER, *parameters[at:]])


def _is_shaped(value: Any) -> bool:
    kind = getattr(_unwrapped(value), "type", None)
    return isinstance(kind, (TensorType, TileType))


def _scalar_call(definition: OpDef, scalar_form: str, args: tuple, kwargs: dict, span: Span) -> Call:
    """The ``*s`` operator that stands for this one when the right side is a scalar."""
    if kwargs.pop("high_precision", False) or (len(args) > 2 and args[2] is True):
        level = "Tile" if definition.name.startswith("tile.") else "Tensor"
        raise TypeError(f"{definition.name}: high_precision=True requires a {level} rhs")
    scalar = find_op(scalar_form)
    assert scalar is not None
    names = [p.name for p in scalar.params]
    operands = [*args, *(kwargs.pop(n) for n in names[len(args) :] if n in kwargs)][: len(names)]
    attrs = {n: kwargs[n] for n in scalar.attrs if n in kwargs}
    for name, value in zip(scalar.attrs, args[len(names) :]):
        attrs[name] = value
    for name, spec in scalar.attrs.items():
        if spec.keep:
            attrs.setdefault(name, spec.default)
    return emit(scalar, operands, attrs, span)
