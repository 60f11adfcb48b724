"""Markers of argument directions at call sites: ``pl.adir.input`` and so on."""

from __future__ import annotations

from types import SimpleNamespace

from pypto.ir.enums import ArgDirection

NAME_TO_DIRECTION: dict[str, ArgDirection] = {
    "input": ArgDirection.Input,
    "output": ArgDirection.Output,
    "output_existing": ArgDirection.OutputExisting,
    "inout": ArgDirection.InOut,
    "no_dep": ArgDirection.NoDep,
    "scalar": ArgDirection.Scalar,
}
DIRECTION_TO_NAME: dict[ArgDirection, str] = {value: name for name, value in NAME_TO_DIRECTION.items()}

adir = SimpleNamespace(**NAME_TO_DIRECTION)
