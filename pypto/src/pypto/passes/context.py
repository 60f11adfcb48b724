"""Pass context: the thread-local options and instruments that passes run under."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto.passes.diagnostics import DiagnosticCheck, DiagnosticCheckSet
    from pypto.passes.instruments import PassInstrument


class VerificationMode(Enum):
    """When a VerificationInstrument checks."""

    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class VerificationLevel(Enum):
    """How much a pipeline checks by itself."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class MemoryPlanner(Enum):
    """Who assigns on-chip addresses."""

    PYPTO = 0
    DSA_RP = 1
    PTOAS = 2


class RuntimeKind(Enum):
    """Task runtime that orchestration code is generated for."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


class DiagnosticPhase(Enum):
    """When a diagnostic check runs; NONE silences all of them."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    """Wire name of a runtime kind."""
    return kind.name.lower()


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """Runtime kind of a wire name; ``ValueError`` for an unknown one."""
    for kind in RuntimeKind:
        if kind.name.lower() == name:
            return kind
    known = ", ".join(f"'{k.name.lower()}'" for k in RuntimeKind)
    raise ValueError(f"unknown runtime '{name}', expected one of {known}")


def _from_environment(variable: str, enum: type[Enum], default: Enum) -> Enum:
    text = os.environ.get(variable, "")
    return next((m for m in enum if m.name.lower() == text.strip().lower()), default)


def get_default_verification_level() -> VerificationLevel:
    """``PYPTO_VERIFY_LEVEL`` (none, basic, roundtrip), BASIC when unset or unknown."""
    return _from_environment("PYPTO_VERIFY_LEVEL", VerificationLevel, VerificationLevel.BASIC)  # type: ignore[return-value]


def get_default_diagnostic_phase() -> DiagnosticPhase:
    """``PYPTO_WARNING_LEVEL`` (none, pre_pipeline, post_pass, post_pipeline), PRE_PIPELINE when unset or unknown."""
    return _from_environment("PYPTO_WARNING_LEVEL", DiagnosticPhase, DiagnosticPhase.PRE_PIPELINE)  # type: ignore[return-value]


def _check_set(checks: Iterable[DiagnosticCheck] | None) -> DiagnosticCheckSet:
    """A set of its own, the default one for None; ``TypeError`` for what holds no checks."""
    from pypto.passes.diagnostics import DEFAULT_DISABLED, DiagnosticCheckSet

    if not isinstance(checks, (Iterable, type(None))):
        raise TypeError(f"disabled_diagnostics must be a set of DiagnosticCheck, got {type(checks).__name__}")
    own = DiagnosticCheckSet()
    for check in DEFAULT_DISABLED if checks is None else checks:
        own.insert(check)
    return own


_local = threading.local()


class PassContext:
    """Options and instruments for the passes run inside ``with``; the innermost context wins completely."""

    def __init__(
        self,
        instruments: Iterable[PassInstrument],
        verification_level: VerificationLevel = VerificationLevel.BASIC,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
        enable_buffer_ir: bool = False,
    ):
        self._instruments = list(instruments)
        self._verification_level = verification_level
        self._diagnostic_phase = get_default_diagnostic_phase() if diagnostic_phase is None else diagnostic_phase
        self._disabled = _check_set(disabled_diagnostics)
        self._memory_planner = memory_planner
        self._l0c_double_buffer = enable_pypto_l0c_double_buffer
        self._runtime = runtime
        self._enable_buffer_ir = enable_buffer_ir

    @staticmethod
    def current() -> PassContext | None:
        """The innermost active context of this thread."""
        stack = getattr(_local, "stack", None)
        return stack[-1] if stack else None

    def __enter__(self) -> PassContext:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _local.stack.pop()

    def get_instruments(self) -> list[PassInstrument]:
        return list(self._instruments)

    def get_verification_level(self) -> VerificationLevel:
        return self._verification_level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        return self._diagnostic_phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        return self._disabled.copy()  # type: ignore[return-value]

    def get_memory_planner(self) -> MemoryPlanner:
        return self._memory_planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        return self._l0c_double_buffer

    def get_runtime(self) -> RuntimeKind:
        return self._runtime

    def get_enable_buffer_ir(self) -> bool:
        return self._enable_buffer_ir


def active_memory_planner() -> MemoryPlanner:
    """The planner of the active context, PYPTO without one."""
    context = PassContext.current()
    return context.get_memory_planner() if context else MemoryPlanner.PYPTO


def active_buffer_ir() -> bool:
    """Whether the active context lowers to Buffer IR."""
    context = PassContext.current()
    return bool(context and context.get_enable_buffer_ir())


def active_runtime() -> RuntimeKind:
    """The runtime of the active context, the ring-buffer runtime without one."""
    context = PassContext.current()
    return context.get_runtime() if context else RuntimeKind.TENSORMAP_AND_RINGBUFFER


def active_verification_level() -> VerificationLevel:
    """The level of the active context, else the environment's default."""
    context = PassContext.current()
    return context.get_verification_level() if context else get_default_verification_level()


def active_diagnostic_phase() -> DiagnosticPhase:
    """The diagnostic gate of the active context, else the environment's default."""
    context = PassContext.current()
    return context.get_diagnostic_phase() if context else get_default_diagnostic_phase()


def backend_handler():
    """The configured backend's handler, or None when no backend is configured."""
    from pypto import backend

    return backend.get_handler() if backend.is_backend_configured() else None
