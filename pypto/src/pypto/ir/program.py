"""Functions and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pypto.errors import InternalError
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role, SplitMode
from pypto.ir.expr import GlobalVar
from pypto.ir.node import IRNode, NodeTuple, OverloadedMeta, freeze
from pypto.ir.span import UNKNOWN_SPAN, Span

#: Level and role that a function type implies.
PLACEMENT: dict[FunctionType, tuple[Level | None, Role | None]] = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
    FunctionType.Opaque: (None, None),
    FunctionType.Spmd: (None, None),
    FunctionType.Inline: (None, None),
}


class Function(IRNode, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """A function. ``params`` items may be given as ``(Var, ParamDirection)``.

    Reserved attrs: ``split``, ``auto_scope``, ``external_source``, ``dual_aiv_dispatch``, ``split_aiv``,
    ``split_aiv_region_validated``, ``slot_num``, ``cache_policy``.
    """

    DEFS: ClassVar[tuple[str, ...]] = ("params",)
    IGNORED: ClassVar[tuple[str, ...]] = ("name", "span")

    name: str
    params: tuple
    param_directions: list
    return_types: list
    body: Any
    span: Span
    func_type: FunctionType
    level: Level | None
    role: Role | None
    attrs: dict
    requires_runtime_binding: bool

    def __post_init__(self) -> None:
        if type(self.params) is not NodeTuple:
            freeze(self, "params")

    @staticmethod
    def _normalize(
        name,
        params,
        return_types,
        body,
        span=UNKNOWN_SPAN,
        type=FunctionType.Opaque,
        level=None,
        role=None,
        attrs=None,
        requires_runtime_binding=False,
    ) -> tuple:
        pairs = [p if isinstance(p, tuple) else (p, ParamDirection.In) for p in params]
        implied_level, implied_role = PLACEMENT[type]
        if implied_level is not None:
            for what, given, implied in (("level", level, implied_level), ("role", role, implied_role)):
                if given is not None and given != implied:
                    raise ValueError(
                        f"function '{name}' of type {type.name} has {what} {implied.name}, but {given.name} was given"
                    )
            level, role = implied_level, implied_role
        return (
            name,
            NodeTuple([var for var, _ in pairs]),
            [direction for _, direction in pairs],
            list(return_types),
            body,
            span,
            type,
            level,
            role,
            dict(attrs or {}),
            requires_runtime_binding,
        )

    @property
    def split(self) -> SplitMode | None:
        """The vector split of a mixed kernel, None when absent or NONE."""
        value = self.attrs.get("split")
        return SplitMode(value) if value else None


class Program(IRNode, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """A set of functions, sorted by name; ``functions`` maps GlobalVar to Function."""

    IGNORED: ClassVar[tuple[str, ...]] = ("name", "span")

    functions: dict
    name: str
    span: Span

    @staticmethod
    def _normalize(functions: Iterable[Function] | dict, name: str = "", span: Span = UNKNOWN_SPAN) -> tuple:
        items = functions.values() if isinstance(functions, dict) else functions
        by_name: dict[str, Function] = {}
        for function in items:
            if function is None:
                raise InternalError("a program cannot hold a null function")
            if not function.name:
                raise InternalError("a function of a program needs a name")
            if function.name in by_name:
                raise ValueError(f'Duplicate function name "{function.name}"')
            by_name[function.name] = function
        return {GlobalVar(key): by_name[key] for key in sorted(by_name)}, name, span

    def get_function(self, name: str) -> Function | None:
        return self.functions.get(GlobalVar(name))

    def __getitem__(self, name: str) -> Function | None:
        return self.get_function(name)

    def get_global_var(self, name: str) -> GlobalVar | None:
        for key in self.functions:
            if key.name == name:
                return key
        return None
