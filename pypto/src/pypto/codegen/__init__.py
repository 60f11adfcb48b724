"""Code generation: lowered IR to ``.pto`` text, orchestration C++ and kernel files. Emission only."""

from __future__ import annotations

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
