"""Public module name of the artifact class, which lives in ``pypto.runtime``."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "CompiledProgram":
        return importlib.import_module("pypto.runtime.compiled_program").CompiledProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
