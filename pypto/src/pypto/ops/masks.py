"""Hardware column patterns of masked gather and scatter."""

from __future__ import annotations

from typing import Any

from pypto.ops.rules import require

#: Pattern code -> (first marked column, distance of marked columns).
PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


class MaskPattern:
    """Codes of the column patterns, as plain ints."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


def stride(name: str, mask_pattern: int, wording: str = "mask_pattern in range [1, 7]") -> int:
    """Distance of the marked columns.

    Raises:
        ValueError: no such pattern.
    """
    require(mask_pattern in PATTERNS, f"{name} requires {wording}, got {mask_pattern}")
    return PATTERNS[mask_pattern][1]


def columns(mask_pattern: int) -> Any:
    """The marked columns as an index."""
    first, step = PATTERNS[mask_pattern]
    return slice(first, None, step)
