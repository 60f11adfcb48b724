"""Settings of one run: ring sizes and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simpler_runtime._native import RING_COUNT
from simpler_runtime.tensors import whole_number

DEFAULT_TASK_WINDOW = 16384
DEFAULT_HEAP_BYTES = 256 * 1024 * 1024
DEFAULT_DEP_POOL = 16384
_INT32_MAX = 2**31 - 1


class RuntimeEnv:
    """Ring sizes: one value for all rings or a list of four; always read back as four values, 0 meaning the default."""

    _FIELDS = ("ring_task_window", "ring_heap", "ring_dep_pool")

    def __init__(self, ring_task_window: Any = 0, ring_heap: Any = 0, ring_dep_pool: Any = 0) -> None:
        self.ring_task_window = ring_task_window
        self.ring_heap = ring_heap
        self.ring_dep_pool = ring_dep_pool

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._FIELDS:
            raise AttributeError(f"RuntimeEnv has no field {name!r}; fields: {', '.join(self._FIELDS)}")
        object.__setattr__(self, name, _ring_values(name, value))

    def validate(self) -> None:
        """Raises ValueError naming the field, the rule and the value."""
        for value in self.ring_task_window:
            if value and (value < 4 or value > _INT32_MAX or value & (value - 1)):
                raise ValueError(f"ring_task_window must be a power of 2 in [4, INT32_MAX], got {value}")
        for value in self.ring_heap:
            if value and value < 1024:
                raise ValueError(f"ring_heap must be at least 1024 bytes per ring, got {value}")
        for value in self.ring_dep_pool:
            if value and not 4 <= value <= _INT32_MAX:
                raise ValueError(f"ring_dep_pool must be in [4, INT32_MAX], got {value}")

    def resolved(self) -> tuple[list[int], list[int], list[int]]:
        """Task windows, heap bytes and dependency entries per ring with the defaults filled in."""
        return (
            [value or DEFAULT_TASK_WINDOW for value in self.ring_task_window],
            [value or DEFAULT_HEAP_BYTES for value in self.ring_heap],
            [value or DEFAULT_DEP_POOL for value in self.ring_dep_pool],
        )

    def __repr__(self) -> str:
        return f"RuntimeEnv({', '.join(f'{name}={getattr(self, name)}' for name in self._FIELDS)})"


def _ring_values(name: str, value: Any) -> list[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        values = [value] * RING_COUNT
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        values = list(value)
        if len(values) != RING_COUNT:
            raise ValueError(
                f"{name} must have exactly {RING_COUNT} entries (one per scope-depth ring), got {len(values)}"
            )
    else:
        raise ValueError(f"{name} must be an integer or a list of {RING_COUNT} integers, got {value!r}")
    for item in values:
        if not isinstance(item, int) or isinstance(item, bool) or item < 0:
            raise ValueError(f"{name} entries must be non-negative integers, got {item!r}")
    return values


class CallConfig:
    """Options of one run. ``validate()`` is called by every submit and run."""

    _INTS = ("aicpu_thread_num", "enable_chip_swimlane", "enable_dump_args", "enable_pmu")
    _FLAGS = ("enable_dep_gen", "enable_scope_stats")

    def __init__(self, **fields: Any) -> None:
        self.aicpu_thread_num = 0
        self.enable_chip_swimlane = 0
        self.enable_dump_args = 0
        self.enable_pmu = 0
        self.enable_dep_gen = False
        self.enable_scope_stats = False
        self.output_prefix = ""
        self.runtime_env = RuntimeEnv()
        for name, value in fields.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enable_chip_swimlane":
            value = 4 if value is True else min(max(whole_number(name, value), 0), 4)
        elif name == "enable_dump_args":
            value = min(max(whole_number(name, value), 0), 3)
        elif name in self._INTS:
            value = whole_number(name, value)
            if not -(2**31) <= value < 2**31:
                raise ValueError(f"{name} must fit in 32 bits, got {value}")
        elif name in self._FLAGS:
            value = bool(value)
        elif name == "output_prefix":
            value = str(value)
            if len(value.encode()) >= 1024:
                raise ValueError("output_prefix must be shorter than 1024 bytes")
        elif name == "runtime_env":
            if not isinstance(value, RuntimeEnv):
                raise TypeError(f"runtime_env must be a RuntimeEnv, got {type(value).__name__}")
        else:
            raise AttributeError(f"CallConfig has no field {name!r}")
        object.__setattr__(self, name, value)

    @property
    def diagnostics(self) -> bool:
        """Whether any collector is on."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu > 0
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    def validate(self) -> None:
        """Raises ValueError for an illegal combination or ring size."""
        if self.diagnostics and not self.output_prefix:
            raise ValueError("a diagnostic is enabled but output_prefix is empty: set the folder its files go to")
        if self.aicpu_thread_num != 0 and self.aicpu_thread_num < 2:
            raise ValueError(f"aicpu_thread_num must be 0 (auto) or at least 2, got {self.aicpu_thread_num}")
        self.runtime_env.validate()
