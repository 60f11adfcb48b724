"""RuntimeBuilder: the native core as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simpler_runtime._native import library
from simpler_runtime.platforms import check_runtime, require_simulated


@dataclass(frozen=True)
class RuntimeBinaries:
    """On a simulated platform one library plays all three roles."""

    host_path: Path
    aicpu_path: Path
    aicore_path: Path
    platform: str
    runtime: str


class RuntimeBuilder:
    """Builds the runtime of a simulated platform (from the cache when it is there)."""

    def __init__(self, platform: str = "a2a3sim") -> None:
        require_simulated(platform)
        self.platform = platform

    def get_binaries(self, runtime_name: str) -> RuntimeBinaries:
        check_runtime(runtime_name)
        path = Path(library()._name)
        return RuntimeBinaries(path, path, path, self.platform, runtime_name)
