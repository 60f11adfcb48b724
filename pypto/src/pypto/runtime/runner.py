"""One-call helpers: compile and run, run a folder, and the record of a run."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.compiler import compile as compile_ir
from pypto.runtime.run_config import RunConfig


@dataclass
class RunResult:
    """Outcome of one test case."""

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: dict | None = None

    def __str__(self) -> str:
        text = "PASS" if self.passed else "FAIL"
        if self.test_name:
            text += f": {self.test_name}"
        if not self.passed and self.error:
            text += f" - {self.error}"
        if self.execution_time is not None:
            text += f" ({self.execution_time:.2f}s)"
        return text


def run(program: Any, *tensors: Any, config: RunConfig | None = None) -> CompiledProgram:
    """Compile a program and, when arguments are given and ``codegen_only`` is off, run it; returns the artifact."""
    config = config or RunConfig()
    compiled = compile_ir(program, **config.compile_kwargs())
    if tensors and not config.codegen_only:
        compiled(*tensors, config=config)
    return compiled


def compile_program(program: Any, work_dir: str | os.PathLike, **options: Any) -> CompiledProgram:
    """Compile into a given folder; the options are those of ``ir.compile``."""
    return compile_ir(program, output_dir=work_dir, **options)


def execute_compiled(
    work_dir: str | os.PathLike,
    args: Any,
    *,
    platform: str,
    device_id: int = 0,
    dfx: Any = None,
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Run an artifact folder; kept for old callers, use ``CompiledProgram.from_dir(work_dir)(*args)``."""
    warnings.warn("execute_compiled is deprecated; use CompiledProgram.from_dir", DeprecationWarning, stacklevel=2)
    if level != 2:
        raise ValueError(f"execute_compiled runs level 2 artifacts, got level {level}")
    config = RunConfig(platform=platform, device_id=device_id, aicpu_thread_num=aicpu_thread_num)
    for name, value in (dfx or {}).items():
        setattr(config, name, value)
    CompiledProgram.from_dir(work_dir, platform=platform)(*args, config=config)
