"""Sources to a ChipCallable: every unit compiled in parallel and cached by content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from simpler_runtime import _native
from simpler_runtime.callables import DEFAULT_CONFIG, DEFAULT_ENTRY, ArgDirection, ChipCallable, CoreCallable
from simpler_runtime.platforms import check_runtime, parse_platform
from simpler_runtime.toolchain import INCLUDE_DIR, CompileUnit, compile_libraries

_CORE_MACROS = {"aic": "__DAV_CUBE__", "aiv": "__DAV_VEC__"}
_PRELUDE = INCLUDE_DIR / "kernel_prelude.h"


@dataclass(frozen=True)
class KernelSource:
    """One kernel: a file that exports ``kernel_entry`` and the core it is written for ("aic" or "aiv").

    Kernels whose ``canonical`` text is equal (source text -> text without the names that only the source uses) share
    one library.
    """

    func_id: int
    source: Path
    core_type: str
    signature: tuple[ArgDirection, ...] = ()
    name: str = ""
    include_dirs: tuple[Path, ...] = ()
    canonical: Callable[[str], str] | None = None


def kernel_unit(
    source: Path,
    core_type: str,
    *,
    platform: str,
    include_dirs: Iterable[Path] = (),
    name: str = "",
    canonical: Callable[[str], str] | None = None,
) -> CompileUnit:
    """How a kernel source is compiled. ValueError for an unknown core type."""
    arch, _ = parse_platform(platform)
    if core_type not in _CORE_MACROS:
        raise ValueError(f"core_type must be 'aic' or 'aiv', got {core_type!r} for {source}")
    return CompileUnit(
        Path(source),
        include_dirs=(*map(Path, include_dirs), INCLUDE_DIR),
        defines=("__CPU_SIM", _CORE_MACROS[core_type], f"PTO_ARCH_{arch.upper()}"),
        prelude=_PRELUDE,
        name=name or Path(source).name,
        canonical=canonical,
    )


def orchestration_unit(
    source: Path, *, platform: str, runtime: str = "tensormap_and_ringbuffer", include_dirs: Iterable[Path] = ()
) -> CompileUnit:
    """How an orchestration source is compiled."""
    arch, _ = parse_platform(platform)
    check_runtime(runtime)
    defines = ["__CPU_SIM", f"PTO_ARCH_{arch.upper()}"]
    if runtime == "host_build_graph":
        defines.append("SIMPLER_HOST_BUILD_GRAPH")
    # The graph is built by code that runs once: quick compiles matter more than the last percent.
    return CompileUnit(
        Path(source),
        include_dirs=(*map(Path, include_dirs), INCLUDE_DIR),
        defines=tuple(defines),
        flags=("-O1",),
        name=Path(source).name,
    )


def build_callable(
    orchestration: Path,
    kernels: Sequence[KernelSource],
    *,
    platform: str,
    include_dirs: Iterable[Path] = (),
    signature: Iterable[ArgDirection] = (),
    func_name: str = DEFAULT_ENTRY,
    config_name: str = DEFAULT_CONFIG,
    runtime: str = "tensormap_and_ringbuffer",
    jobs: int | None = None,
) -> ChipCallable:
    """Compiles an orchestration source and its kernels into one callable.

    ``include_dirs`` are searched before the runtime's own headers (give the folder that holds ``pto/pto-inst.hpp``).
    Units that are in the cache are not compiled again. Raises ToolchainError with the compiler's text, ValueError for
    an unknown platform, runtime or core type.
    """
    include_dirs = tuple(map(Path, include_dirs))
    units = [orchestration_unit(orchestration, platform=platform, runtime=runtime, include_dirs=include_dirs)]
    for kernel in kernels:
        units.append(
            kernel_unit(
                kernel.source,
                kernel.core_type,
                platform=platform,
                include_dirs=(*kernel.include_dirs, *include_dirs),
                name=kernel.name,
                canonical=kernel.canonical,
            )
        )
    _native.load_in_background()  # whoever builds a callable is about to run it
    libraries = compile_libraries(units, jobs=jobs)
    children = [
        (
            kernel.func_id,
            CoreCallable(kernel.signature, library, kernel.core_type, kernel.name or Path(kernel.source).stem),
        )
        for kernel, library in zip(kernels, libraries[1:])
    ]
    return ChipCallable(signature, func_name, libraries[0], children, config_name)
