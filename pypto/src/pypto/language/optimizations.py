"""Entries of the ``optimizations=[...]`` list of ``pl.at`` and ``pl.spmd``."""

from __future__ import annotations

import warnings
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
    if slot_num is not None:
        _check_slots(slot_num, "pl.split")
        warnings.warn(
            "pl.split(mode, slot_num=N) is deprecated; use pl.cross_core_slot(slot_num=N)",
            DeprecationWarning,
            stacklevel=2,
        )
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Use ``slot_num`` slots in the pipes between the cores."""
    _check_slots(slot_num, "pl.cross_core_slot")
    return CrossCoreSlot(slot_num)


def _check_slots(slot_num: int, word: str) -> None:
    if not isinstance(slot_num, int) or isinstance(slot_num, bool) or slot_num <= 0:
        raise ValueError(f"{word}() slot_num must be a positive integer, got {slot_num!r}")
