"""Entries of the ``optimizations=[...]`` list of ``pl.at`` and ``pl.spmd``."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.enums import SplitMode


@dataclass(frozen=True)
class Split:
    """Vector split of a mixed kernel."""

    mode: SplitMode
    slot_num: int | None = None


@dataclass(frozen=True)
class CrossCoreSlot:
    """Number of slots of the pipes between the cube and the vector cores."""

    slot_num: int


def split(mode: SplitMode, *, slot_num: int | None = None) -> Split:
    """Split the vector part of a mixed kernel over both vector cores. ``slot_num=`` is deprecated."""
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Use ``slot_num`` slots in the pipes between the cores."""
    return CrossCoreSlot(slot_num)
