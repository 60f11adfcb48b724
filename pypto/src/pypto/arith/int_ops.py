"""Integer functions with floor semantics on 64-bit values."""

from __future__ import annotations

import math

from pypto.errors import InternalError

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def fits_int64(value: int) -> bool:
    return INT64_MIN <= value <= INT64_MAX


def floordiv(a: int, b: int) -> int:
    """``a // b`` rounded to negative infinity; InternalError for a zero divisor and for INT64_MIN // -1."""
    if b == 0:
        raise InternalError("floordiv: division by zero")
    if a == INT64_MIN and b == -1:
        raise InternalError("floordiv: INT64_MIN // -1 does not fit in 64 bits")
    return a // b


def floormod(a: int, b: int) -> int:
    """``a % b`` with the sign of ``b``; InternalError for a zero divisor."""
    if b == 0:
        raise InternalError("floormod: modulo by zero")
    return a % b


def gcd(a: int, b: int) -> int:
    """Greatest common divisor, never negative; 0 is the identity."""
    return math.gcd(a, b)


def lcm(a: int, b: int) -> int:
    """Least common multiple, never negative; 0 when an argument is 0."""
    return math.lcm(a, b)


def extended_euclidean(a: int, b: int) -> tuple[int, int, int]:
    """``(g, x, y)`` with ``a * x + b * y == g == gcd(a, b)``."""
    old_r, r = a, b
    old_x, x = 1, 0
    old_y, y = 0, 1
    while r:
        quotient = abs(old_r) // abs(r) * (1 if (old_r < 0) == (r < 0) else -1)
        old_r, r = r, old_r - quotient * r
        old_x, x = x, old_x - quotient * x
        old_y, y = y, old_y - quotient * y
    if old_r < 0:
        return -old_r, -old_x, -old_y
    return old_r, old_x, old_y
