"""Parameter directions in annotations: ``pl.Out[T]`` and ``pl.InOut[T]``."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import ParamDirection


class Direction:
    """A type together with the direction of the parameter it annotates."""

    def __init__(self, direction: ParamDirection, inner: Any):
        self.direction = direction
        self.inner = inner


class _DirectionForm:
    """The object behind ``pl.Out`` and ``pl.InOut``."""

    def __init__(self, direction: ParamDirection):
        self.direction = direction

    def __getitem__(self, inner: Any) -> Direction:
        return Direction(self.direction, inner)

    def __repr__(self) -> str:
        return f"pl.{self.direction.name}"


Out = _DirectionForm(ParamDirection.Out)
InOut = _DirectionForm(ParamDirection.InOut)
