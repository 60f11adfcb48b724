"""The members of the JIT family and the functions they become."""

from __future__ import annotations

from enum import Enum

from pypto.ir.enums import FunctionType, Level, Role
from pypto.language.parser.context import FunctionOptions


class Kind(Enum):
    """Which decorator of the family a function carries."""

    ORCHESTRATION = "orchestration"
    HOST = "host"
    INCORE = "incore"
    INLINE = "inline"
    OPAQUE = "opaque"
    EXTERN = "extern"
    GRAPH = "graph"


#: Kinds that start a program; the others are reached from one.
ENTRIES = (Kind.ORCHESTRATION, Kind.HOST)
_TYPES = {
    Kind.ORCHESTRATION: FunctionType.Orchestration,
    Kind.HOST: FunctionType.Opaque,
    Kind.INCORE: FunctionType.InCore,
    Kind.INLINE: FunctionType.Inline,
    Kind.OPAQUE: FunctionType.Opaque,
    Kind.GRAPH: FunctionType.Graph,
}
_CORES = {Level.AIC: FunctionType.AIC, Level.AIV: FunctionType.AIV}


def options_of(kind: Kind, level: Level | None, auto_scope: bool) -> FunctionOptions:
    """The options of the function that this kind generates."""
    if kind is Kind.HOST:
        return FunctionOptions(level=Level.HOST, role=Role.Orchestrator, auto_scope=auto_scope)
    func_type = _CORES.get(level, _TYPES[kind]) if kind is Kind.INCORE and level is not None else _TYPES[kind]
    return FunctionOptions(type=func_type, auto_scope=auto_scope)
