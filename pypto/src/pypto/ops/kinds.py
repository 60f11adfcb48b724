"""Operand kinds and attribute markers used in the signatures of operator definitions.

They are plain aliases for type checkers; the registry reads the annotation *text* (``Tile``, ``Tile | Scalar``,
``Attr[bool]``) to learn what an operand may be.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pypto.ir.expr import Expr

Tile = Expr  #: operand of TileType
Tensor = Expr  #: operand of TensorType (distributed ones included)
Scalar = Expr  #: operand of ScalarType; Python numbers become constants
Element = Expr  #: like Scalar, but a Python number takes the element type of the first operand
Shape = Expr  #: MakeTuple of extents or offsets; a Python sequence becomes one
Indices = Expr  #: like Shape, but one index may stand for a tuple of one
Tuple = Expr  #: MakeTuple of other values
MemRefOperand = Expr  #: operand that names an allocation
Handle = Expr  #: opaque handle (communication context, window buffer, event, ...)
Array = Expr  #: operand of ArrayType

_T = TypeVar("_T")
Attr = Annotated[_T, "attribute"]  #: compile-time keyword stored in ``Call.kwargs``
