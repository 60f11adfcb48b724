"""Public module name of file generation, which lives on the code generation floor."""

from __future__ import annotations

import importlib
from typing import Any


def generate(
    transformed_program: Any,
    output_dir: Any,
    skip_ptoas: bool = False,
    *,
    memory_planner: Any = None,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> dict[str, str]:
    """Files of a lowered program by relative path, for the selected backend (nothing is written to ``output_dir``)."""
    compiler = importlib.import_module("pypto.runtime.compiler")
    return compiler.generate_program_files(
        transformed_program,
        output_dir,
        skip_ptoas,
        memory_planner=memory_planner,
        emit_source_loc=emit_source_loc,
        dump_ptoas_passes=dump_ptoas_passes,
        runtime=runtime,
    )


def emit_source_loc_default() -> bool:
    """Whether locations are printed when nothing else says so: the environment variable ``PYPTO_EMIT_PTO_LOC``."""
    return importlib.import_module("pypto.codegen.pto").emit_source_locations()


def __getattr__(name: str) -> Any:
    if name == "PartialCodegenError":
        return importlib.import_module("pypto.codegen.units").PartialCodegenError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
