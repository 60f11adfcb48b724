"""Hardware structure: memories, cores, clusters, dies, the chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pypto.ir import CoreType, MemorySpace


class Mem(msgspec.Struct, frozen=True):
    """One on-chip memory: space, size in bytes, address alignment in bytes."""

    mem_type: MemorySpace
    mem_size: int
    alignment: int


def _counted(part: Any, count: int) -> dict:
    return dict(part) if isinstance(part, Mapping) else {part: count}


class Core(msgspec.Struct, frozen=True):
    """A core and its memories."""

    core_type: CoreType
    mems: tuple[Mem, ...]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "mems", tuple(self.mems))


class _Group:
    """Parts with their counts; built from one part and a count or from a mapping part -> count."""

    def __init__(self, part: Any, count: int = 1):
        self._parts = _counted(part, count)

    def _total(self, wanted: type) -> int:
        return sum(
            count * (1 if isinstance(part, wanted) else part._total(wanted)) for part, count in self._parts.items()
        )

    def total_core_count(self) -> int:
        return self._total(Core)


class Cluster(_Group):
    """Cores that work together on one block of a mixed task."""

    @property
    def core_counts(self) -> dict[Core, int]:
        return dict(self._parts)


class Die(_Group):
    """Clusters of one die."""

    @property
    def cluster_counts(self) -> dict[Cluster, int]:
        return dict(self._parts)

    def total_cluster_count(self) -> int:
        return self._total(Cluster)


class SoC(_Group):
    """Dies of one chip."""

    @property
    def die_counts(self) -> dict[Die, int]:
        return dict(self._parts)

    def total_die_count(self) -> int:
        return self._total(Die)

    def total_cluster_count(self) -> int:
        return self._total(Cluster)

    def cores(self) -> dict[Core, int]:
        """Every kind of core with its number on the whole chip."""
        found: dict[Core, int] = {}
        for die, dies in self._parts.items():
            for cluster, clusters in die.cluster_counts.items():
                for core, count in cluster.core_counts.items():
                    found[core] = found.get(core, 0) + dies * clusters * count
        return found
