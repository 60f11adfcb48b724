"""Passes: named program transforms with declared properties, and the decorators that define them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from pypto.ir.program import Function, Program
from pypto.passes.context import PassContext
from pypto.passes.lib.walk import map_functions
from pypto.passes.properties import IRProperty, IRPropertySet

ProgramTransform = Callable[[Program], Program]
FunctionTransform = Callable[[Function], Function]


class PassProperties:
    """What a pass requires, produces and invalidates."""

    def __init__(
        self,
        required: IRPropertySet | Iterable[IRProperty] = (),
        produced: IRPropertySet | Iterable[IRProperty] = (),
        invalidated: IRPropertySet | Iterable[IRProperty] = (),
    ):
        self.required = IRPropertySet(required)
        self.produced = IRPropertySet(produced)
        self.invalidated = IRPropertySet(invalidated)

    def __repr__(self) -> str:
        return f"PassProperties(required={self.required}, produced={self.produced}, invalidated={self.invalidated})"


class Pass:
    """One transform ``Program -> Program``. Calling it runs the instruments of the active context around it."""

    def __init__(self, transform: ProgramTransform, name: str = "", properties: PassProperties | None = None):
        self._transform = transform
        self._name = name
        self._properties = properties or PassProperties()

    def __call__(self, program: Program) -> Program:
        context = PassContext.current()
        instruments = context.get_instruments() if context else ()
        for instrument in instruments:
            instrument.run_before_pass(self, program)
        result = self._transform(program)
        for instrument in instruments:
            instrument.run_after_pass(self, result)
        return result

    run = __call__

    def get_name(self) -> str:
        return self._name

    def get_required_properties(self) -> IRPropertySet:
        return self._properties.required.copy()  # type: ignore[return-value]

    def get_produced_properties(self) -> IRPropertySet:
        return self._properties.produced.copy()  # type: ignore[return-value]

    def get_invalidated_properties(self) -> IRPropertySet:
        return self._properties.invalidated.copy()  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<Pass {self._name}>"


def create_program_pass(transform: ProgramTransform, name: str = "", properties: PassProperties | None = None) -> Pass:
    """A pass from a ``Program -> Program`` function."""
    return Pass(transform, name, properties)


def create_function_pass(
    transform: FunctionTransform, name: str = "", properties: PassProperties | None = None
) -> Pass:
    """A pass that maps a ``Function -> Function`` function over every function."""
    return Pass(lambda program: map_functions(program, transform), name, properties)


def _factory(create: Callable, name: str, properties: PassProperties) -> Callable:
    def decorate(transform: Callable) -> Callable[[], Pass]:
        @functools.wraps(transform, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        def factory() -> Pass:
            return create(transform, name, properties)

        factory.__annotations__ = {"return": Pass}
        return factory

    return decorate


def program_pass(
    name: str,
    *,
    required: Iterable[IRProperty] = (),
    produced: Iterable[IRProperty] = (),
    invalidated: Iterable[IRProperty] = (),
) -> Callable:
    """Turn a ``Program -> Program`` function into the factory of pass ``name``; ``__wrapped__`` is the transform."""
    return _factory(create_program_pass, name, PassProperties(required, produced, invalidated))


def function_pass(
    name: str,
    *,
    required: Iterable[IRProperty] = (),
    produced: Iterable[IRProperty] = (),
    invalidated: Iterable[IRProperty] = (),
) -> Callable:
    """Turn a ``Function -> Function`` function into the factory of pass ``name``; ``__wrapped__`` is the transform."""
    return _factory(create_function_pass, name, PassProperties(required, produced, invalidated))
