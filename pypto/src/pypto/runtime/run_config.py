"""``RunConfig``: everything about one compile-and-run that is not the program or its arguments."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any

from pypto.backend import PLATFORMS, BackendType
from pypto.ir.enums import OptimizationStrategy

_RINGS = 4
_INT32_MAX = (1 << 31) - 1


def check_platform(platform: str) -> str:
    """``platform`` when it is known, else ``ValueError`` naming the choices."""
    if not isinstance(platform, str) or platform not in PLATFORMS:
        known = ", ".join(f"'{name}'" for name in PLATFORMS)
        raise ValueError(f"Unknown platform '{platform}': expected one of {known}")
    return platform


def check_config(config: Any) -> None:
    """``TypeError`` when ``config`` is neither None nor a :class:`RunConfig`."""
    if config is not None and not isinstance(config, RunConfig):
        raise TypeError(f"config must be a pypto.runtime.RunConfig, got {type(config).__name__}")


@dataclass
class RunConfig:
    """Options of a run; only the platform, the swimlane level and the ring sizes are validated.

    ``platform="torch"`` runs the program through generated torch code instead of compiled kernels: no C++ compiler
    is needed.
    """

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: Any = OptimizationStrategy.Default
    backend_type: BackendType = BackendType.Ascend910B
    dump_passes: Any = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: Any = None
    ring_heap: Any = None
    ring_dep_pool: Any = None
    distributed_config: Any = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: Any = None
    dump_ptoas_passes: bool = False
    cache_config: Any = None
    enable_l2_swimlane: dataclasses.InitVar[Any] = None

    def __post_init__(self, enable_l2_swimlane: Any) -> None:
        if enable_l2_swimlane is not None and not isinstance(enable_l2_swimlane, property):
            if self.enable_chip_swimlane:
                raise ValueError("give enable_chip_swimlane or its old name enable_l2_swimlane, not both")
            _warn_alias()
            self.enable_chip_swimlane = enable_l2_swimlane
        if self.platform != "torch":
            check_platform(self.platform)
            self.backend_type = PLATFORMS[self.platform]
        self.enable_chip_swimlane = _swimlane_level(self.enable_chip_swimlane)
        self.ring_task_window = _ring("ring_task_window", self.ring_task_window, "a power of 2 >= 4", _window_ok)
        self.ring_heap = _ring("ring_heap", self.ring_heap, "a power of 2 >= 1024 (bytes per ring)", _heap_ok)
        self.ring_dep_pool = _ring("ring_dep_pool", self.ring_dep_pool, "in [4, INT32_MAX]", _pool_ok)
        for name in ("enable_dump_args", "enable_pmu"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)):
                raise TypeError(f"{name} must be a number, got {type(value).__name__}")
        if self.any_dfx_enabled():
            self.save_kernels = True

    def any_dfx_enabled(self) -> bool:
        """Whether one of the five run-time diagnostics is on."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args > 0
            or self.enable_pmu > 0
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    def compile_kwargs(self) -> dict[str, Any]:
        """The keyword arguments of ``ir.compile`` that this configuration stands for."""
        return {
            "strategy": self.strategy,
            "backend_type": self.backend_type,
            "platform": self.platform,
            "memory_planner": self.memory_planner,
            "dump_passes": self.dump_passes,
            "dump_ptoas_passes": self.dump_ptoas_passes,
            "profiling": self.compile_profiling,
            "diagnostic_phase": self.diagnostic_phase,
            "disabled_diagnostics": self.disabled_diagnostics,
            "analyze_auto_scopes_for_deps": self.analyze_auto_scopes_for_deps,
            "output_dir": self.save_kernels_dir,
            "distributed_config": self.distributed_config,
        }


def _warn_alias() -> None:
    warnings.warn("enable_l2_swimlane is deprecated; use enable_chip_swimlane", DeprecationWarning, stacklevel=4)


def _get_alias(self: RunConfig) -> int:
    return self.enable_chip_swimlane


def _set_alias(self: RunConfig, value: Any) -> None:
    _warn_alias()
    self.enable_chip_swimlane = _swimlane_level(value)


RunConfig.enable_l2_swimlane = property(_get_alias, _set_alias)  # type: ignore[assignment]


def _swimlane_level(value: Any) -> int:
    if value is True:
        return 4
    if value is False:
        return 0
    if not isinstance(value, int):
        raise TypeError(f"enable_chip_swimlane must be an int 0..4 or a bool, got {type(value).__name__}")
    if not 0 <= value <= 4:
        raise ValueError(f"enable_chip_swimlane must be in 0..4, got {value}")
    return value


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _window_ok(value: int) -> bool:
    return value >= 4 and _power_of_two(value)


def _heap_ok(value: int) -> bool:
    return value >= 1024 and _power_of_two(value)


def _pool_ok(value: int) -> bool:
    return 4 <= value <= _INT32_MAX


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ring(name: str, value: Any, rule: str, valid: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        if len(value) != _RINGS:
            raise ValueError(f"{name} must have exactly 4 entries (one per scope-depth ring), got {len(value)}")
        for entry in value:
            if not _is_int(entry) or (entry != 0 and not valid(entry)):
                raise ValueError(f"{name} entries must be {rule} (or 0 to keep default), got {entry}")
        return list(value)
    if not _is_int(value) or not valid(value):
        raise ValueError(f"{name} must be {rule}, got {value}")
    return value
