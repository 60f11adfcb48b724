"""What a body may refer to besides its own names: the program around it and the options of its decorator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.expr import Var
from pypto.ir.program import Function
from pypto.ir.types import Type


@dataclass
class FunctionOptions:
    """Arguments of ``@pl.function``."""

    type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    auto_scope: bool = True
    strict_ssa: bool = False
    external_source: str | None = None


@dataclass
class Signature:
    """What callers of a function see."""

    name: str
    params: tuple[Var, ...]
    directions: list[ParamDirection]
    return_types: list[Type]
    options: FunctionOptions

    @property
    def is_chip_orchestrator(self) -> bool:
        options = self.options
        return options.type in (FunctionType.Orchestration, FunctionType.Graph) or (
            options.level is Level.CHIP and options.role is Role.Orchestrator
        )


def signature_of(function: Function) -> Signature:
    """The signature of a finished function."""
    options = FunctionOptions(type=function.func_type, level=function.level, role=function.role)
    return Signature(function.name, function.params, list(function.param_directions), function.return_types, options)


@dataclass
class ProgramContext:
    """Functions of the program being parsed, by name."""

    name: str
    signatures: dict[str, Signature] = field(default_factory=dict)
    externals: dict[str, Function] = field(default_factory=dict)
    window_names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class SourceInfo:
    """The text of a definition and where it stands."""

    file: str
    lines: list[str]
    line_offset: int = 0
    col_offset: int = 0
    file_lines: list[str] | None = None
    source_map: Mapping[int, tuple[str, int, int]] | None = None
    #: A text given to ``pl.parse`` (mostly printed IR), not the file of a decorated function.
    is_text: bool = False
