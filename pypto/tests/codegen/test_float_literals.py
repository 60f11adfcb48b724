"""Numbers written into orchestration source are the numbers of the program."""

from __future__ import annotations

import ctypes
import math
import re

from hypothesis import given
from hypothesis import strategies as st
from pypto.codegen.orchestration.expressions import float_literal


def read(text: str) -> float:
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?f", text)
    return ctypes.c_float(float(text[:-1])).value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([None, 6]))
def test_a_literal_is_the_same_number(value, decimals):
    assert read(float_literal(value, decimals)) == value
    assert math.copysign(1, read(float_literal(value, decimals))) == math.copysign(1, value)


def test_short_numbers_have_six_places_and_special_ones_a_builtin():
    assert float_literal(0.5, 6) == "0.500000f"
    assert float_literal(0.0012345678, 6) == "0.0012345678f"
    assert [float_literal(v) for v in (2.0, math.inf, -math.inf)] == ["2.0f", "__builtin_inff()", "-__builtin_inff()"]
    assert float_literal(math.nan, 6) == '__builtin_nanf("")'
