"""Python signatures as text: annotations from operand kinds and attribute types, defaults as users write them."""

from __future__ import annotations

import enum
import inspect
import json
import re
from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import DTYPE_CONSTANT, DataType
from pypto.ops.registry import OpDef
from pypto.tools.opdocs.names import parameters_of

#: Marker in a rule's or a front's signature -> annotation of the stub.
_KINDS = {
    "Tile": "Tile",
    "Tensor": "Tensor",
    "Scalar": "ScalarLike",
    "Element": "ScalarLike",
    "Shape": "ShapeLike",
    "Indices": "ShapeLike",
    "Tuple": "ShapeLike",
    "Array": "Array",
    "tile": "Tile",
    "tensor": "Tensor",
    "scalar": "ScalarLike",
    "shape": "ShapeLike",
    "tuple": "ShapeLike",
    "array": "Array",
}
_OPAQUE = {"Any", "Handle", "MemRefOperand", "handle", "memref"}
_STAR = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def annotation(parameter: inspect.Parameter, definition: OpDef | None = None) -> str:
    """Type of a parameter; an unannotated one takes the kind of the operand or attribute of its name."""
    text = str(parameter.annotation)
    if parameter.annotation in (inspect.Parameter.empty, "Any") and definition is not None:
        text = _declared(parameter.name, definition)
    match = re.fullmatch(r"Attr\[(.*)\]", text)
    parts = [p.strip() for p in (match.group(1) if match else text).split("|")]
    parts = [_KINDS.get(p, "Any" if p in _OPAQUE else p) for p in parts]
    if definition is not None and definition.scalar_form and parameter.name == "rhs":
        parts.append("ScalarLike")
    if "DataType" in parts:
        parts.append("int")
    if "tuple" in parts:
        parts[parts.index("tuple")] = "tuple[int, ...]"
    if parameter.default is None or "None" in parts:
        parts = [*(p for p in parts if p != "None"), "None"]
    return "Any" if "Any" in parts else " | ".join(dict.fromkeys(parts))


def _declared(name: str, definition: OpDef) -> str:
    for param in definition.params:
        if param.name == name:
            return param.kind
    spec = definition.attrs.get(name)
    if spec is None or not spec.type:
        return "Any"
    return "|".join(kind.__name__ for kind in spec.type)


def default_text(value: Any) -> str:
    """A default as Python source: ``pl`` names for element types, ``Class.member`` for enumerations."""
    if isinstance(value, DataType):
        return f"DataType.{DTYPE_CONSTANT[value]}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return json.dumps(value)
    return "..." if value is ... else repr(value)


def signature_parts(
    parameters: list[inspect.Parameter], typed: Callable[[inspect.Parameter], str] | None = None
) -> list[str]:
    """``["lhs", "rhs", "high_precision=False"]``; with ``typed``, every parameter has its annotation."""
    parts: list[str] = []
    starred = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or parameter.kind is inspect.Parameter.VAR_POSITIONAL
        text = _STAR.get(parameter.kind, "") + parameter.name
        if typed is not None:
            text += f": {typed(parameter)}"
        if parameter.default is not inspect.Parameter.empty:
            text += (" = " if typed else "=") + default_text(parameter.default)
        parts.append(text)
    return parts


def call_text(name: str, function: Callable[..., Any]) -> str:
    """``pl.tile.div(lhs, rhs, high_precision=False)``."""
    return f"{name}({', '.join(signature_parts(parameters_of(function)))})"
