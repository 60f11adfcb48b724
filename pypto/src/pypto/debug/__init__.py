"""Programs as torch scripts, for checking what the compiler does."""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = {
    "torch_codegen": "torch_codegen",
    "run_as_torch": "golden_run",
    "validate_pass_ir_codegen_results": "golden_run",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"pypto.debug.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pypto.debug' has no attribute '{name}'")
