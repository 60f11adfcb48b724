"""Does a written annotation agree with the type of the value, and what does it add to it?"""

from __future__ import annotations

import math
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, Var
from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
)
from pypto.language.parser.diagnostics import ParserTypeError


def type_text(kind: Any) -> str:
    """A type in the tile language, for messages."""
    from pypto.ir.printer import python_print_type

    return python_print_type(kind, format=False)


def kind_name(kind: Type) -> str:
    """``Tensor`` for a TensorType and so on."""
    return type(kind).__name__.removesuffix("Type")


def check_annotation(annotated: Type, inferred: Type, name: str, span: Any) -> None:
    """Raise ParserTypeError when class, rank, a constant extent or the dtype of an annotation is wrong."""
    if isinstance(inferred, UnknownType) or isinstance(annotated, UnknownType):
        return
    problem = _problem(annotated, inferred)
    if problem:
        raise ParserTypeError(
            f"Type annotation for '{name}' has {problem}", span, hint=f"Change annotation to: {type_text(inferred)}"
        )


def _problem(annotated: Type, inferred: Type) -> str | None:
    if type(annotated) is not type(inferred):
        return f"type {kind_name(annotated)} but expression has type {kind_name(inferred)}"
    if isinstance(annotated, TupleType):
        return _tuple_problem(annotated, inferred)
    if isinstance(annotated, (TensorType, TileType, ArrayType)):
        a_shape, i_shape = annotated.shape, inferred.shape
        if len(a_shape) != len(i_shape):
            return f"rank {len(a_shape)} but expression has rank {len(i_shape)}"
        for axis, (a, i) in enumerate(zip(a_shape, i_shape)):
            if isinstance(a, ConstInt) and isinstance(i, ConstInt) and a.value != i.value:
                return f"shape dimension {axis} = {a.value} but expression has shape dimension {axis} = {i.value}"
    if isinstance(annotated, ScalarType) and inferred.dtype == DataType.INDEX and annotated.dtype.is_int():
        return None
    if isinstance(annotated, (TensorType, TileType, ArrayType, ScalarType)) and annotated.dtype != inferred.dtype:
        return f"dtype {annotated.dtype} but expression has dtype {inferred.dtype}"
    return None


def _tuple_problem(annotated: TupleType, inferred: Any) -> str | None:
    if len(annotated.types) != len(inferred.types):
        return f"{len(annotated.types)} elements but expression has {len(inferred.types)}"
    for position, (a, i) in enumerate(zip(annotated.types, inferred.types)):
        if isinstance(a, UnknownType) or isinstance(i, UnknownType):
            continue
        problem = _problem(a, i)
        if problem:
            return f"element {position} with {problem}"
    return None


def flat_results(types: list[Type]) -> list[Type]:
    """The results of a function, whether it declares or returns them side by side or as one tuple."""
    return list(types[0].types) if len(types) == 1 and isinstance(types[0], TupleType) else list(types)


def result_problem(declared: Type, returned: Type) -> str | None:
    """What is wrong with a declared result, in words that follow "declared with"; None when it fits."""
    if isinstance(declared, UnknownType) or isinstance(returned, UnknownType):
        return None
    if type(declared) is TensorType and isinstance(returned, DistributedTensorType):
        returned = TensorType(returned.shape, returned.dtype)
    if isinstance(declared, ScalarType) and isinstance(returned, ScalarType) and same_kind_of_value(declared, returned):
        return None
    return _problem(declared, returned)


def merge_annotation(annotated: Type, inferred: Type) -> Type:
    """The type of the variable: the annotation, completed by what only inference knows.

    A tile annotation without memory space or view keeps the inferred ones; a tensor annotation without view keeps
    the inferred view and window.
    """
    if isinstance(inferred, UnknownType) or isinstance(annotated, UnknownType):
        return inferred if isinstance(annotated, UnknownType) else annotated
    if isinstance(annotated, TileType) and isinstance(inferred, TileType):
        space = annotated.memory_space or inferred.memory_space
        view = annotated.tile_view or (
            inferred.tile_view if annotated.memory_space in (None, inferred.memory_space) else None
        )
        return TileType(_merged_shape(annotated, inferred), annotated.dtype, annotated.memref, view, space)
    if isinstance(annotated, DistributedTensorType) and isinstance(inferred, DistributedTensorType):
        return DistributedTensorType(
            _merged_shape(annotated, inferred), annotated.dtype, annotated.memref,
            annotated.tensor_view or inferred.tensor_view, inferred.window_buffer,
        )  # fmt: skip
    if isinstance(annotated, TensorType) and isinstance(inferred, TensorType):
        view = annotated.tensor_view or inferred.tensor_view
        return TensorType(_merged_shape(annotated, inferred), annotated.dtype, annotated.memref, view)
    return annotated


def _merged_shape(annotated: Any, inferred: Any) -> tuple:
    """Inferred extents where they are known better: constants win over symbols of the annotation."""
    return tuple(
        i if isinstance(i, ConstInt) and isinstance(a, Var) else a for a, i in zip(annotated.shape, inferred.shape)
    )


def is_flattened(annotated: Type, inferred: Type) -> bool:
    """Is a tile annotation the two-dimensional form of an inferred tile of higher rank? Printed IR has such loads."""
    if not (isinstance(annotated, TileType) and isinstance(inferred, TileType)):
        return False
    if len(annotated.shape) != 2 or len(inferred.shape) <= 2:
        return False
    if not all(isinstance(d, ConstInt) for d in (*annotated.shape, *inferred.shape)):
        return False
    rows = math.prod(d.value for d in inferred.shape[:-1])
    return (rows, inferred.shape[-1].value) == tuple(d.value for d in annotated.shape)


def without_memref(kind: Type) -> Type:
    """The same tensor or tile type without its MemRef."""
    if getattr(kind, "memref", None) is None:
        return kind
    if isinstance(kind, TileType):
        return TileType(kind.shape, kind.dtype, None, kind.tile_view, kind.memory_space)
    if isinstance(kind, DistributedTensorType):
        return DistributedTensorType(kind.shape, kind.dtype, None, kind.tensor_view, kind.window_buffer)
    assert isinstance(kind, TensorType)
    return TensorType(kind.shape, kind.dtype, None, kind.tensor_view)


def same_kind_of_value(old: Type, new: Type) -> bool:
    """May a name of type ``old`` be bound to a value of type ``new``? Views and memory may differ."""
    if isinstance(old, UnknownType) or isinstance(new, UnknownType):
        return True
    if isinstance(old, ScalarType) and isinstance(new, ScalarType):
        return old.dtype == new.dtype or {old.dtype, new.dtype} == {DataType.INDEX, DataType.INT64}
    return _problem(new, old) is None
