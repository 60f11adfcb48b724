"""Attribute text of PTO instructions that print as plain ``pto.X ins(..) outs(..)``."""

from __future__ import annotations

from collections.abc import Callable

from pypto.errors import user_error
from pypto.ir.expr import Call
from pypto.ir.span import Span

CMP_MODES = ("eq", "ne", "lt", "le", "gt", "ge")
ROUND_MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
MASK_PATTERNS = (None, "P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")


def precision(kind: str) -> Callable[[Call], str]:
    """``{precisionType = ...}`` of div, log and recip when ``high_precision`` is set."""
    return lambda call: (
        f"{{precisionType = #pto<{kind}_precision high_precision>}}" if call.kwargs.get("high_precision") else ""
    )


def comparison(name: str, code: int, span: Span) -> str:
    """Name of the ``cmp_type`` code of operator ``name``.

    Raises:
        ValueError: a code that names no comparison.
    """
    if not 0 <= code < len(CMP_MODES):
        names = ", ".join(f"{number} {mode}" for number, mode in enumerate(CMP_MODES))
        raise user_error(f"{name} has no comparison for cmp_type={code}; use one of {names}", span=span)
    return CMP_MODES[code]


def cmp_mode(call: Call, span: Span | None = None) -> str:
    """``{cmpMode = #pto<cmp gt>}``; ``span`` is the place of a call that has none."""
    code = int(call.kwargs.get("cmp_type", 0))
    return f"{{cmpMode = #pto<cmp {comparison(call.op.name, code, span or call.span)}>}}"


def round_mode(call: Call) -> str:
    """``{rmode = #pto<round_mode ROUND>}``."""
    return f"{{rmode = #pto<round_mode {ROUND_MODES[call.kwargs['mode']]}>}}"


def mask_pattern(call: Call) -> str:
    """``{maskPattern = #pto.mask_pattern<P0101>}``."""
    return f"{{maskPattern = #pto.mask_pattern<{MASK_PATTERNS[call.kwargs['mask_pattern']]}>}}"


def acc_phase(call: Call) -> str:
    """``{accPhase = #pto<acc_phase final>}``, nothing when unspecified."""
    phase = call.kwargs.get("acc_phase", "unspecified")
    return "" if phase == "unspecified" else f"{{accPhase = #pto<acc_phase {phase}>}}"
