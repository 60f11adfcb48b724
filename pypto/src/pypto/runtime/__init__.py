"""Running compiled programs. Importing this package needs neither torch nor the task runtime."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.runtime.log import configure_log, log_level

_LAZY = {
    "RunConfig": "run_config",
    "CompiledProgram": "compiled_program",
    "compile_program": "runner",
    "execute_compiled": "runner",
    "run": "runner",
    "RunResult": "runner",
    "ChipWorker": "worker",
    "RegistrationHandle": "worker",
    "Worker": "worker",
    "DeviceTensor": "device_tensor",
    "TensorSpec": "golden",
    "ScalarSpec": "golden",
    "benchmark": "timing",
    "BenchmarkStats": "timing",
    "TraceInvocation": "timing",
    "TraceSpan": "timing",
    "ensure_pto_isa_root": "isa_root",
    "pto_isa_include_dir": "isa_root",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"pypto.runtime.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'pypto.runtime' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
