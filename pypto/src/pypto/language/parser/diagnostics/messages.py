"""Short texts for people: the useful part of an exception, and near names for a misspelt one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_NO_MESSAGE = "rejected by a backend check that reported no message"
_TRACE_HEADS = ("\n\nC++ Traceback", "\nC++ Traceback", "\nTraceback (most recent call last)")
_TRAILING_LOCATION = re.compile(r"\s*\[[^\[\]\n]+:-?\d+:-?\d+\]\s*$")


def concise_error_message(exc: BaseException, strip_trailing_span: bool = False) -> str:
    """The message of ``exc`` without trace sections and the ``Check failed:`` tail.

    Args:
        exc: any exception.
        strip_trailing_span: also drop a trailing ``[file:line:col]``, but only of a message that had the tail.
    """
    text = str(exc)
    for head in _TRACE_HEADS:
        text = text.split(head, 1)[0]
    had_tail = False
    if text.startswith("Check failed:"):
        return _NO_MESSAGE
    if "\nCheck failed:" in text:
        text, had_tail = text.split("\nCheck failed:", 1)[0], True
    if had_tail and strip_trailing_span:
        text = _TRAILING_LOCATION.sub("", text)
    text = text.strip()
    if had_tail and not text:
        return _NO_MESSAGE
    return text


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """``"Did you mean 'x'?"`` for the closest candidate, None when nothing is near."""
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.7)
    return f"Did you mean '{near[0]}'?" if near else None
