"""Normalisation of ``pad_value`` arguments under its public name."""

from __future__ import annotations

import importlib
from typing import Any


def normalize_pad_value(pad_value: Any) -> Any:
    """See :func:`pypto.ops.padding.pad_policy`."""
    return importlib.import_module("pypto.ops.padding").pad_policy(pad_value)
