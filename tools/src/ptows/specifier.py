"""Version specifiers such as ``>=3.10,<4``: enough of the packaging rules to answer without importing them."""

from __future__ import annotations

import re

_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?\s*")


def is_specifier(text: str) -> bool:
    """Whether ``text`` is a comma-separated list of comparisons."""
    return all(_CLAUSE.fullmatch(part) for part in text.split(","))


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version: ``3.12.1rc2`` gives (3, 12, 1)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def matches(version: str, specifier: str) -> bool:
    """Whether ``version`` satisfies every comparison of ``specifier``."""
    return all(_clause(release(version), part) for part in specifier.split(",") if part.strip())


def _clause(have: tuple[int, ...], text: str) -> bool:
    match = _CLAUSE.fullmatch(text)
    if match is None:
        return False
    operator, number, star = match.groups()
    want = release(number)
    if star:
        same = have[: len(want)] == want
        return same if operator == "==" else not same
    width = max(len(have), len(want))
    left, right = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
    if operator == "~=":
        return left >= right and have[: len(want) - 1] == want[:-1]
    return {
        ">=": left >= right,
        "<=": left <= right,
        ">": left > right,
        "<": left < right,
        "==": left == right,
        "!=": left != right,
    }[operator]
