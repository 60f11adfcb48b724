"""``pad_value`` arguments: the policy names and the numbers that stand for them."""

from __future__ import annotations

import math
from typing import Any

from pypto.ir.enums import PadValue
from pypto.ir.expr import ConstFloat, ConstInt


def pad_policy(value: Any, *, allow_null: bool = False, what: str = "fillpad pad_value") -> PadValue:
    """A PadValue, or 0, ``math.inf``, ``-math.inf`` (also as constants) as the policy they mean.

    Raises:
        TypeError: bool, str, None or another type.
        ValueError: ``PadValue.null`` (unless allowed), NaN, or another number.
    """
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, PadValue):
        if value is PadValue.null and not allow_null:
            raise ValueError(f"{what} must be PadValue.zero, max or min; PadValue.null names no value to fill with")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a PadValue, 0, math.inf or -math.inf, got {type(value).__name__}")
    if value == 0:
        return PadValue.zero
    if isinstance(value, float) and math.isinf(value):
        return PadValue.max if value > 0 else PadValue.min
    raise ValueError(f"{what} must be a PadValue, 0, math.inf or -math.inf, got {value}")
