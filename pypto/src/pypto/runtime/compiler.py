"""``ir.compile``: program in, artifact folder and callable out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypto.artifact.layout import (
    DISTRIBUTED_SIDECAR,
    HOST_ORCHESTRATION,
    MANIFEST,
    SIDECAR,
    default_output_dir,
    remove_markers,
    write_files,
)
from pypto.artifact.sidecar import ArtifactMeta, params_of, write_sidecar
from pypto.backend import PLATFORMS, BackendType, get_backend_instance, use_backend
from pypto.codegen import generate_files
from pypto.collection_pause import without_garbage_collection
from pypto.compile_profiling import CompileProfiler, get_active_profiler
from pypto.errors import UnsupportedFeatureError
from pypto.ir import Function, FunctionType, Level, Program, Role
from pypto.language.parser.diagnostics import located_errors
from pypto.passes import (
    DiagnosticPhase,
    MemoryPlanner,
    OptimizationStrategy,
    PassContext,
    PassDumpLevel,
    PassManager,
    RuntimeKind,
    VerificationLevel,
    get_default_diagnostic_phase,
    get_default_verification_level,
)
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.run_config import check_platform

_ENUMERATIONS: dict[str, Any] = {
    "verification_level": VerificationLevel,
    "diagnostic_phase": DiagnosticPhase,
    "memory_planner": MemoryPlanner,
    "runtime": RuntimeKind,
    "backend_type": BackendType,
}


def compile(
    program: Program,
    output_dir: str | os.PathLike | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType = BackendType.Ascend910B,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: RuntimeKind | None = None,
) -> CompiledProgram:
    """Compile a program into an artifact folder.

    Args:
        program: what ``@pl.program`` or the parser made.
        output_dir: the folder; None makes a new one below ``PYPTO_PROG_BUILD_DIR`` or ``build_output``.
        dump_passes: print the IR after each pass into ``passes_dump/``.
        skip_ptoas: stop after the ``.pto`` text.
        platform: ``a2a3``, ``a2a3sim``, ``a5``, ``a5sim``, or ``torch``; wins over ``backend_type``.
        memory_planner: ``PYPTO`` (default), ``DSA_RP`` or ``PTOAS``.
        profiling: write where the time went into ``report/``.

    Raises:
        ValueError: wrong options, or a program that does not fit the target.
        pypto.Error: the IR fails verification.
        PartialCodegenError: some kernels could not be generated.
        RuntimeError: an option is given although a PassContext that decides it is active.
    """
    if not isinstance(program, Program):
        raise TypeError(f"ir.compile needs an ir.Program, got {type(program).__name__}{_remedy(program)}")
    given = {
        "verification_level": verification_level,
        "diagnostic_phase": diagnostic_phase,
        "memory_planner": memory_planner,
        "runtime": runtime,
    }
    _check_options({**given, "backend_type": backend_type})
    _refuse_inside_context(given)
    if not program.functions:
        raise ValueError(f"program '{program.name}' has no functions; decorate at least one method with @pl.function")
    if platform is not None and platform != "torch":
        backend_type = PLATFORMS[check_platform(platform)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(without_garbage_collection())
        stack.enter_context(located_errors())
        profiler = stack.enter_context(CompileProfiler()) if profiling else get_active_profiler()
        stack.enter_context(use_backend(backend_type))
        context = PassContext.current()
        if context is None:
            context = stack.enter_context(
                PassContext(
                    [],
                    verification_level=_or(verification_level, get_default_verification_level),
                    diagnostic_phase=_or(diagnostic_phase, get_default_diagnostic_phase),
                    disabled_diagnostics=disabled_diagnostics,
                    memory_planner=_or(memory_planner, lambda: MemoryPlanner.PYPTO),
                    enable_pypto_l0c_double_buffer=bool(enable_pypto_l0c_double_buffer),
                    runtime=_or(runtime, lambda: RuntimeKind.TENSORMAP_AND_RINGBUFFER),
                )
            )
        root = Path(output_dir) if output_dir is not None else default_output_dir(program.name or "program")
        root.mkdir(parents=True, exist_ok=True)
        with _stage(profiler, "passes"):
            manager = PassManager(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)
            lowered = manager.run_passes(program, dump_ir=dump_passes, output_dir=str(root / "passes_dump"))
        compiled = _generate(
            program,
            lowered,
            root,
            platform=platform or get_backend_instance(backend_type).handler.get_default_sim_platform(),
            backend_type=backend_type,
            planner=context.get_memory_planner(),
            runtime=context.get_runtime(),
            skip_ptoas=skip_ptoas or platform == "torch",
            emit_source_loc=emit_source_loc,
            dump_ptoas_passes=dump_ptoas_passes,
            distributed_config=distributed_config,
            profiler=profiler,
        )
    if profiling:
        profiler.write_report(root / "report")
    return compiled


def _check_options(given: dict[str, Any]) -> None:
    """Options that are members of an enumeration; None stands for the default."""
    for name, value in given.items():
        kind = _ENUMERATIONS.get(name)
        if kind is None or value is None or isinstance(value, kind):
            continue
        members = ", ".join(kind.__members__)
        raise TypeError(f"{name} must be a member of {kind.__name__} ({members}), got {value!r}")


def _remedy(value: Any) -> str:
    """How to come from what was given to a program."""
    if isinstance(value, Function):
        return f"; wrap it: ir.Program([{value.name}], '{value.name}', {value.name}.span)"
    if hasattr(value, "specialize"):
        return "; call its own compile(*sample_tensors)"
    return "; decorate a class with @pl.program"


def _or(value: Any, default: Any) -> Any:
    return default() if value is None else value


def _refuse_inside_context(given: dict[str, Any]) -> None:
    if PassContext.current() is None:
        return
    for name, value in given.items():
        if value is not None:
            words = name.replace("_", " ")
            raise RuntimeError(
                f"compile() was called with {name} while a PassContext is already active. "
                f"Set the {words} on the existing PassContext instead."
            )


@contextlib.contextmanager
def _stage(profiler: CompileProfiler | None, name: str) -> Iterator[None]:
    if profiler is None:
        yield
        return
    with profiler.stage(name):
        yield


def is_host_level(program: Program) -> bool:
    """Whether the entry is a host-level orchestration."""
    return any(f.level is Level.HOST and f.role is Role.Orchestrator for f in program.functions.values())


def _generate(
    program: Program,
    lowered: Program,
    root: Path,
    *,
    platform: str,
    backend_type: BackendType,
    planner: MemoryPlanner,
    runtime: RuntimeKind,
    skip_ptoas: bool,
    emit_source_loc: bool | None,
    dump_ptoas_passes: bool,
    distributed_config: Any,
    profiler: CompileProfiler | None,
) -> CompiledProgram:
    if is_host_level(lowered):
        raise UnsupportedFeatureError("programs with host-level orchestration (distributed execution)")
    assemble = None if skip_ptoas else _assembler(root, planner, dump_ptoas_passes)
    with _stage(profiler, "codegen"), _kept_failures(root):
        files = generate_files(
            lowered,
            assemble,
            emit_tile_addr=planner is not MemoryPlanner.PTOAS,
            emit_source_loc=emit_source_loc,
            runtime_name=runtime.name.lower(),
        )
    remove_markers(root, (HOST_ORCHESTRATION, DISTRIBUTED_SIDECAR, MANIFEST, SIDECAR))
    write_files(root, files)
    entries = [f for f in program.functions.values() if f.func_type is FunctionType.Orchestration]
    entries = [lowered.get_function(f.name) or f for f in entries] or _only_entry(lowered)
    originals = {f.name: program.get_function(f.name) for f in entries}

    def artifact(folder: Path, entry: Any) -> CompiledProgram:
        source = originals[entry.name] or entry
        meta = ArtifactMeta(params_of(entry), len(source.return_types), platform, backend_type)
        write_sidecar(folder, meta)
        return CompiledProgram(folder, meta, program=program)

    if len(entries) == 1:
        return artifact(root, entries[0])
    children = {entry.name: artifact(root / "next_levels" / entry.name, entry) for entry in entries}
    return CompiledProgram(root, None, program=program, platform=platform, backend_type=backend_type, children=children)


def generate_program_files(
    lowered: Program,
    output_dir: str | os.PathLike,
    skip_ptoas: bool = False,
    *,
    memory_planner: MemoryPlanner | None = None,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: RuntimeKind | None = None,
) -> dict[str, str]:
    """Files of a lowered program for the selected backend; nothing is written but the assembler's dumps."""
    planner = memory_planner or MemoryPlanner.PYPTO
    kind = runtime or RuntimeKind.TENSORMAP_AND_RINGBUFFER
    return generate_files(
        lowered,
        None if skip_ptoas else _assembler(Path(output_dir), planner, dump_ptoas_passes),
        emit_tile_addr=planner is not MemoryPlanner.PTOAS,
        emit_source_loc=emit_source_loc,
        runtime_name=kind.name.lower(),
    )


