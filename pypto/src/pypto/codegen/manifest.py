"""``kernel_config.py``: what the runtime needs to build and run an artifact, as a small Python module."""

from __future__ import annotations

from pypto.codegen.kernel_wrapper import uses_operator
from pypto.codegen.orchestration import OrchestrationResult
from pypto.ir import CoreType, Function, Program


def kernel_config(program: Program, entry: Function, result: OrchestrationResult, runtime_name: str) -> str:
    """Text of the manifest of one orchestration."""
    kernels = sorted(result.func_name_to_id.items(), key=lambda item: item[1])
    signatures = [*result.func_name_to_signature.values(), result.orchestration_signature]
    lines = ["# Kernel and Orchestration Configuration", "", "from pathlib import Path", ""]
    if any(signatures):
        lines += ["from simpler.task_interface import ArgDirection as _D", ""]
    lines += [
        "_ROOT_DIR = Path(__file__).parent",
        "",
        f"# Runtime configuration for {runtime_name}.",
        "# AICPU thread count 0 selects the runtime's architecture default (a2a3: 4; a5: 5).",
        "RUNTIME_CONFIG = {",
        f'\t"runtime": "{runtime_name}",',
        '\t"aicpu_thread_num": 0,',
    ]
    if any(uses_operator(program.get_function(name), ("async_prefetch",)) for name, _ in kernels):
        lines.append('\t"enable_sdma": True,')
    lines += [
        "}",
        "",
        "ORCHESTRATION = {",
        f'\t"source": str(_ROOT_DIR / "orchestration" / "{entry.name}.cpp"),',
        '\t"function_name": "aicpu_orchestration_entry",',
    ]
    if result.orchestration_signature:
        lines.append(f'\t"signature": {_signature(result.orchestration_signature)},')
    lines += ["}", "", "KERNELS = ["]
    lines += [f"\t{_kernel(program.get_function(name), number, result)}," for name, number in kernels]
    lines += ["]", ""]
    return "\n".join(lines)


def _signature(directions: list[str]) -> str:
    return f"[{', '.join(f'_D.{d}' for d in directions)}]"


def _kernel(function: Function, number: int, result: OrchestrationResult) -> str:
    core = "aic" if result.func_name_to_core_type[function.name] is CoreType.CUBE else "aiv"
    external = function.attrs.get("external_source")
    source = repr(external) if external else f'str(_ROOT_DIR / "kernels" / "{core}" / "{function.name}.cpp")'
    fields = [
        f'"func_id": {number}',
        f'"name": "{function.name}"',
        f'"source": {source}',
        f'"core_type": "{core}"',
    ]
    if external:
        fields.append('"external": True')
        folders = function.attrs.get("extra_include_dirs")
        if folders:
            fields.append(f'"extra_include_dirs": {list(folders)!r}')
    signature = result.func_name_to_signature.get(function.name)
    if signature:
        fields.append(f'"signature": {_signature(signature)}')
    return f"{{{', '.join(fields)}}}"
