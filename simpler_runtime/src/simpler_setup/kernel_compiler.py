"""KernelCompiler: sources to loadable binaries, one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simpler_runtime.build import kernel_unit, orchestration_unit
from simpler_runtime.platforms import check_runtime, parse_platform
from simpler_runtime.toolchain import INCLUDE_DIR, compile_libraries


class KernelCompiler:
    """Compiles for one platform; results come from the content-addressed cache when nothing changed."""

    def __init__(self, platform: str = "a2a3sim") -> None:
        parse_platform(platform)
        self.platform = platform

    def compile_incore(
        self,
        source_path: str | Path,
        core_type: str = "aiv",
        pto_isa_root: str | Path | None = None,
        extra_include_dirs: Iterable[str | Path] | None = None,
        **_: object,
    ) -> bytes:
        """A kernel library. ``pto_isa_root`` holds ``include/pto/pto-inst.hpp``."""
        directories = [Path(directory) for directory in extra_include_dirs or ()]
        if pto_isa_root is not None:
            directories.append(Path(pto_isa_root) / "include")
        unit = kernel_unit(Path(source_path), core_type, platform=self.platform, include_dirs=directories)
        return compile_libraries([unit])[0].read_bytes()

    def compile_orchestration(
        self, runtime_name: str, source_path: str | Path, extra_include_dirs: Iterable[str | Path] | None = None
    ) -> bytes:
        """An orchestration library for one runtime variant."""
        directories = [Path(directory) for directory in extra_include_dirs or ()]
        unit = orchestration_unit(
            Path(source_path), platform=self.platform, runtime=runtime_name, include_dirs=directories
        )
        return compile_libraries([unit])[0].read_bytes()

    def get_orchestration_include_dirs(self, runtime_name: str) -> list[str]:
        check_runtime(runtime_name)
        return [str(INCLUDE_DIR)]
