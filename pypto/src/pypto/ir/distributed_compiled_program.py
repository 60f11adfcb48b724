"""How a distributed program runs: its devices, its sub-workers, its runtime."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class DistributedConfig:
    """Devices and processes of one run.

    Attributes:
        device_ids: one chip per entry; their number is the world size.
        num_sub_workers: Python sub-workers per run; a program that declares more gets what it declares.
        runtime: the task runtime of each chip.
        aicpu_thread_num: scheduler threads per chip, 0 for the default.

    Raises:
        ValueError: a value outside its domain.
    """

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = "tensormap_and_ringbuffer"
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if not self.device_ids:
            raise ValueError("device_ids must not be empty")
        if any(device < 0 for device in self.device_ids):
            raise ValueError(f"device_ids must be non-negative, got {self.device_ids}")
        if len(set(self.device_ids)) != len(self.device_ids):
            raise ValueError(f"device_ids must be distinct, got {self.device_ids}")
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must be non-negative, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(f"aicpu_thread_num must be 0 (default) or at least 2, got {self.aicpu_thread_num}")
