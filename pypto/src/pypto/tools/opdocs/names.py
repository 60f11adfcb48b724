"""Under which Python names an operator is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pypto.language.op.promoted import SYSTEM as SHORT_SYSTEM
from pypto.language.op.promoted import TENSOR as SHORT_TENSOR
from pypto.language.op.promoted import TILE as SHORT_TILE
from pypto.ops import surface
from pypto.ops.registry import OpDef

#: Prefix of the operator -> (namespace of functions, how users reach it, short names on ``pl``).
NAMESPACES: dict[str, tuple[Any, str, dict[str, str]]] = {
    "tile": (surface.TILE, "pl.tile", SHORT_TILE),
    "tensor": (surface.TENSOR, "pl.tensor", SHORT_TENSOR),
    "system": (surface.SYSTEM, "pl.system", SHORT_SYSTEM),
    "array": (surface.ARRAY, "pl.array", {}),
    "prefetch": (surface.PREFETCH, "pl.prefetch", {}),
    "pld.system": (surface.PLD.system, "pld.system", {}),
    "pld.tensor": (surface.PLD.tensor, "pld.tensor", {}),
    "pld.tile": (surface.PLD.tile, "pld.tile", {}),
}


def function_of(definition: OpDef) -> Callable[..., Any] | None:
    """The Python function of an operator, None for one that users cannot write."""
    prefix = definition.name.rpartition(".")[0]
    if prefix not in NAMESPACES or not definition.python_name or definition.internal_only:
        return None
    return getattr(NAMESPACES[prefix][0], definition.python_name, None)


def python_names(definition: OpDef) -> list[str]:
    """``["pl.add", "pl.tile.add"]``: every spelling of the operator, the shortest first."""
    if function_of(definition) is None:
        return []
    prefix = definition.name.rpartition(".")[0]
    _, path, short = NAMESPACES[prefix]
    own = (definition.python_name, *definition.aliases)
    unified = definition.python_name in surface.UNIFIED and prefix in ("tile", "tensor")
    promoted = [f"pl.{name}" for name, target in short.items() if target in own]
    if unified and f"pl.{definition.python_name}" not in promoted:
        promoted.insert(0, f"pl.{definition.python_name}")
    return [*promoted, *(f"{path}.{name}" for name in own)]


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters users write, without ``span``."""
    return [p for p in inspect.signature(function).parameters.values() if p.name != "span"]