@contextlib.contextmanager
def _kept_failures(root: Path) -> Iterator[None]:
    """When units fail, leave what is needed to look into it: the texts the assembler refused and the error table."""
    report = "report/codegen_errors.txt"
    (root / report).unlink(missing_ok=True)
    try:
        yield
    except RuntimeError as error:
        if getattr(error, "failures", None):
            write_files(root, {**error.inputs, report: f"{error}\n"})  # type: ignore[attr-defined]
        raise


def _only_entry(lowered: Program) -> list:
    functions = [f for f in lowered.functions.values() if f.func_type is FunctionType.Orchestration]
    return functions or list(lowered.functions.values())[:1]


def _assembler(root: Path, planner: MemoryPlanner, dump_passes: bool) -> Any:
    """The assembler: ours, or the public one when ``PTOAS_ROOT`` names it."""
    import ptoas_bridge
    from pypto.backend import get_handler

    handler = get_handler()
    level = "level2" if planner is MemoryPlanner.PTOAS else "level3"
    if os.environ.get("PTOAS_ROOT"):
        return _external_assembler(root, level, handler.ptoas_arch)

    def assemble(unit: str, text: str) -> str:
        dump_dir = root / "ptoas_passes" / unit if dump_passes else None
        return ptoas_bridge.assemble(
            text, arch=handler.ptoas_arch, level=level, filename=f"ptoas/{unit}.pto", dump_dir=dump_dir
        )

    return assemble


def _external_assembler(root: Path, level: str, arch: str) -> Any:
    import ptoas_bridge

    def assemble(unit: str, text: str) -> str:
        folder = root / "ptoas"
        folder.mkdir(parents=True, exist_ok=True)
        source, output = folder / f"{unit}.pto", folder / f"{unit}.cpp"
        source.write_text(text, encoding="utf-8")
        ptoas_bridge.run_ptoas(source, output, level=level, arch=arch)
        return output.read_text(encoding="utf-8")

    return assemble
