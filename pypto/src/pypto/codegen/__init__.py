"""Code generation: lowered IR to ``.pto`` text, orchestration C++ and kernel files. Emission only.

Names are loaded on first use: a program that is only run needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.codegen.orchestration import OrchestrationResult, generate_orchestration
    from pypto.codegen.pto import PTOCodegen, collect_vars_from_shape_expr, infer_function_core_type
    from pypto.codegen.units import PartialCodegenError, generate_files

__all__ = [
    "OrchestrationResult",
    "PTOCodegen",
    "PartialCodegenError",
    "collect_vars_from_shape_expr",
    "generate_files",
    "generate_orchestration",
    "infer_function_core_type",
]

_PLACES = {
    "OrchestrationResult": "orchestration",
    "generate_orchestration": "orchestration",
    "PTOCodegen": "pto",
    "collect_vars_from_shape_expr": "pto",
    "infer_function_core_type": "pto",
    "PartialCodegenError": "units",
    "generate_files": "units",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
