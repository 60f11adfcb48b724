"""Platforms and runtime variants: what the names mean and what this machine can run."""

from __future__ import annotations

from enum import IntEnum

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim")
RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph")
DEFAULT_RUNTIME = RUNTIMES[0]
SIMULATED_CLUSTERS = 8
AICPU_THREAD_LIMITS = {"a2a3": 4, "a5": 5}

_LEVEL_WORDS = {0: "core", 2: "chip", 3: "node", 4: "network1", 5: "network2", 6: "network3"}


class WorkerLevel(IntEnum):
    CORE = 0
    CHIP = 2
    NODE = 3
    NETWORK1 = 4
    NETWORK2 = 5
    NETWORK3 = 6


def span_prefix(level: int) -> str:
    """The code word of a level, which starts its timing spans. ValueError for a level without one."""
    try:
        return _LEVEL_WORDS[int(level)]
    except KeyError:
        raise ValueError(f"level {level} has no span prefix; levels with one: {sorted(_LEVEL_WORDS)}") from None


def parse_platform(name: str) -> tuple[str, str]:
    """``(arch, variant)`` of a platform name, variant being "onboard" or "sim"."""
    if name not in PLATFORMS:
        raise ValueError(f"unknown platform {name!r}; platforms: {', '.join(PLATFORMS)}")
    return (name[: -len("sim")], "sim") if name.endswith("sim") else (name, "onboard")


def check_runtime(name: str) -> str:
    if name not in RUNTIMES:
        raise ValueError(f"unknown runtime {name!r}; runtimes: {', '.join(RUNTIMES)}")
    return name


def require_simulated(name: str) -> str:
    """The architecture of a platform this machine can run; RuntimeError for one that needs a device."""
    arch, variant = parse_platform(name)
    if variant != "sim":
        raise RuntimeError(f"platform {name!r} needs an accelerator, which this machine does not have; use {arch}sim")
    return arch
