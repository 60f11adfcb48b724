"""Operator functions of the language: those of ``pypto.ops.surface`` with results as language values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pypto.ir.expr import Expr
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
)
from pypto.language.typing import values as V

_WRAPPERS: dict[type, Callable[[Expr], Any]] = {
    DistributedTensorType: lambda e: V.DistributedTensor(expr=e),
    TensorType: lambda e: V.Tensor(expr=e),
    TileType: lambda e: V.Tile(expr=e),
    ScalarType: lambda e: V.Scalar(expr=e),
    ArrayType: lambda e: V.Array(expr=e),
    TupleType: lambda e: V.Tuple(e.type.types, expr=e),
    CommCtxType: lambda e: V.CommCtx(expr=e),
    PrefetchAsyncContextType: lambda e: V.PrefetchAsyncContext(expr=e),
    AsyncEventType: lambda e: V.AsyncEvent(expr=e),
    AsyncSessionType: lambda e: V.AsyncSession(expr=e),
    PtrType: lambda e: V.Ptr(expr=e),
}


def wrap(value: Any) -> Any:
    """An expression as the language value of its type; other values unchanged."""
    if isinstance(value, Expr):
        build = _WRAPPERS.get(type(value.type))
        return build(value) if build else value
    if isinstance(value, tuple):
        return tuple(wrap(v) for v in value)
    return value


def language_function(function: Callable, module: str) -> Callable:
    """``function`` with wrapped results, as a function of ``module``."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrap(function(*args, **kwargs))

    call.__module__ = module
    return call


def expose(functions: Mapping[str, Any], module: str) -> dict[str, Any]:
    """Language functions (and plain members) of a namespace, by name; aliases share one object."""
    made: dict[int, Callable] = {}
    result: dict[str, Any] = {}
    for name, member in functions.items():
        if callable(member) and not isinstance(member, type):
            result[name] = made.setdefault(id(member), language_function(member, module))
        else:
            result[name] = member
    return result
