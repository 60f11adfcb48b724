"""A lowered program as files: ``.pto`` units, kernel C++, orchestration C++ and the manifest."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from pypto.backend import get_handler
from pypto.codegen.kernel_wrapper import kernel_file
from pypto.codegen.manifest import kernel_config
from pypto.codegen.orchestration import OrchestrationResult, generate_orchestration, orchestration_file
from pypto.codegen.orchestration.tasks import inner_calls
from pypto.codegen.pto import generate_module
from pypto.compile_profiling import get_active_profiler
from pypto.errors import Error, user_error
from pypto.ir import CoreType, Function, FunctionType, Program, is_incore_type


class PartialCodegenError(RuntimeError):
    """Some units could not be produced; ``files`` holds those that could.

    ``failures`` pairs the name of each failed unit with its exception; ``inputs`` holds the ``.pto`` texts that the
    assembler refused, by relative path. When every unit failed, a plain ``RuntimeError`` carries the same two.
    """

    def __init__(self, message: str, files: dict[str, str]):
        super().__init__(message)
        self.files = files
        self.failures: list[tuple[str, Exception]] = []
        self.inputs: dict[str, str] = {}


class Unit(msgspec.Struct):
    """Functions that are assembled together: one kernel, or the members of a mixed group."""

    name: str
    functions: list[Function]


#: Turns ``.pto`` text into C++: (unit name, text) -> C++.
Assembler = Callable[[str, str], str]


def kernel_units(program: Program) -> list[Unit]:
    """Units of a program in function order; external kernels have none."""
    units: list[Unit] = []
    grouped: set[str] = set()
    for function in program.functions.values():
        if function.func_type is FunctionType.Group:
            members = [program.get_function(c.op.name) for c in inner_calls(function)]
            members = [m for m in members if m is not None]
            external = [m for m in members if m.attrs.get("external_source")]
            if external and len(external) != len(members):
                generated = [m.name for m in members if m not in external]
                raise user_error(
                    f"Group '{function.name}' mixes external and DSL kernels (DSL members: {', '.join(generated)}). "
                    "A group must be all-external or all-DSL.",
                    kind=RuntimeError,
                )
            grouped.update(m.name for m in members)
            if not external:
                members.sort(key=lambda f: f.func_type is not FunctionType.AIC)
                units.append(Unit(function.name, members))
    for function in program.functions.values():
        plain = is_incore_type(function.func_type) and function.name not in grouped
        if plain and not function.attrs.get("external_source"):
            units.append(Unit(function.name, [function]))
    return units


def generate_files(
    program: Program,
    assemble: Assembler | None,
    *,
    emit_tile_addr: bool = True,
    emit_source_loc: bool | None = None,
    runtime_name: str = "tensormap_and_ringbuffer",
) -> dict[str, str]:
    """All files of one single-chip artifact, by relative path.

    Args:
        program: after the pass pipeline.
        assemble: the assembler, None to stop at ``.pto`` text.
        emit_tile_addr: print tile addresses (not under the PTOAS planner).
        emit_source_loc: print source locations; None reads the environment.
        runtime_name: task runtime variant written into the manifest.

    Raises:
        PartialCodegenError: some units failed; the message lists them.
        RuntimeError: all units failed.
    """
    files: dict[str, str] = {}
    refused: dict[str, str] = {}
    failures: list[tuple[str, Exception]] = []
    profiler = get_active_profiler()
    texts: list[tuple[Unit, str]] = []
    for unit in kernel_units(program):
        try:
            if profiler is not None:
                with profiler.stage(f"kernel_codegen:{unit.name}"):
                    text = _module(unit, emit_tile_addr, emit_source_loc)
            else:
                text = _module(unit, emit_tile_addr, emit_source_loc)
            texts.append((unit, text))
        except (ValueError, TypeError, RuntimeError, NotImplementedError, Error) as error:
            failures.append((unit.name, error))
    for (unit, text), result in zip(texts, _assembled(texts, assemble)):
        if isinstance(result, Exception):
            failures.append((unit.name, result))
            refused[f"ptoas/{unit.name}.pto"] = text
        else:
            files.update(result)
    orchestrations = [f for f in program.functions.values() if f.func_type is FunctionType.Orchestration]
    results: list[tuple[Function, OrchestrationResult]] = []
    for function in orchestrations:
        try:
            results.append((function, generate_orchestration(program, function)))
        except (ValueError, RuntimeError, NotImplementedError) as error:
            failures.append((function.name, error))
    if failures:
        files.update(
            (f"orchestration/{function.name}.cpp", orchestration_file(result, function.name))
            for function, result in results
        )
        raise _failure(failures, files, refused)
    _add_orchestrations(program, results, files, assemble is None, runtime_name)
    return files


def _module(unit: Unit, emit_tile_addr: bool, emit_source_loc: bool | None) -> str:
    return generate_module(unit.functions, emit_tile_addr=emit_tile_addr, emit_source_loc=emit_source_loc)


def _assembled(texts: list[tuple[Unit, str]], assemble: Assembler | None) -> list[dict[str, str] | Exception]:
    """Files or error per unit, in order; the assembler runs in parallel threads when that can help."""
    handler = get_handler()

    def work(item: tuple[Unit, str]) -> dict[str, str] | Exception:
        unit, text = item
        if assemble is None:
            if len(unit.functions) > 1:
                return {f"kernels/{unit.name}.pto": text}
            return {f"kernels/{_unit_folder(unit.functions[0])}/{unit.name}.pto": text}
        try:
            cpp = assemble(unit.name, text)
        except Exception as error:
            return error
        made = {f"ptoas/{unit.name}.pto": text, f"ptoas/{unit.name}.cpp": cpp}
        for function in unit.functions:
            path = f"kernels/{_unit_folder(function)}/{function.name}.cpp"
            made[path] = kernel_file(function, unit.functions, cpp, handler)
        return made

    workers = _max_workers()
    if assemble is None or workers == 1 or len(texts) < 2:
        return [work(item) for item in texts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, texts))


def _max_workers() -> int:
    text = os.environ.get("PYPTO_CODEGEN_MAX_WORKERS", "")
    if not text:
        return 1
    try:
        return max(1, int(text))
    except ValueError:
        import warnings

        warnings.warn(f"PYPTO_CODEGEN_MAX_WORKERS={text!r} is not an integer; using 1", stacklevel=2)
        return 1


def _unit_folder(function: Function) -> str:
    from pypto.codegen.pto import infer_function_core_type

    return "aic" if infer_function_core_type(function) is CoreType.CUBE else "aiv"


def _add_orchestrations(program: Program, results, files: dict[str, str], skipped: bool, runtime_name: str) -> None:
    """Orchestration sources and manifests: at the top for one, under ``next_levels/<name>/`` for several."""
    kernels = dict(files)
    for function, result in results:
        prefix = "" if len(results) == 1 else f"next_levels/{function.name}/"
        files[f"{prefix}orchestration/{function.name}.cpp"] = orchestration_file(result, function.name)
        external_only = all(program.get_function(name).attrs.get("external_source") for name in result.func_name_to_id)
        if not skipped or external_only:
            files[f"{prefix}kernel_config.py"] = kernel_config(program, function, result, runtime_name)
        if prefix:
            wanted = set(result.func_name_to_id)
            for path, text in kernels.items():
                if Path(path).stem in wanted or _unit_serves(program, Path(path).stem, wanted):
                    files[f"{prefix}{path}"] = text
    if len(results) > 1:
        for path in kernels:
            files.pop(path, None)


def _unit_serves(program: Program, unit: str, wanted: set[str]) -> bool:
    group = program.get_function(unit)
    return (
        group is not None
        and group.func_type is FunctionType.Group
        and any(c.op.name in wanted for c in inner_calls(group))
    )


def _failure(failures: list[tuple[str, Exception]], files: dict[str, str], refused: dict[str, str]) -> Exception:
    rows = []
    for name, error in failures:
        wrapped = textwrap.wrap(_headline(error), 90)
        rows.append(f"  {name:<24} | {wrapped[0]}")
        rows += [f"  {'':<24} | {line}" for line in wrapped[1:]]
    details = "\n\n".join(f"{name}:\n{error}" for name, error in failures)
    message = (
        f"{len(failures)} function(s) failed to compile:\n\n  {'Function':<24} | Error\n  {'-' * 24}-+-{'-' * 60}\n"
        + "\n".join(rows)
        + f"\n\n{details}"
    )
    error: Any = PartialCodegenError(message, files) if files else RuntimeError(message)
    error.failures, error.inputs = failures, refused
    error.__cause__ = failures[0][1]
    return error


def _headline(error: Exception) -> str:
    """First line of a message; what no user can cause says so."""
    text = str(error).strip()
    if isinstance(error, (LookupError, AttributeError, AssertionError)):
        text = f"internal error: {type(error).__name__}: {text}"
    return text.splitlines()[0] if text else type(error).__name__
