"""From `.pto` text to the in-memory module."""

from .parser import parse_module

__all__ = ["parse_module"]
