"""Automatic variable names: ``<base>__<role>_v<n>`` and ``<base>__<role>_tmp_v<n>``."""

from __future__ import annotations

import re

#: Reserved for automatic names; user names may not contain it.
DELIMITER = "__"

_AUTOMATIC = re.compile(r"^.*?__(?:\w+_)?v\d+$|^.*?__(?:tile|store|out|gm_pipe|windowed)(?:_\w+)?$")


def base_name(name: str) -> str:
    """The user's part of a name: everything before the first delimiter (the whole name without one)."""
    cut = name.find(DELIMITER, 1)
    return name if cut < 0 else name[:cut]


def auto_name(base: str, role: str, number: int) -> str:
    """``<base>__<role>_v<number>``."""
    return f"{base}{DELIMITER}{role}_v{number}"


def temp_name(base: str, role: str, number: int) -> str:
    """``<base>__<role>_tmp_v<number>``."""
    return f"{base}{DELIMITER}{role}_tmp_v{number}"


def is_automatic(name: str) -> bool:
    """True for names of the automatic scheme."""
    return _AUTOMATIC.match(name) is not None
