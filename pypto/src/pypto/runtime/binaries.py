"""From an artifact folder to a loaded callable of the task runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pypto.artifact.manifest import Manifest, read_manifest
from pypto.codegen.kernel_text import canonical_kernel


def build_chip_callable(root: Path, platform: str) -> tuple[Any, Manifest]:
    """Compile the sources that the manifest of ``root`` names; unchanged ones come from the compile cache."""
    import ptoas_bridge
    from simpler_runtime import KernelSource, build_callable

    require_simulator(platform)
    manifest = read_manifest(root)
    kernels = [
        KernelSource(
            entry["func_id"],
            Path(entry["source"]),
            entry["core_type"],
            tuple(entry.get("signature", ())),
            name=entry["name"],
            include_dirs=tuple(Path(d) for d in entry.get("extra_include_dirs", ())),
            canonical=None if entry.get("external") else canonical_kernel,
        )
        for entry in manifest.kernels
    ]
    orchestration = manifest.orchestration
    callable_ = build_callable(
        Path(orchestration["source"]),
        kernels,
        platform=platform,
        include_dirs=[ptoas_bridge.isa_include_dir()],
        signature=tuple(orchestration.get("signature", ())),
        func_name=orchestration["function_name"],
        runtime=manifest.runtime["runtime"],
    )
    return callable_, manifest


def load_simulator(platform: str) -> None:
    """Start loading the task runtime, which its first use on a machine builds; nothing for other platforms."""
    if platform.endswith("sim"):
        import simpler_runtime

        simpler_runtime.load_in_background()


def require_simulator(platform: str) -> None:
    """Refuse a hardware platform on a machine without the device, and say what works."""
    if platform == "torch":
        raise RuntimeError(
            "platform 'torch' runs generated torch code and has no binaries; call the artifact directly, or use a "
            "simulator such as 'a2a3sim'"
        )
    if not platform.endswith("sim"):
        raise RuntimeError(
            f"platform '{platform}' needs the {platform} hardware, which this machine does not have; run on "
            f"'{platform}sim', or set PYPTO_SIM_FALLBACK=1 to run '{platform}' programs on the simulator"
        )
