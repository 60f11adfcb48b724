"""Programs as torch scripts, for checking what the compiler does."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

_LAZY = {"run_as_torch": "golden_run", "validate_pass_ir_codegen_results": "golden_run"}


class _Package(types.ModuleType):
    """Keeps the name ``torch_codegen`` for the function: importing the submodule of that name would replace it."""

    @property
    def torch_codegen(self) -> Any:
        return importlib.import_module("pypto.debug.torch_codegen").torch_codegen

    @torch_codegen.setter
    def torch_codegen(self, module: types.ModuleType) -> None:
        """The import system offers the submodule; the function stays."""


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"pypto.debug.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pypto.debug' has no attribute '{name}'")
